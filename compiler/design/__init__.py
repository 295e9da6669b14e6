"""The record of every decision that makes one accelerator out of a model."""

from penstock.compiler.design.record import Design, KernelDesign, WeightStore

__all__ = ["Design", "KernelDesign", "WeightStore"]
