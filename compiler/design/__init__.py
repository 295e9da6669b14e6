"""The record of every decision that makes one accelerator out of a model."""

from penstock.compiler.design.record import (
    LONGEST_INTERVAL,
    PREFETCH_BITS,
    WIDEST_PORT,
    Design,
    KernelDesign,
    WeightStore,
)

__all__ = ["LONGEST_INTERVAL", "PREFETCH_BITS", "WIDEST_PORT", "Design", "KernelDesign", "WeightStore"]
