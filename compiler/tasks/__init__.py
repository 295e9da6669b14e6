"""Task programs: the language of `penstock.tasks`, read by Python's parser, checked and interpreted, never executed."""
