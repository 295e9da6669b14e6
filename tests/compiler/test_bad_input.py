"""What cannot be compiled is refused by name: the operation's layer, the limit, and what to do next."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from xdsl.parser import Parser

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.context import make_context
from penstock.compiler.pipeline import lower
from penstock.compiler.program import Program
from tests.compiler.graphs import GraphSpec, Step, build_graph

SPEC = GraphSpec("float32", 0, 4, 6, (Step("dense", 0, 3, 0), Step("relu", 0, 0, 0)))


def program() -> Program:
    return build_graph(SPEC)


def base() -> Design:
    return default_design(read_graph(program().module), "u55c", 300.0)


def kernel(**changes: Any) -> Design:
    """The design with another kernel entry for the dense layer, whose dims are 4, 6 and 6."""
    design = base()
    return replace(design, kernels={**design.kernels, "dense1": replace(design.kernels["dense1"], **changes)})


def without(layer: str) -> Design:
    design = base()
    return replace(design, kernels={name: k for name, k in design.kernels.items() if name != layer})


def renamed() -> Design:
    design = base()
    return replace(design, kernels={**design.kernels, "fc9": design.kernels["relu2"]})


MISFITS: dict[str, tuple[Callable[[], Design], str, str, str, str]] = {
    "a layer is missing": (lambda: without("relu2"), "bad-design", "relu2", "says nothing about this layer", "1 of 2"),
    "a layer too many": (renamed, "bad-design", "fc9", "a layer that the model does not have", "dense1, relu2"),
    "a group of no layer": (
        lambda: replace(base(), groups={"nobody": 1}), "bad-design", "nobody", "a layer that the model", "layers:",
    ),
    "groups that run backwards": (
        lambda: replace(base(), groups={"dense1": 1, "relu2": 0}),
        "bad-design", "relu2", "group 0 reads what group 1 makes later", "order of their numbers",
    ),
    "another number of dims": (
        lambda: kernel(tile=(4, 6), unroll=(1, 1), order=(0, 1)), "bad-design", "dense1", "2 tile sizes for 3", "",
    ),
    "a tile that leaves a rest": (
        lambda: kernel(tile=(4, 4, 6)), "tile-does-not-divide", "dense1", "cannot tile dim 1 of 6 by 4", "6 % 4 = 2",
    ),
    "lanes that leave a rest": (
        lambda: kernel(unroll=(1, 4, 1)), "unroll-does-not-divide", "dense1", "cannot unroll tile 6", "6 % 4 = 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISFITS)
def test_designs_that_do_not_fit_the_model(name: str) -> None:
    make, code, where, what, limit = MISFITS[name]
    with pytest.raises(PenstockError) as caught:
        lower(program(), make())
    assert (caught.value.code, caught.value.where) == (code, where)
    assert what in caught.value.what
    assert limit in caught.value.limit
    assert caught.value.hint


def record(change: Callable[[dict[str, Any]], None]) -> str:
    document = json.loads(json.dumps(base().to_json()))
    change(document)
    return json.dumps(document)


RECORDS: dict[str, tuple[str, str]] = {
    "no JSON": ("{", "cannot read the design record"),
    "no object": ("[]", "a design record is a JSON object"),
    "no schema": ("{}", "schema is missing"),
    "an unknown field": (record(lambda d: d.update(tiles=1)), "unknown field 'tiles'"),
    "a field too few": (record(lambda d: d.pop("kernels")), "field 'kernels' is missing"),
    "a clock of zero": (record(lambda d: d.update(clock_mhz=0)), "0 is not a positive number"),
    "a tile of zero": (record(lambda d: d["kernels"]["relu2"].update(tile=[0, 6])), "0 is not a whole number"),
    "half a lane": (record(lambda d: d["kernels"]["relu2"].update(unroll=[1, 0.5])), "0.5 is not a whole number"),
    "a dim twice": (record(lambda d: d["kernels"]["relu2"].update(order=[0, 0])), "not a permutation"),
    "lanes beyond the tile": (record(lambda d: d["kernels"]["relu2"].update(unroll=[1, 4])), "cannot unroll tile 6"),
    "lengths that differ": (record(lambda d: d["kernels"]["relu2"].update(tile=[4])), "differ in length"),
    "weights nowhere": (record(lambda d: d["kernels"]["relu2"].update(weights="disk")), "'disk' is unknown"),
    "a group before the first": (record(lambda d: d.update(groups={"relu2": -1})), "-1 is not a whole number"),
    "a FIFO without place": (record(lambda d: d.update(fifo_depths={"a": 0})), "0 is not a whole number"),
    "unknown numbers": (record(lambda d: d.update(quantize="w2a2")), "'w2a2' is unknown"),
}


@pytest.mark.parametrize("name", RECORDS)
def test_records_that_are_no_design(name: str, tmp_path: Path) -> None:
    text, what = RECORDS[name]
    (tmp_path / "design.json").write_text(text)
    with pytest.raises(PenstockError) as caught:
        Design.load(tmp_path / "design.json")
    assert caught.value.code == "bad-design"
    assert "design.json" in caught.value.where
    assert what in caught.value.what


def test_a_design_written_and_read_is_the_same(tmp_path: Path) -> None:
    design = kernel(tile=(2, 3, 6), unroll=(1, 3, 2), order=(2, 0, 1), weights="stream")
    design.save(tmp_path / "design.json")
    read = Design.load(tmp_path / "design.json")
    assert read == replace(design, kernels={n: KernelDesign(k.tile, k.unroll, k.order, k.weights)
                                            for n, k in design.kernels.items()})  # fmt: skip
    assert read.digest() == design.digest()


def edited(old: str, new: str) -> Program:
    text = str(program().module)
    assert old in text
    return program().with_module(Parser(make_context(), text.replace(old, new)).parse_module())


@pytest.mark.parametrize(
    ("old", "new", "code", "where", "what"),
    [
        ('penstock.layer = "relu2"', 'penstock.layer = "dense1"', "not-canonical", "dense1", "share this layer name"),
        ('{penstock.layer = "relu2"}', "{}", "not-canonical", "linalg.generic", "carries no layer name"),
        ("4x6x", "0x6x", "unsupported-shape", "dense1", "iteration space [0, 6, 6] is not static and positive"),
        ('penstock.name = "x", ', "", "not-canonical", "@main", "argument 0 of @main has no penstock.name"),
    ],
)
def test_programs_that_are_not_canonical(old: str, new: str, code: str, where: str, what: str) -> None:
    design = base()
    with pytest.raises(PenstockError) as caught:
        lower(edited(old, new), design)
    assert (caught.value.code, caught.value.where) == (code, where)
    assert what in caught.value.what
