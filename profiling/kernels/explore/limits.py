"""What of a kernel may be limited, by name. Light to import: a service checks it before any worker sees the kernel."""

RESOURCES = ("dsp", "lut", "ff", "bram18")
TRIALS = 241
"""Sources that are tried unless somebody says how many: the given one, and others."""
