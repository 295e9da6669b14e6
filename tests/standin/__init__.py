"""A double of the HLS tools for tests; it is never installed."""
