"""What clients send and get: bodies, documents made of rows, problems, parameters of a query."""
