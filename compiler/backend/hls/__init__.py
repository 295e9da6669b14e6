"""Emits HLS C++ for Vitis and for the bundled C simulation headers."""
