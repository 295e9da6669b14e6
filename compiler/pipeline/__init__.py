"""The order of the passes and the entry points that the layers above call."""

from compiler.pipeline.lower import Lowered, lower

__all__ = ["Lowered", "lower"]
