"""Networks of processes as JSON files: read, simulated, their FIFOs sized."""
