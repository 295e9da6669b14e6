"""Figures of other systems: StreamTensor's tables 4 to 7 and figure 10, and CODO's by a third party's notes.

GPUs' and FPGAs' are as StreamTensor's paper prints them. Its figure 10 gives ranges, read from its text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LENGTHS = (32, 64, 128, 256)


@dataclass(frozen=True)
class PublishedText:
    """`[n:n]`: n tokens of a prompt, and n that are written."""

    latency_ms: float | None = None
    first_ms: float | None = None
    tokens_per_second: float | None = None


def _of(*rows: tuple[float | None, float | None, float | None]) -> Mapping[int, PublishedText]:
    return {n: PublishedText(*row) for n, row in zip(LENGTHS, rows, strict=False)}


TEXTS: Mapping[str, Mapping[int, PublishedText]] = {
    "streamtensor": _of(
        (194.99, 34.59, 199.51), (358.24, 61.27, 215.51), (696.65, 125.35, 224.05), (1387.76, 272.85, 229.61)
    ),
    "codo": _of((158.64, 20.40, 231.5), (None, 32.64, None), (None, 110.40, None)),
    "allo": _of(
        (238.32, 81.50, 204.05), (476.64, 162.99, 204.05), (953.28, 325.98, 204.05), (1906.56, 651.96, 204.05)
    ),
    "dfx": _of(
        (350.00, 177.20, 185.19), (694.70, 349.10, 185.19), (1384.00, 692.80, 185.19), (2800.00, 1417.60, 185.19)
    ),
    "a100": _of((291.16, 8.72, 113.30), (567.41, 8.76, 114.56), (1118.28, 8.65, 115.35), (2227.79, 8.53, 115.35)),
    "2080ti": _of((518.46, 24.98, 64.85), (1010.81, 25.23, 64.94), (3969.76, 25.26, 32.45), (7914.23, 25.23, 32.45)),
}  # fmt: skip
FPGAS, GPUS = ("streamtensor", "codo", "allo", "dfx"), ("a100", "2080ti")
NAMES = {
    "streamtensor": "StreamTensor", "codo": "CODO", "allo": "Allo", "dfx": "DFX", "a100": "A100", "2080ti": "2080Ti",
}  # fmt: skip
NOTES = {
    "codo": "CODO's are a third party's notes of a block that attends to one place only",
}
DFX_CARDS: Mapping[int, float] = {1: 93.1, 2: 146.3, 4: 207.6}
"""Tokens a second of GPT-2 345M at [64:64] on so many U280s, in 16-bit floats; a third party's notes."""

PLATFORMS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("platform", ("AMD U55C", "AMD U280", "AMD U280", "NVIDIA A100", "NVIDIA 2080Ti")),
    ("process, nm", ("16", "16", "16", "7", "12")),
    ("clock, MHz", ("250", "250", "200", "1065", "1350")),
    ("quantisation", ("W4A8", "W4A8", "FP16", "W8A8", "W8A8")),
    ("thermal design power, W", ("150", "225", "225", "300", "250")),
    ("peak, INT8 TOPS", ("24.5", "24.5", "24.5", "624", "215.2")),
    ("memory", ("16 GB, 460 GB/s", "8 GB, 460 GB/s", "8 GB, 460 GB/s", "80 GB, 1935 GB/s", "11 GB, 616 GB/s")),
    ("on chip, MB", ("41", "41", "41", "40", "5.5")),
)
"""Table 6: StreamTensor, Allo, DFX, and the two GPUs."""


@dataclass(frozen=True)
class Family:
    """A column of table 7."""

    layers: int
    width: int
    ffn: int
    heads: int
    kv_heads: int | None
    activation: str


FAMILIES: Mapping[str, Family] = {
    "gpt2": Family(24, 1024, 4096, 16, None, "GELU"),
    "qwen": Family(24, 896, 4864, 14, 2, "SiLU"),
    "llama": Family(22, 2048, 5632, 32, 4, "SiLU"),
    "gemma": Family(26, 1152, 6912, 4, 1, "GELU"),
}
MEMORY_PCT = (14.8, 16.8)
"""Figure 10(a): what fusion leaves of the memory of intermediate results."""
COMPILE_S = (26.8, 63.4)
"""Figure 10(c): StreamTensor's compilation, without HLS and its profiling."""
