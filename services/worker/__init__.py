"""The execution core: leases, waking workers, and taking back what was lost. See README.md."""
