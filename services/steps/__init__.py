"""What a run consists of: its graph of steps, and the body of each kind of step. See README.md."""
