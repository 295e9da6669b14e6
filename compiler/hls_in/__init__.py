"""HLS C++ in: other people's kernels read, scheduled as Vitis would, and simulated."""
