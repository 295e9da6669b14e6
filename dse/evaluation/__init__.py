"""What a design costs, and how that meets what is wanted."""
