"""What no design of a space can be better than, under the limits that were given."""
