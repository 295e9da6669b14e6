"""What the database holds: tables, the records that repositories give, states and ids."""
