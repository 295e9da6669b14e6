"""Operator bindings: from the design record through the schedule to the pragma, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from xdsl.dialects.builtin import DictionaryAttr, IntAttr, StringAttr
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.context import make_context
from penstock.compiler.pipeline import Lowered, lower
from penstock.compiler.platforms import load_platform
from penstock.compiler.program import Program
from penstock.compiler.schedule import load_library, schedule_nest
from penstock.profiling.network import network_of
from tests.compiler.designs import Dense, build_network
from tests.compiler.test_chain import check_csim, check_levels
from tests.compiler.test_hls import emitted
from tests.goldens import check_golden
from tests.profiling.model_profiler import model_design

GOLDENS = Path(__file__).parent / "goldens" / "bindings"


def program_of(kind: str) -> Program:
    return build_network(kind, 2, 4, (Dense(6, False, False),), seed=3)


def bound(
    kind: str,
    bindings: dict[str, str],
    platform: str = "u55c",
    layer: str = "fc0",
    unroll: tuple[int, ...] = (1, 3, 2),
    clock_mhz: float = 100.0,
) -> Lowered:
    """fc0 of two by three lanes, its operators built as asked."""
    program = program_of(kind)
    design = default_design(read_graph(program.module), platform, clock_mhz)
    kernels = dict(design.kernels) | {"fc0": KernelDesign((2, 6, 4), unroll, (0, 1, 2))}
    kernels[layer] = replace(kernels[layer], bindings=bindings)
    return lower(program, replace(design, kernels=kernels))


@pytest.mark.parametrize(
    ("kind", "bindings"),
    [
        ("float32", {"arith.addf": "fabric", "arith.mulf": "dsp"}),
        ("float32", {"arith.addf": "5 dsp, fabric"}),
        ("int8", {"arith.muli": "fabric"}),
    ],
)
def test_the_record_keeps_bindings(kind: str, bindings: dict[str, str]) -> None:
    kernel = KernelDesign((2, 6, 4), (1, 3, 2), (0, 1, 2), bindings=bindings)
    design = Design("u55c", 300.0, {"fc0": kernel, "fc0.relu": KernelDesign((2, 6), (1, 1), (0, 1))})
    document = design.to_json()
    assert document["kernels"]["fc0"]["bindings"] == bindings
    assert "bindings" not in document["kernels"]["fc0.relu"]
    assert Design.from_json(document) == design
    other = replace(design, kernels={**design.kernels, "fc0": replace(kernel, bindings={})})
    assert other.digest() != design.digest()


@pytest.mark.parametrize(("kind", "operation"), [("float32", "arith.addf"), ("int8", "arith.muli")])
def test_goldens(kind: str, operation: str, tmp_path: Path) -> None:
    for choice in ("dsp", "fabric"):
        text = (emitted(bound(kind, {operation: choice}), tmp_path / choice) / "hls/penstock_top.cpp").read_text()
        assert text.count("#pragma HLS BIND_OP") > 0
        if choice == "fabric":
            check_golden(GOLDENS / f"{kind}.cpp", text)


def test_mixed_operators_are_loops_of_their_own(tmp_path: Path) -> None:
    """Of twelve lanes' six tree sums and six running ones, eight are built of DSPs: the tree, and two of the others."""
    mixed = bound("float32", {"arith.addf": "8 dsp, fabric"}, unroll=(2, 3, 2))
    text = (emitted(mixed, tmp_path) / "hls/penstock_top.cpp").read_text()
    check_golden(GOLDENS / "mixed.cpp", text)
    for run in ("lane = 0; lane < 2", "lane = 2; lane < 6"):
        assert text.count(run) == 1
    assert text.count("op=fadd impl=fulldsp") == 2
    assert text.count("op=fadd impl=fabric") == 1


@pytest.mark.parametrize("count", [1, 6, 8, 11, 12, 40])
def test_a_mixture_takes_its_share_of_both_and_as_long_as_the_slower(count: int) -> None:
    board = load_platform("xcu280")
    library = load_library(board.operators, 300.0)

    def nest_of(binding: str):
        lowered = bound("float32", {"arith.addf": binding}, unroll=(2, 3, 2), platform="xcu280", clock_mhz=300.0)
        nest = next(n for t, n in lowered.nests if t.sym_name.data == "fc0")
        return schedule_nest(nest, library)

    dsp, fabric, mixed = nest_of("dsp"), nest_of("fabric"), nest_of(f"{count} dsp, fabric")
    adders = {kind: library.find("arith.addf", 32, kind) for kind in ("dsp", "fabric")}
    built = min(count, 12)
    assert mixed.logic.dsp == fabric.logic.dsp + built * adders["dsp"].dsp
    assert mixed.logic.lut == fabric.logic.lut - built * (adders["fabric"].lut - adders["dsp"].lut)
    slower = adders["dsp"].latency - adders["fabric"].latency
    assert mixed.depth == fabric.depth + slower * (1 if count <= 6 else 2)
    assert dsp.depth == fabric.depth + 2 * slower
    assert (mixed.ii, mixed.iterations) == (fabric.ii, fabric.iterations) if count <= 6 else mixed.ii >= fabric.ii


def test_fabric_adders_are_no_dsps_and_quicker() -> None:
    board = load_platform("u55c")
    library = load_library(board.operators, 100.0)
    lowered = {choice: bound("float32", {"arith.addf": choice}) for choice in ("dsp", "fabric")}
    figures = {name: model_design(network_of(one.top, library), board, 100.0) for name, one in lowered.items()}
    # six lanes: a tree adder and a running sum for each three, two DSPs each
    assert figures["dsp"].resources.dsp - figures["fabric"].resources.dsp == 2 * (3 + 3)
    assert figures["dsp"].resources.lut < figures["fabric"].resources.lut


def test_computes_the_same(tmp_path: Path) -> None:
    kinds = (("float32", "arith.addf"), ("int8", "arith.muli"))
    batch = [bound(kind, {op: choice}) for kind, op in kinds for choice in ("fabric", "4 dsp, fabric")]
    batch.append(bound("float32", {"arith.addf": "8 dsp, 1 fabric, dsp"}, unroll=(2, 3, 2)))
    for lowered in batch:
        check_levels(lowered)
    check_csim(batch, tmp_path)


def test_bindings_survive_as_text() -> None:
    lowered = bound("float32", {"arith.addf": "5 dsp, fabric"})
    read = Parser(make_context(), str(lowered.stream)).parse_module()
    read.verify()
    assert str(read) == str(lowered.stream)
    assert str(lowered.stream).count('bindings {arith.addf = "5 dsp, fabric"}') == 1


@pytest.mark.parametrize(
    ("bindings", "platform", "layer", "named", "limit"),
    [
        ({"arith.muli": "dsp"}, "u55c", "fc0", "computes no arith.muli", "arith.addf, arith.mulf"),
        ({"arith.addf": "uram"}, "u55c", "fc0", "'uram'", "dsp, fabric"),
        ({"arith.addf": "2 dsp, uram"}, "u55c", "fc0", "'2 dsp, uram'", "dsp, fabric"),
        ({"arith.addf": "0 dsp, fabric"}, "u55c", "fc0", "'0 dsp, fabric'", "dsp, fabric"),
        ({"arith.addf": "2 dsp"}, "u55c", "fc0", "'2 dsp'", "dsp, fabric"),
        ({"arith.mulf": "fabric"}, "u55c", "fc0", "nothing to choose", "as dsp only"),
        ({"arith.addf": "fabric"}, "ecp5-85k", "fc0.relu", "nothing to choose", "as fabric only"),
    ],
)
def test_what_does_not_exist_is_named(
    bindings: dict[str, str], platform: str, layer: str, named: str, limit: str
) -> None:
    with pytest.raises(PenstockError) as caught:
        bound("float32", bindings, platform, layer)
    assert named in caught.value.what
    assert limit in caught.value.limit
    assert caught.value.where.startswith(f"{layer}: bindings.")


@pytest.mark.parametrize("given", [["dsp"], {"arith.addf": 3}, "fabric"])
def test_a_record_of_another_form_is_named(given: object) -> None:
    document = Design("u55c", 300.0, {"fc0": KernelDesign((1,), (1,), (0,))}).to_json()
    document["kernels"]["fc0"]["bindings"] = given
    with pytest.raises(PenstockError, match=r"fc0\.bindings"):
        Design.from_json(document)


def test_the_verifier_knows_bindings() -> None:
    nest = next(n for t, n in bound("float32", {"arith.addf": "fabric"}).nests if t.sym_name.data == "fc0")
    wrongs = ({}, {"arith.addf": IntAttr(1)}, {"arith.addf": StringAttr("dsp dsp")})
    for wrong in map(DictionaryAttr, wrongs):
        nest.properties["bindings"] = wrong
        with pytest.raises(VerifyException, match="must name an implementation"):
            nest.verify()
        with pytest.raises(VerifyException):
            schedule_nest(nest, load_library("vitis-ultrascale-plus", 300.0))
