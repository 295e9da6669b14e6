"""What every program of examples/tasks must answer, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Inputs = Mapping[str, Array]
EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "tasks"


def wide(values: Array) -> Array:
    return values.astype(np.int32)


def relu8(values: Array) -> Array:
    return np.clip(values >> 6, 0, 127)


def best_match(x: Inputs) -> Array:
    """Smith and Waterman's table, cell by cell."""
    a, b = x["a"], x["b"]
    table = np.zeros((len(a) + 1, len(b) + 1), np.int32)
    for i in range(len(a)):
        for j in range(len(b)):
            match = table[i, j] + (2 if a[i] == b[j] else -1)
            table[i + 1, j + 1] = max(0, match, table[i, j + 1] - 1, table[i + 1, j] - 1)
    return table.max(keepdims=True).reshape(1)


def mlp(x: Inputs) -> Array:
    first = relu8(wide(x["x"]) @ wide(x["w1"]).T)
    return relu8(first @ wide(x["w2"]).T) @ wide(x["w3"]).T


def ffn(x: Inputs) -> Array:
    gate = x["x"] @ x["gate"].T
    return (x["x"] @ x["up"].T * gate / (1 + np.exp(-gate))) @ x["down"]


def attention(x: Inputs) -> Array:
    scores = x["Q"] @ x["K"].T * np.float32(0.35355339)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True) @ x["V"]


def token_ring(x: Inputs) -> Array:
    tokens = x["A"]
    for station in range(3):
        tokens = tokens * 2 + station
    return tokens


def heat(x: Inputs) -> Array:
    """Nothing leaves the line at its ends."""
    line = x["x"]
    for _ in range(12):
        line = line * 0.5 + (np.append(line[:1], line[:-1]) + np.append(line[1:], line[-1:])) * 0.25
    return line


def margin(x: Inputs) -> Array:
    """The best score of the zoo's perceptron, and how far the second is behind it."""
    import torch

    from penstock.compiler.zoo.mlp import build

    module, _ = build(inputs=16, hidden="8")
    with torch.no_grad():
        scores = module(torch.from_numpy(x["image"].astype(np.float32) / 128)[None])
    second, first = np.sort(scores.numpy()[0])[-2:]
    return np.array([first, first - second])


def product(x: Inputs) -> Array:
    return wide(x["A"]) @ wide(x["B"])


ANSWERS: dict[str, Callable[[Inputs], Array]] = {
    "attention": attention,
    "blur": lambda x: np.sum([wide(x["image"])[r : r + 4, c : c + 6] for r in range(3) for c in range(3)], axis=0),
    "credits": lambda x: np.cumsum(wide(x["A"])),
    "daisy_chain": lambda x: wide(x["A"]) + 10,
    "dot": lambda x: (wide(x["A"]) * wide(x["B"])).sum(axis=1),
    "ffn": ffn,
    "gemv": lambda x: wide(x["A"]) @ wide(x["x"]),
    "heat": heat,
    "hierarchical_gemm": product,
    "histogram": lambda x: np.bincount((x["A"].astype(np.int32) >> 4) + 8, minlength=16),
    "linear": lambda x: x["weight"] @ x["x"] + x["bias"],
    "mlp": mlp,
    "model_block": margin,
    "ping_pong": lambda x: (wide(x["A"]) ** 2).sum(axis=1),
    "producer_consumer": lambda x: wide(x["A"]) + 1,
    "shared_elements": lambda x: np.cumsum(wide(x["A"]).reshape(8, 4), axis=1).reshape(-1),
    "smith_waterman": best_match,
    "softmax": lambda x: np.exp(x["X"]) / np.exp(x["X"]).sum(axis=1, keepdims=True),
    "systolic": product,
    "systolic_1d": product,
    "systolic_conv": lambda x: np.correlate(wide(x["x"]), wide(x["w"])),
    "systolic_ws": lambda x: wide(x["A"]) @ wide(x["W"]),
    "token_ring": token_ring,
}
"""By the program's file."""
