"""A kernel walked through as Vitis' front end does: what is unrolled, flattened, inlined, and what stays a loop."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Set
from pathlib import Path

from penstock.compiler.errors import Mistakes, PenstockError, nearest
from penstock.compiler.hls_in.apart import part_arrays
from penstock.compiler.hls_in.bindings import (
    INSTEAD,
    ArrayView,
    NameScope,
    Slot,
    StreamView,
    kind_of,
    unsupported,
    where,
)
from penstock.compiler.hls_in.directives import Directed
from penstock.compiler.hls_in.functions import Abandon
from penstock.compiler.hls_in.graph import KernelValue, ValueGraph
from penstock.compiler.hls_in.leaving import Leaving
from penstock.compiler.hls_in.loops import NAMING
from penstock.compiler.hls_in.memory import Memories
from penstock.compiler.hls_in.parsing import Unit, parse
from penstock.compiler.hls_in.pragmas import PlacedPragmas, Pragma, pragmas_of
from penstock.compiler.hls_in.records import Either, ReadKernel, Region, graphs
from penstock.compiler.hls_in.rom_tables import RomTables
from penstock.compiler.hls_in.storage import KernelArray, KernelStream
from penstock.compiler.hls_in.syntax import Tree, number_loops, statements_of
from penstock.compiler.names import Names

MOST_NODES = 60_000
SECONDS = 60


def read_kernel(path: Path, top: str, *, rolled: bool = False, values: bool = False) -> ReadKernel:
    """A source's top function, elaborated; every mistake that could be found is in the error.

    `values`: not its cycles are asked for, so what it returns is one more argument, which it writes. `rolled`: nor are
    lanes, so loops stay loops where pragmas would unroll them.
    """
    unit = parse(path)
    first = Elaborator(unit, top, rolled=rolled, values=values)
    try:
        kernel = first.kernel()
        written = _written(kernel)
        unchanged = {array.where for array in kernel.initial if array not in written} & first.listed
        spoiled = {array.where for array in first.filled if array in written}
        if not first.late and not first.reached and not unchanged and not spoiled:
            return kernel
        again = Elaborator(unit, top, first.directed, rolled, first.reached, unchanged, values, spoiled)
        return again.kernel()
    except Abandon as stop:
        raise stop.error from None
    except RecursionError:
        raise PenstockError(
            code="source-too-large", what="statements or expressions are nested too deeply", where=path.name,
            hint="split long expressions into several statements",
        ) from None  # fmt: skip


def _written(kernel: ReadKernel) -> set[KernelArray | None]:
    """Memories that somebody stores to. To the tool others with values from the start are constants."""
    return {
        node.array for piece in graphs(kernel.body) for node in piece.graph.nodes
        if node.op == "store" or (node.op == "phi" and node.follow is not None)
    }  # fmt: skip


class Elaborator(RomTables):
    def __init__(
        self, unit: Unit, top: str, directed: Directed | None = None, rolled: bool = False,
        reached: Mapping[str, int] | None = None, unchanged: Set[str] = frozenset(), values: bool = False,
        spoiled: Set[str] = frozenset(),
    ) -> None:  # fmt: skip
        """`directed` are partitions by array of a first walk: a callee may cut what its caller used before. `reached`
        are the sizes of pointers that it found, `unchanged` memories of constants, `spoiled` those that are none."""
        self.unit = unit
        self.directed = dict(directed or {})
        self.late = False
        self.reached = dict(reached or {})
        self.unchanged = unchanged
        self.spoiled, self.filled, self.ends, self.altering = spoiled, {}, {}, {}
        self.listed = set()
        self.apart = {}
        self.rolled, self.values, self.returned = rolled, values, None
        self._kept = {}
        self.initial = {}
        self.in_turns = 0
        self.instance = ()
        self.at_once = False
        self.called_before = 0
        self.top = top
        functions = [tree for tree in unit.declarations if tree[0] == "function" and tree[6] is not None]
        self.changes = {}
        self.functions: dict[str, Tree] = {tree[2]: tree for tree in functions}
        found = [
            p for file, text in unit.sources.texts.items()
            for p in pragmas_of(str(file.relative_to(unit.sources.folder)), text)
        ]  # fmt: skip
        for p in found:
            p.__dict__["file"] = "/penstock-source/" + p.file
        self.pragmas = PlacedPragmas(found, functions)
        self.mistakes = Mistakes()
        self.scope = NameScope()
        self.graph = ValueGraph()
        self.memories = Memories(self.graph, whole=rolled)
        self.path: KernelValue | None = None
        self.items: list[Region] | None = []
        """Where loops go; None inside a pipeline, where every loop is unrolled."""
        self.calls: list[str] = []
        self.arrays: list[KernelArray] = []
        self.streams: list[KernelStream] = []
        self.tables: dict[KernelArray, tuple[float | int, ...]] = {}
        self.touched: set[KernelArray] = set()
        self.left = Leaving()
        self.branches = []
        self.only_if = None
        self.loop_numbers: dict[int, int] = {}
        self.sunk = set()
        self.looked_at = set()
        self.turns = []
        self.given = set()
        self.around = []
        self.assumed = []
        self.steps = 0
        self.beyond = []
        self.notes = []
        self.until = time.process_time() + SECONDS

    def kernel(self) -> ReadKernel:
        function = self.functions.get(self.top)
        if function is None:
            raise PenstockError(
                code="no-top", what=f"there is no function {self.top!r}", where=self.unit.sources.main.name,
                hint=nearest(self.top, self.functions, f"its functions: {', '.join(sorted(self.functions)) or 'none'}"),
            )  # fmt: skip
        with self.mistakes.noted():
            self._globals()
        scalars: list[str] = []
        arguments: list[tuple[str, KernelArray | KernelStream | KernelValue]] = []
        interface = [p for p in self.pragmas.of(function[6]) if p.kind == "interface"]
        changed = self.changed_in(function[6])
        depths = self._depths(interface)
        for name, type_, place in function[3]:
            with self.mistakes.noted():
                if type_[0] == "reference" and kind_of(type_) is not None and name in changed:
                    type_ = ["array", 1, type_[1]]
                    self.scope.names[name] = binding = self._argument(name, type_, place, depths)
                    assert isinstance(binding, ArrayView)
                    binding.array.number = True
                else:
                    self.scope.names[name] = binding = self._argument(name, type_, place, depths)
                if isinstance(binding, Slot):
                    scalars.append(name)
                    assert binding.value is not None
                    self.given.add(binding.value)
                    arguments.append((name, binding.value))
                elif isinstance(binding, ArrayView | StreamView):
                    arguments.append((name, binding.array if isinstance(binding, ArrayView) else binding.streams))
        axi = frozenset(p.options.get("port", "") for p in interface if "m_axi" in p.options)
        for array in self.arrays:
            array.external = array.name in axi
        self.loop_numbers |= number_loops(function[6])
        if self.values and kind_of(function[4]) is not None:
            name = Names(self.scope.names).take("returned")
            made = self._made(name, ["array", 1, function[4]], function[1], argument=True)
            assert isinstance(made, ArrayView)
            self.returned, made.array.returned = made.array, True
            arguments.append((name, made.array))
        body = self.function_body(function)
        known = self.returned in self.touched or (self.left.value is not None and self.left.value.constant)
        if function[4][0] != "void" and not known:
            self.beyond.append((where(function[1]), "the number that the top returns"))
        met = {array.name.partition(".")[0] for array in self.touched}  # of a struct, one field is enough
        for array in self.arrays:
            if array.unsized and array.name.partition(".")[0] not in met:
                with self.mistakes.noted():
                    raise PenstockError(
                        code="unsupported-source", what=f"the pointer {array.name!r} without a size is not supported",
                        where=array.where, hint=array.unsized,
                    )  # fmt: skip
        self.mistakes.raise_first()
        s_axilite = any("s_axilite" in p.options and p.options.get("port") == "return" for p in interface)
        read = ReadKernel(
            self.top, body, self.arrays, self.streams, scalars, s_axilite, axi,
            arguments=arguments, tables=self.tables, initial=self.initial, beyond=self.beyond,
            interfaces=frozenset(p.options.get("port", "") for p in interface), body_at=where(function[6][1]),
            notes=self.notes, turns=self.turns, assumed=self.assumed,
        )  # fmt: skip
        part_arrays(read)
        return read

    def _depths(self, interface: list[Pragma]) -> dict[str, int]:
        """How many elements each m_axi port reaches, where its pragma says so."""
        found: dict[str, int] = {}
        for p in interface:
            with self.mistakes.noted():
                depth = p.number("depth", self.constants())
                if depth is not None and depth > 0:
                    found[p.options.get("port", "")] = depth
        return found

    # statements

    def block(self, tree: Tree, own_scope: bool = True) -> None:
        if own_scope:
            self.scope = NameScope(self.scope)
            self.directives(self.pragmas.of(tree))
        try:
            self.statements(statements_of(tree), [p for p in self.pragmas.of(tree) if p.kind in NAMING])
        finally:
            if own_scope and self.scope.around is not None:
                self.scope = self.scope.around

    def statements(self, trees: list[Tree], pragmas: Iterable[Pragma] = ()) -> None:
        """Statements, and between them the pragmas that name variables, in the order of the text."""
        waiting = list(pragmas)
        for position, tree in enumerate(trees):
            while waiting and waiting[0].line < tree[1][1]:
                with self.mistakes.noted():
                    self.apply(waiting.pop(0))
            with self.mistakes.noted():
                if not self.makes_tables(tree, trees[position + 1 :]):
                    self.statement(tree)
            if self.left.when is not None:
                for p in waiting:
                    with self.mistakes.noted():
                        self.apply(p)
                self.still_there(trees[position + 1 :])
                return
        for p in waiting:
            with self.mistakes.noted():
                self.apply(p)

    def statement(self, tree: Tree, label: str = "") -> None:
        self.steps += 1
        if len(self.graph.nodes) > MOST_NODES:
            raise Abandon(unsupported(tree[1], f"more than {MOST_NODES:,} operations in one iteration", "unroll less"))
        if self.steps % 64 == 0 and time.process_time() > self.until:
            raise Abandon(unsupported(tree[1], f"a kernel that takes more than {SECONDS} s to unfold", "unroll less"))
        match tree[0]:
            case "block":
                self.block(tree)
            case "group":
                for part in tree[2]:
                    with self.mistakes.noted():
                        self.declare(part)
            case "label":
                self.statement(tree[3], tree[2])
            case "expression":
                self.value(tree[2])
            case "return":
                self.leave(self.value(tree[2]) if tree[2] is not None else None)
            case "if":
                self._if(tree)
            case "for":
                self.loop_of(tree, label)
            case "leaves":
                self._leaves(tree)
            case "union":
                self.beyond.append((where(tree[1]), f"the union {tree[2]!r}, whose fields lie in one place"))
            case "bad":
                raise unsupported(
                    tree[1], f"a {tree[2]}", INSTEAD.get(tree[2], "write it with for, if and assignments")
                )
            case _:
                raise unsupported(tree[1], f"a statement of kind {tree[0]!r}", "write it with for, if and assignments")

    def _leaves(self, tree: Tree) -> None:
        """A loop around others that break leaves: its cycles are those of a run that goes on."""
        self.beyond.append((where(tree[1]), "a loop around others that break leaves"))
        self.says("loops around others that break leaves go round to their end")

    def _perhaps(self, tree: Tree, either: bool) -> None:
        """A loop under a condition: its cycles are counted, as in the longest run."""
        self.beyond.append((where(tree[1]), "a loop under a condition"))
        longest = "of two branches with loops the longer one is counted"
        self.says(longest if either else "loops under conditions are counted as if these always held")

    def _if(self, tree: Tree) -> None:
        condition = self.truth(self.value(tree[2]))
        with self.both_branches(condition):
            self._each_branch(tree, condition)

    def _each_branch(self, tree: Tree, condition: KernelValue) -> None:
        found: list[list[Region]] = []
        apart = not condition.constant and self.items is not None and all(map(self.stays, tree[3:5]))
        for second, (branch, taken) in enumerate(((tree[3], condition), (tree[4], self.graph.negate(condition)))):
            if branch is None or (taken.constant and not taken.value):
                continue
            if not taken.constant and self.items is not None and self.stays(branch):
                self._perhaps(tree, apart)
            with self.under(None if taken.constant else taken):
                self.in_branch(bool(second))
                if apart:
                    found.append(self._own_items(branch))
                else:
                    self.statement(branch)
            if taken.constant:
                break
        if apart and self.items is not None:
            self.items.append(Either((found[0], found[1]), where(tree[1])))

    def _own_items(self, branch: Tree) -> list[Region]:
        """What becomes of a branch, apart from what stands before it."""
        self.settle()
        around, self.items = self.items, list[Region]()
        self.statement(branch)
        self.settle()
        found, self.items = self.items, around
        return found
