"""What several rooms use: linear programs, drawings and text tables."""
