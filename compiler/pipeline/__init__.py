"""The order of the passes and the entry points that the layers above call."""

from penstock.compiler.pipeline.emit import emit
from penstock.compiler.pipeline.lower import Lowered, lower
from penstock.compiler.pipeline.prepare import QUANTISATIONS, prepare

__all__ = ["QUANTISATIONS", "Lowered", "emit", "lower", "prepare"]
