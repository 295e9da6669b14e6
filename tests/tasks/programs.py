"""Every program of examples/tasks with NumPy's answer, and how a program is brought through all levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.compiler.tasks.interpret import interpret, stored_as
from penstock.compiler.tasks.kinds import is_float
from penstock.compiler.tasks.network import Instances
from penstock.compiler.tasks.opened import open_network

Array = NDArray[Any]
Inputs = Mapping[str, Array]
EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "tasks"


def wide(values: Array) -> Array:
    return values.astype(np.int32)


ANSWERS: dict[str, Callable[[Inputs], Array]] = {
    "producer_consumer": lambda x: wide(x["A"]) + 1,
    "daisy_chain": lambda x: wide(x["A"]) + 10,
    "ping_pong": lambda x: (wide(x["A"]) ** 2).sum(axis=1),
    "systolic": lambda x: wide(x["A"]) @ wide(x["B"]),
    "systolic_1d": lambda x: wide(x["A"]) @ wide(x["B"]),
    "systolic_ws": lambda x: wide(x["A"]) @ wide(x["W"]),
    "gemv": lambda x: wide(x["A"]) @ wide(x["x"]),
}
"""What each must answer."""


def opened(name: str, **options: int) -> Instances:
    text = (EXAMPLES / f"{name}.py").read_text()
    return open_network(f"{name}.py", text, "", tuple(sorted((k, str(v)) for k, v in options.items())))


def read(text: str) -> Instances:
    """A program from its text."""
    return open_network("program.py", "from penstock.tasks import *\n\n" + text, "", ())


def drawn(network: Instances, seed: int = 0) -> dict[str, Array]:
    """Numbers for the inputs of a program."""
    generator, found = np.random.default_rng(seed), dict[str, Array]()
    for name in network.inputs:
        kind = network.program.tensors[name].kind
        numbers = (
            generator.standard_normal(kind.shape) if is_float(kind.dtype) else generator.integers(-128, 128, kind.shape)
        )
        found[name] = numbers.astype(stored_as(kind.dtype))
    return found


def answered(network: Instances, inputs: Inputs) -> Array:
    """The one output."""
    (name,) = network.outputs
    return interpret(network, inputs)[name]
