"""The passes: one file each, verb first."""
