"""A plan as hardware: a task program (`penstock.tasks`) with a task a core, links as streams, scratchpads as memories.

Every tensor that is read has a task that loads it, in words with the tiles of all cores that are served side by side.
Along an edge each core's tile is taken out of the word; cores that share a tile hand it on. What a plan hoists stays in
the core's memory. Results leave down the columns and are gathered into words. From the program on, everything is what
task programs get: check, interpreter, cycles, C++, SystemVerilog.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from penstock.compiler.errors import PenstockError
from penstock.compiler.mesh.machine import Machine
from penstock.compiler.mesh.mapping import MeshPlan
from penstock.compiler.mesh.overlay.built import BuiltPlan, FetchedTile, named
from penstock.compiler.mesh.overlay.core import CoreTask
from penstock.compiler.mesh.overlay.slices import (
    NotSliced,
)
from penstock.compiler.mesh.overlay.values import WORDS, NotComputed
from penstock.compiler.mesh.overlay.ways import OverlayWays
from penstock.compiler.tasks.opened import open_network

_WORDS = ("Stream", "float32", "grid", "int8", "int16", "int32", *(set(WORDS) - {"abs", "max", "min", "sum"}))


@dataclass(frozen=True)
class OverlayProgram:
    plan: MeshPlan
    machine: Machine

    @cached_property
    def _of(self) -> BuiltPlan:
        return BuiltPlan(self.plan, self.machine)

    def unit_note(self) -> str:
        return self._of.unit_note()

    def text(self) -> str:
        """The program, checked; an error says what of a plan is not built."""
        of = self._of
        try:
            text = self._text()
        except (NotSliced, NotComputed) as error:
            raise of.not_built(f"the kernel has {error}" if isinstance(error, NotComputed) else str(error)) from None
        try:
            open_network("program.py", text, "", ())
        except PenstockError as error:
            raise of.not_built(f"the task program has a limit: {error.what}", error.hint) from None
        return text

    def _text(self) -> str:
        of, ways = self._of, OverlayWays(self._of)
        of.check()
        mapping, program, tensors = self.plan.mapping, self.plan.facts.program, of.dims
        by_tensor: dict[str, list[FetchedTile]] = {}
        for one in of.loads:
            by_tensor.setdefault(one.fact.load.access.tensor, []).append(one)
        tasks: list[str] = []
        streams: list[str] = []
        for name, rows in by_tensor.items():
            tasks += ways.loader(name, rows)
        for one in of.loads:
            tile = of.kind(one.fact.load.access.tensor, one.tile.block)
            streams.append(f"{one.name} = Stream[{tile}][{of.grid[0]}, {of.grid[1]}]")
            if of.served(one):
                word = of.kind(one.fact.load.access.tensor, of.word(one))
                streams.append(f"{one.name}_words = Stream[{word}][{of.groups(one)}]")
                tasks += ways.edge(one)
        for one in of.stores:
            streams += ways.way_out(one)
        tasks += CoreTask(of).lines()
        for one in of.stores:
            tasks += ways.drain(one)
        heads = [f"{named(name)}: {program.tensors[name].dtype}{list(dims.sizes)}" for name, dims in tensors.items()]
        lines = ["", *streams, "", *tasks]
        text = "\n".join(f"    {line}" if line else "" for line in lines).strip("\n")
        body = f"def mesh({', '.join(heads)}):\n{text}"
        words = {word for word in _WORDS if re.search(rf"\b{word}\b", body)} | {"program", "task"}
        blocks = ", ".join(f"{k} {v}" for k, v in program.blocks.items()) or "no blocks"
        return (
            f'"""{program.name} on {self.machine.title} ({blocks}; {mapping.waves} turns).\n\n'
            'Made by penstock mesh: a task a core.\n"""\n\n# pyright: reportInvalidTypeForm=false\n\n'
            f"from penstock.tasks import {', '.join(sorted(words))}\n\n\n@program\n{body}\n"
        )
