"""The order of the passes and the entry points that the layers above call."""
