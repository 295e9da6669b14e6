"""How tensors are moved: in elements, or in blocks that are one word of external memory."""

from __future__ import annotations

from penstock.compiler.tasks.affine import Affine
from penstock.compiler.tasks.kinds import bits_of
from penstock.compiler.tasks.network import Instances
from penstock.compiler.tasks.tree import Fetch, Memory, Store, expressions, walk

WIDEST_WORD = 512


def tensor_words(network: Instances) -> dict[str, tuple[int, ...]]:
    """The block of every tensor that is moved in blocks."""
    found: dict[str, tuple[int, ...]] = {}
    for body in network.bodies:
        for statement in walk(body.statements):
            moves: list[tuple[Memory, tuple[int, ...], tuple[Affine, ...]]] = []
            if isinstance(statement, Store):
                moves.append((statement.memory, statement.block, statement.index))
            moves += [(v.memory, v.block, v.index) for v in expressions(statement) if isinstance(v, Fetch)]
            for memory, block, index in moves:
                if memory.is_tensor:
                    _note(network, found, memory, block, index)
    return {name: block for name, block in found.items() if any(size > 1 for size in block)}


def _note(
    network: Instances,
    found: dict[str, tuple[int, ...]],
    memory: Memory,
    block: tuple[int, ...],
    index: tuple[Affine, ...],
) -> None:
    node, tensor = network.program.tensors[memory.name].node, network.program.tensors[memory.name].kind
    if found.setdefault(memory.name, block) != block:
        raise network.source.error(
            node, f"{memory.name} is moved in blocks of {list(found[memory.name])} and of {list(block)}",
            "move it in blocks of one shape", "a memory has words of one shape",
        )  # fmt: skip
    lanes = 1
    for size, part, at in zip(tensor.shape, block, index, strict=True):
        lanes *= part
        if size % part or at.divided(part) is None:
            raise network.source.error(
                node, f"{memory.name} is moved in blocks of {list(block)} that do not lie side by side",
                "let each block begin at a multiple of its size, and the size divide the tensor's",
            )  # fmt: skip
    if (bits := lanes * bits_of(tensor.dtype)) > WIDEST_WORD:
        raise network.source.error(
            node,
            f"{memory.name} is moved in blocks of {bits} bits",
            "move rows, or parts of rows",
            f"at most {WIDEST_WORD}",
        )
