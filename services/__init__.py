"""The service: processes and their wiring."""
