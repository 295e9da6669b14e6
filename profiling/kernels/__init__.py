"""Somebody's HLS C++ kernel looked at: latency, waiting, FIFO depths, what limits it, as JSON and as a page."""
