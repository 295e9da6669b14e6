"""Models to begin with; they are installed with Penstock, so that `penstock demo` finds one anywhere."""
