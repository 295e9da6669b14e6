"""What a language model brings so that people can write to it, and how well PyTorch goes on with text it never saw."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penstock.compiler.arrays import Array

MOST_SCORES = 1 << 20
"""Of PyTorch's scores that are kept beside the text."""
MOST_HELD_OUT = 1024
"""Tokens of the held-out text that are predicted: each is a call of every layer."""


@dataclass(frozen=True)
class TextPart:
    """`held_out` are windows of tokens, all of one length, each foretold from its beginning; `losses` are PyTorch's.

    `scores` are PyTorch's of the first window, a row a token that is foretold, as many as there is room for.
    `calibration` is one window of typical tokens. A tokenizer is either the code points of its characters, token
    by token, or the bytes of a tokenizer.json.
    """

    name: str
    characters: Array | None
    tokenizer: bytes | None
    calibration: Array
    held_out: tuple[Array, ...] = ()
    losses: Array | None = None
    scores: Array | None = None

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        arrays = {f"window_{i}": window for i, window in enumerate(self.held_out)}
        if self.characters is not None:
            arrays["characters"] = self.characters
        if self.tokenizer is not None:
            arrays["tokenizer"] = np.frombuffer(self.tokenizer, np.uint8)
        if self.losses is not None:
            arrays["losses"] = self.losses
        if self.scores is not None:
            arrays["scores"] = self.scores
        arrays |= {"name": np.array(self.name), "calibration": self.calibration}
        np.savez(folder / "arrays.npz", allow_pickle=False, **arrays)

    @staticmethod
    def load(folder: Path) -> TextPart:
        with np.load(folder / "arrays.npz", allow_pickle=False) as arrays:
            known = set(arrays.files)
            return TextPart(
                str(arrays["name"]),
                arrays["characters"] if "characters" in known else None,
                arrays["tokenizer"].tobytes() if "tokenizer" in known else None,
                arrays["calibration"],
                tuple(arrays[f"window_{i}"] for i in range(sum(name.startswith("window_") for name in known))),
                arrays["losses"] if "losses" in known else None,
                arrays["scores"] if "scores" in known else None,
            )


def cosine_of(scores: Array, wanted: Array) -> float:
    """1 for scores of one direction, whatever their size."""
    one, other = (np.asarray(x, np.float64).reshape(-1) for x in (scores, wanted))
    length = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / length if length else float(not one.any() and not other.any())


def loss_of(scores: Array, token: int) -> float:
    """Minus the logarithm of the probability that the scores give to the token that came."""
    values = np.asarray(scores, np.float64).reshape(-1)
    most = float(values.max())
    return most + math.log(float(np.exp(values - most).sum())) - float(values[token])


def perplexity(losses: Array) -> float:
    return math.exp(float(np.mean(losses)))
