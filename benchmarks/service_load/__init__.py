"""What the benchmark `service` loads a private service with."""
