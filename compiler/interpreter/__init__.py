"""Executes every level of the IR in numpy."""
