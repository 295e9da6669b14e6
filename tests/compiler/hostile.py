"""Random graphs whose layers, inputs and parameters bear names that other things have too."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.dialects.func import FuncOp

from penstock.compiler.pipeline import Lowered, lower
from penstock.compiler.program import Program
from tests.compiler.graphs import Case, build_graph, cases, turned

NAMES = (
    "c", "x", "load.c", "load_c", "fork.c", "convert.c", "convert.c.block", "convert_c_block_t", "convert_c_block_now",
    "chunk.c.1", "concat.c", "c.group1", "c.memory", "spill.c", "store.0", "pack.0", "output_0", "a", "b", "a__b",
    "a_b", "a/b", "load_c__a", "kernel_0", "kernel_1", "group0_done", "t0", "l0", "x0", "keep_0", "acc", "line", "in",
    "int", "float", "class", "template", "module", "cell", "reg", "begin", "table", "bit", "NAN", "INFINITY", "EOF",
    "std", "hls", "pk", "main", "penstock_top", "penstock_fifo", "PENSTOCK_OPS_H", "weights", "inputs", "outputs",
    "parameters", "clk", "rst", "start", "done", "ended", "waiting", "exp", "log", "select", "SELECT", "uint8_t",
    "linux", "слой", "слои", "couche.é", "couche.e", "层", "1", "_1", "--", "a b", "a\tb", "tile", "value0", "busy",
)  # fmt: skip


@dataclass(frozen=True)
class HostileCase:
    """A graph, a design of it, and which names its layers and arguments get instead of their own."""

    case: Case
    picks: tuple[int, ...]

    def lowered(self) -> Lowered:
        program = self.program()
        return lower(program, turned(program, self.case.knobs))

    def program(self) -> Program:
        program = build_graph(self.case.graph)
        layers = _Renaming(self.picks)
        arguments = _Renaming(self.picks[::-1])
        for op in program.module.walk():
            layer = op.attributes.get("penstock.layer")
            if isinstance(layer, StringAttr):
                op.attributes["penstock.layer"] = StringAttr(layers.new(layer.data))
        function = next(op for op in program.module.walk() if isinstance(op, FuncOp))
        assert function.arg_attrs is not None
        renamed: list[DictionaryAttr] = []
        for one in function.arg_attrs:
            name = one.data["penstock.name"]
            assert isinstance(name, StringAttr)
            renamed.append(DictionaryAttr({**one.data, "penstock.name": StringAttr(arguments.new(name.data))}))
        function.arg_attrs = ArrayAttr(renamed)
        inputs = tuple(replace(port, name=arguments.new(port.name)) for port in program.signature.inputs)
        return replace(
            program,
            params={arguments.new(name): value for name, value in program.params.items()},
            signature=replace(program.signature, inputs=inputs),
        )


class _Renaming:
    """Layers are apart from each other, and so are arguments; a layer and an argument may have one name."""

    def __init__(self, picks: tuple[int, ...]) -> None:
        self.picks = list(picks)
        self.given: dict[str, str] = {}

    def new(self, old: str) -> str:
        if old not in self.given:
            start = self.picks.pop() if self.picks else len(self.given)
            free = (NAMES[(start + i) % len(NAMES)] for i in range(len(NAMES)))
            self.given[old] = next((name for name in free if name not in self.given.values()), old)
        return self.given[old]


def hostile_cases() -> st.SearchStrategy[HostileCase]:
    """Mostly early names, which meet each other most often."""
    pick = st.one_of(st.integers(0, 23), st.integers(0, len(NAMES) - 1))
    return st.builds(HostileCase, cases(), st.lists(pick, min_size=8, max_size=20).map(tuple))
