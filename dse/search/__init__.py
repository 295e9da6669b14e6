"""Which design to try next, and what was tried."""
