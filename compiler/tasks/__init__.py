"""Task programs: the language of `penstock.tasks`, read by Python's own parser, checked and interpreted, never executed."""
