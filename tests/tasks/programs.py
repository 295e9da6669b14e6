"""Task programs as tests use them: opened, with numbers for their inputs, and answered."""

from __future__ import annotations

from functools import cache

import numpy as np

from benchmarks.task_answers import ANSWERS, EXAMPLES, Array, Inputs
from penstock.compiler.frontend.blocks_beside import with_blocks
from penstock.compiler.tasks.interpret import interpret, stored_as
from penstock.compiler.tasks.kinds import is_float
from penstock.compiler.tasks.network import Instances
from penstock.compiler.tasks.opened import open_network

__all__ = ["ANSWERS", "EXAMPLES", "answered", "drawn", "opened", "read"]


def opened(name: str, **options: int) -> Instances:
    return open_network(f"{name}.py", _whole(name), "", tuple(sorted((k, str(v)) for k, v in options.items())))


@cache
def _whole(name: str) -> str:
    """The text with the blocks that it calls."""
    path = EXAMPLES / f"{name}.py"
    return with_blocks(path, path.read_text())


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
