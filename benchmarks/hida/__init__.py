"""HIDA's ablations and its LeNet, beside the published figures: the parts of the benchmark `hida`, and docs/hida.md."""
