"""The example kernels with few numbers, so that a plan of each is built as hardware; what NumPy says they answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tests.mesh.answers import Case, Tensors, attention, mlp, norm_gemm, scan
from tests.mesh.tile_values import MeshArray

Sizes = Mapping[str, int]

INTS = Case(
    "gemm_int8", {"a": "int8", "b": "int8", "c": "int32", "M": 16, "N": 16, "K": 8},
    lambda t: t["a"].reshape(16, 8) @ t["b"].reshape(8, 16), "c",
)  # fmt: skip
FLOATS = {
    "gemm": ("a_ptr b_ptr c_ptr", {"BLOCK_SIZE_M": 2, "BLOCK_SIZE_N": 2, "BLOCK_SIZE_K": 2, "M": 16, "N": 16, "K": 8}),
    "batched_gemm": ("a b c", {"B": 2, "M": 8, "N": 8, "K": 8, "BLOCK_M": 2, "BLOCK_N": 2, "BLOCK_K": 2}),
    "flash_attention": ("Q K V Out", {"HEADS": 4, "LENGTH": 8, "D": 4, "BLOCK_M": 2, "BLOCK_N": 2}),
    "causal": ("Q K V Out", {"HEADS": 4, "LENGTH": 16, "D": 2, "BLOCK_M": 2, "BLOCK_N": 8, "CAUSAL": 1}),
    "flash_decode": ("q k v out", {"HEADS": 16, "QUERIES": 1, "LENGTH": 8, "D": 2, "BLOCK": 2}),
    "mlp": ("x up down y", {"ROWS": 32, "WIDE": 4, "HIDDEN": 8, "BLOCK_M": 2, "BLOCK_H": 2}),
    "norm_gemm": ("x w y", {"M": 8, "N": 8, "K": 8, "BLOCK_M": 2, "BLOCK_N": 2, "BLOCK_K": 2}),
    "scan": ("x delta a b c y", {"LENGTH": 4, "CHANNELS": 16, "STATES": 4, "BLOCK_C": 1}),
}
ONES = {"BLOCK_SIZE_M": 1, "BLOCK_SIZE_N": 1, "BLOCK_SIZE_K": 1, "BLOCK_M": 1, "BLOCK_N": 1, "BLOCK_K": 1, "BLOCK": 1,
        "BLOCK_H": 1, "M": 4, "N": 4, "K": 4, "D": 2, "LENGTH": 4, "ROWS": 4, "WIDE": 2, "HIDDEN": 4, "CHANNELS": 4,
        "STATES": 2}  # fmt: skip
"""Sizes of which four cores with floats fit an ECP5."""


def floats(name: str, sizes: Mapping[str, int] | None = None) -> Case:
    """A kernel with tensors of float32, small enough for the words of task programs."""
    tensors, given = FLOATS[name]
    numbers = given | {key: value for key, value in (sizes or {}).items() if key in given}
    values: dict[str, int | float | str] = {**dict.fromkeys(tensors.split(), "float32"), **numbers}
    file = "flash_attention" if name == "causal" else name
    return Case(file, values, lambda t: _ANSWERS[name](t, numbers), tensors.split()[-1])


def few_ints() -> Case:
    """The product of whole numbers whose instances are as many as sixteen cores."""
    return Case(INTS.file, {**INTS.given, "M": 8, "N": 8, "K": 4}, lambda t: _product(t, "a b", 1, 8, 8, 4), "c")


def _product(t: Tensors, names: str, batch: int, m: int, n: int, k: int) -> MeshArray:
    left, right = names.split()
    return t[left].reshape(batch, m, k) @ t[right].reshape(batch, k, n)


def _heads(t: Tensors, g: Sizes, *, causal: bool = False) -> MeshArray:
    return attention(*(t[name].reshape(g["HEADS"], g["LENGTH"], g["D"]) for name in "QKV"), causal=causal)


def _decode(t: Tensors, g: Sizes) -> MeshArray:
    return attention(*(t[name].reshape(g["HEADS"], -1, g["D"]) for name in "qkv"))


def _mlp(t: Tensors, g: Sizes) -> MeshArray:
    x, up, down = (t[name] for name in ("x", "up", "down"))
    return mlp(x.reshape(-1, g["WIDE"]), up.reshape(g["WIDE"], -1), down.reshape(-1, g["WIDE"]))


def _scan(t: Tensors, g: Sizes) -> MeshArray:
    x, delta, b, c = (t[name].reshape(g["LENGTH"], -1) for name in ("x", "delta", "b", "c"))
    return scan(x, delta, t["a"].reshape(g["CHANNELS"], g["STATES"]), b, c)


_ANSWERS: dict[str, Callable[[Tensors, Sizes], MeshArray]] = {
    "gemm": lambda t, g: _product(t, "a_ptr b_ptr", 1, g["M"], g["N"], g["K"]),
    "batched_gemm": lambda t, g: _product(t, "a b", g["B"], g["M"], g["N"], g["K"]),
    "flash_attention": _heads,
    "causal": lambda t, g: _heads(t, g, causal=True),
    "flash_decode": _decode,
    "mlp": _mlp,
    "norm_gemm": lambda t, g: norm_gemm(t["x"].reshape(g["M"], g["K"]), t["w"].reshape(g["K"], g["N"])),
    "scan": _scan,
}


def error(case: Case, inputs: Tensors, found: MeshArray) -> float:
    """How far an answer is from NumPy's with floats of 64 bits (whole numbers: exact), of the largest number."""
    wide = {name: value.astype(np.int64 if value.dtype.kind == "i" else np.float64) for name, value in inputs.items()}
    wanted = case.answer(wide).ravel()
    return float(np.abs(found.ravel() - wanted).max() / np.abs(wanted).max())
