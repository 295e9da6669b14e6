"""What a design becomes at the itensor level, as plain facts: parts, the streams between them, and their nests."""
