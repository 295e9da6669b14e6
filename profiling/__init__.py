"""Everything that says how fast and how large a design is, each figure with its evidence."""
