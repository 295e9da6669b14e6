"""How many lanes each kernel gets: one step at a time, by connection, or fitted to a common pace."""
