"""The record of every decision that makes one accelerator out of a model."""

from penstock.compiler.design.record import PREFETCH_BITS, Design, KernelDesign, WeightStore

__all__ = ["PREFETCH_BITS", "Design", "KernelDesign", "WeightStore"]
