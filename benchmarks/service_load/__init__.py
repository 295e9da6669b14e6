"""What the benchmark `service` loads a private service with."""

WAITING, SLOW = "waiting", "slow"
"""What names of runs begin with whose imports, or trials, take a while. Importing `noop` replaces the real steps."""
