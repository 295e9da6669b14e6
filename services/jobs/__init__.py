"""What is asked of the service, as plain functions over a transaction: models taken in, runs started and extended."""
