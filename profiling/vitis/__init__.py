"""AMD's tools: finding and running them, reading their reports and logs."""
