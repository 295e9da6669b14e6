"""From lowered nests to files that tools and hosts read."""
