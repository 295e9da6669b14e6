"""Facts read off the IR without changing it."""
