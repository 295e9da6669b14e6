"""Lanes fitted to a pace: every kernel gets what it needs to keep up, and the pace is what the device holds."""
