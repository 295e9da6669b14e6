"""The order of the passes and the entry points that the layers above call."""

from compiler.pipeline.emit import emit
from compiler.pipeline.lower import Lowered, lower
from compiler.pipeline.prepare import QUANTISATIONS, prepare

__all__ = ["QUANTISATIONS", "Lowered", "emit", "lower", "prepare"]
