"""Layers of one form that one accelerator computes in turn, and the whole model around its calls, as data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock.compiler.arrays import Array


@dataclass(frozen=True)
class Layers:
    """A program with layers is one of them: its parameters are the first layer's, its samples those of its call.

    `weights` has the parameters of every layer by their names in the program; all have the same names and shapes.
    `graph` is the package's layers/graph.json: `inputs` and `outputs` are the whole model's ports, `nodes` operations
    on the host as in `HostParts`, `tables` as there, and `results` names. A node of the operation `LAYER` has a
    `number` and is a call of the accelerator with that layer's weights.
    """

    path: str
    names: tuple[str, ...]
    """What the model calls each layer."""
    weights: tuple[Mapping[str, Array], ...]
    initial: tuple[Mapping[str, Array], ...]
    """What each layer's state holds before the first call, by its names in the program."""
    graph: Mapping[str, Any]
    values: Mapping[str, Array]
    calls: tuple[tuple[tuple[Array, ...], tuple[Array, ...]], ...] = ()
    """What PyTorch gave each layer when the example inputs ran, and what it answered; empty without weights."""
    inputs: tuple[Array, ...] = ()
    outputs: tuple[Array, ...] = ()
    """The whole model's example inputs, and PyTorch's answers."""

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        values, params, states = list(self.values), list(self.weights[0]), list(self.initial[0])
        sizes = [[len(inputs), len(outputs)] for inputs, outputs in self.calls]
        document = {
            "path": self.path, "names": list(self.names), "graph": self.graph, "values": values, "params": params,
            "states": states,
            "calls": sizes, "inputs": len(self.inputs), "outputs": len(self.outputs),
        }  # fmt: skip
        (folder / "graph.json").write_text(json.dumps(document, indent=1) + "\n")
        arrays: dict[str, Any] = {f"value_{i}": self.values[name] for i, name in enumerate(values)}
        for number, layer in enumerate(self.weights):
            arrays |= {f"weight_{number}_{i}": layer[name] for i, name in enumerate(params)}
        for number, layer in enumerate(self.initial):
            arrays |= {f"state_{number}_{i}": layer[name] for i, name in enumerate(states)}
        for number, sides in enumerate(self.calls):
            for side, tensors in zip(("in", "out"), sides, strict=True):
                arrays |= {f"call_{number}_{side}_{i}": tensor for i, tensor in enumerate(tensors)}
        arrays |= {f"input_{i}": a for i, a in enumerate(self.inputs)}
        arrays |= {f"output_{i}": a for i, a in enumerate(self.outputs)}
        np.savez(folder / "arrays.npz", **arrays)

    @staticmethod
    def load(folder: Path) -> Layers:
        document = json.loads((folder / "graph.json").read_text())
        with np.load(folder / "arrays.npz", allow_pickle=False) as arrays:
            return Layers(
                document["path"],
                tuple(document["names"]),
                tuple(
                    {name: arrays[f"weight_{number}_{i}"] for i, name in enumerate(document["params"])}
                    for number in range(len(document["names"]))
                ),
                tuple(
                    {name: arrays[f"state_{number}_{i}"] for i, name in enumerate(document["states"])}
                    for number in range(len(document["names"]))
                ),
                document["graph"],
                {name: arrays[f"value_{i}"] for i, name in enumerate(document["values"])},
                tuple(
                    (
                        tuple(arrays[f"call_{number}_in_{i}"] for i in range(given)),
                        tuple(arrays[f"call_{number}_out_{i}"] for i in range(answered)),
                    )
                    for number, (given, answered) in enumerate(document["calls"])
                ),
                tuple(arrays[f"input_{i}"] for i in range(document["inputs"])),
                tuple(arrays[f"output_{i}"] for i in range(document["outputs"])),
            )
