"""Writes functions that no backend has a core for as arithmetic: sines, powers, logarithms of one and a little."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from penstock.compiler.scalars.expansions import EXPANSIONS, expand
from penstock.compiler.transforms.editor import Editor
from penstock.compiler.transforms.generics import body_ops
from penstock.compiler.transforms.rewrite import Rewrite
from penstock.compiler.transforms.simplify_bodies import simplify_body


@dataclass(frozen=True)
class ExpandFunctions(Rewrite):
    """Runs behind the folding of parameters, which computes such functions of them exactly."""

    name: ClassVar[str] = "expand-functions"

    def rewrite(self, editor: Editor) -> None:
        for op in editor.generics():
            functions = [inner for inner in body_ops(op) if type(inner) in EXPANSIONS]
            for function in functions:
                arithmetic, result = expand(function)
                op.body.block.insert_ops_before(arithmetic, function)
                function.results[0].replace_all_uses_with(result)
                function.detach()
                function.erase()
            if functions:
                simplify_body(op)
