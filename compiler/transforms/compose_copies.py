"""Lets readers index the source of a transpose or broadcast themselves, instead of reading a copy of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.linalg import ops as linalg

from penstock.compiler.transforms.editor import Editor
from penstock.compiler.transforms.generics import is_copy, maps_of, rebuild
from penstock.compiler.transforms.rewrite import Rewrite


@dataclass(frozen=True)
class ComposeCopies(Rewrite):
    """Nothing is computed twice: a copy computes nothing. A copy that is returned stays."""

    name: ClassVar[str] = "compose-copies"

    def rewrite(self, editor: Editor) -> None:
        for op in editor.generics():
            inputs, maps = list(op.inputs), maps_of(op)
            for index in range(len(inputs)):
                while isinstance(copy := inputs[index].owner, linalg.GenericOp) and is_copy(copy):
                    source_map, result_map = maps_of(copy)
                    back = result_map.inverse_permutation()
                    if back is None:
                        break
                    inputs[index] = copy.inputs[0]
                    maps[index] = source_map.compose(back).compose(maps[index])
            if inputs != list(op.inputs):
                rebuild(op, inputs=inputs, maps=maps)
