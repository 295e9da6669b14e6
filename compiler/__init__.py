"""The compiler: from a PyTorch model to a dataflow of pipelined kernels and its HLS C++."""
