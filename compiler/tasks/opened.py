"""The network of an operation that holds a task program: read and checked once, however often it is asked for."""

from __future__ import annotations

from functools import lru_cache

from xdsl.dialects.builtin import ModuleOp

from penstock.compiler.dialects.tasks import ProgramOp
from penstock.compiler.tasks.bodies import check_bodies
from penstock.compiler.tasks.check import check
from penstock.compiler.tasks.network import Instances, read_network
from penstock.compiler.tasks.source import ProgramText
from penstock.compiler.tasks.words import tensor_words


def network_of_op(op: ProgramOp) -> Instances:
    return open_network(op.file.data, op.text, op.entry.data, tuple(sorted(op.given_options.items())))


def network_of(module: ModuleOp) -> Instances:
    """Of a module that holds one task program."""
    (op,) = (one for one in module.walk() if isinstance(one, ProgramOp))
    return network_of_op(op)


@lru_cache(maxsize=8)
def open_network(file: str, text: str, entry: str, options: tuple[tuple[str, str], ...]) -> Instances:
    """A program that was read and checked, or the first mistake."""
    network = read_network(ProgramText(file, text), entry, dict(options))
    check(network, will_be_mapped=bool(network.program.schedule or network.program.limits))
    tensor_words(network)
    check_bodies(network)
    return network
