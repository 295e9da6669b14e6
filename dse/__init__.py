"""The design spaces: what can be decided about a design, and the search for good decisions."""
