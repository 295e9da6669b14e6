"""What a model keeps between calls: buffers that its forward changes, as data."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock.compiler.arrays import Array


@dataclass(frozen=True)
class KeptState:
    """One buffer. It enters each call as one of the model's inputs, and its new value leaves as one of the results.

    The model's inputs and results are those of the host's part where there is one, else the accelerator's.
    """

    name: str
    input: int
    output: int
    port: str | None
    """The accelerator's input that it is as it stands: its memory then stays there. None where the host handles it."""
    result: int | None
    """Which of the accelerator's results its new value is."""
    dim: int | None = None
    """Along which dim rows are written, where the call gives only those: all else stays as it is."""
    positions: str | None = None
    """The value of the host's part that says where those rows go."""


def save_states(states: Sequence[KeptState], initial: Mapping[str, Array], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "states.json").write_text(json.dumps([asdict(state) for state in states], indent=1) + "\n")
    arrays: dict[str, Any] = {f"value_{i}": initial[state.name] for i, state in enumerate(states)}
    np.savez(folder / "arrays.npz", **arrays)


def load_states(folder: Path) -> tuple[tuple[KeptState, ...], dict[str, Array]]:
    states = tuple(KeptState(**one) for one in json.loads((folder / "states.json").read_text()))
    with np.load(folder / "arrays.npz", allow_pickle=False) as arrays:
        return states, {state.name: arrays[f"value_{i}"] for i, state in enumerate(states)}
