"""What the compiler computes with: number types and scalar operations, a table of each."""
