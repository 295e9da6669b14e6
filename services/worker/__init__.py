"""The execution core: leases, the outbox, and taking back what was lost. See README.md."""
