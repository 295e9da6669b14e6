"""What happens to each operation of PyTorch and ONNX: really tried, and shown as docs/support.md."""
