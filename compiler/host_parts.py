"""What of a model runs on the host, as data: operations in JSON, tensors as arrays. The package carries it as it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock.compiler.arrays import Array


@dataclass(frozen=True)
class HostParts:
    """`graph` is the package's host/graph.json:

    `inputs`, `outputs`: the whole model's ports. `before`, `after`: lists of operations, each with `name`, `op`,
    `args`, `kwargs`, its `layer`, and `why` it is here. `accelerator`: the names of the values that go into the
    accelerator and come out of it. `results`: the names of the model's results. `tables`: how many entries the tables
    have that an integer input looks up in.

    Where each call says sizes, a number that follows from them is {"size": {"factors", "offset"}}, and `lengths` says
    what they are at most.

    `between` is there where the accelerator is called more than once for one answer: for each call but the last, its
    `outputs` that the host reads then, and the `operations` that make inputs of a later one of them. `accelerator` then
    has the shapes of those inputs as `later`.
    """

    graph: Mapping[str, Any]
    values: Mapping[str, Array]
    inputs: tuple[Array, ...] = ()
    """The user's example inputs of the whole model, and what PyTorch answered; empty without weights."""
    outputs: tuple[Array, ...] = ()

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        names = list(self.values)
        counts = {"values": names, "inputs": len(self.inputs), "outputs": len(self.outputs)}
        (folder / "graph.json").write_text(json.dumps({"graph": self.graph, **counts}, indent=1) + "\n")
        arrays: dict[str, Any] = {f"value_{i}": self.values[name] for i, name in enumerate(names)}
        arrays |= {f"input_{i}": a for i, a in enumerate(self.inputs)}
        arrays |= {f"output_{i}": a for i, a in enumerate(self.outputs)}
        np.savez(folder / "arrays.npz", **arrays)

    @staticmethod
    def load(folder: Path) -> HostParts:
        document = json.loads((folder / "graph.json").read_text())
        with np.load(folder / "arrays.npz", allow_pickle=False) as arrays:
            return HostParts(
                document["graph"],
                {name: arrays[f"value_{i}"] for i, name in enumerate(document["values"])},
                tuple(arrays[f"input_{i}"] for i in range(document["inputs"])),
                tuple(arrays[f"output_{i}"] for i in range(document["outputs"])),
            )
