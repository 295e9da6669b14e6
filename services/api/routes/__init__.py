"""The addresses below /v1, one file for each kind of thing."""
