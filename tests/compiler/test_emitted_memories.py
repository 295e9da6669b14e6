"""What the pragmas of the emitted C++ make of memories, read by a parser of the tests' own, is what is reported."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import lower, prepare
from penstock.compiler.pipeline.emit import emit_code
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.finishing.finish import finish
from penstock.dse.finishing.placement import NO_PLACE
from tests.compiler.designs import Dense, build_network
from tests.fixtures.emitted_memories import read_folder
from tests.fixtures.hls_memories import BuiltMemory, read_code

QUICK = ("zoo:mlp", "zoo:attention", "zoo:gpt2?size=tiny")
ZOO = (*QUICK, "zoo:ffn", "zoo:llama?size=tiny", "zoo:qwen?size=tiny", "zoo:gemma?size=tiny")


def compared(evaluator: Evaluator, params: Mapping[str, Any], folder: Path) -> str:
    """Down to the C++, whose memories must be the placement's; what refuses it, where the space says that it must."""
    evaluation = evaluator.evaluate(dict(params))
    try:
        done = finish(evaluator, evaluation, simulate=False)
    except PenstockError as error:
        if error.code not in NO_PLACE or evaluation.feasible:
            raise
        return error.code
    emit_code(lower(evaluator.program, done.design), folder, part="part", clock_mhz=evaluator.clock_mhz)
    code = read_folder(folder)
    uses, network = done.placement.allocation.uses, evaluator.assembler.network(done.design)
    fifos = {name for name, channel in network.channels.items() if channel.kind == "stream"}
    reported = Counter(
        (u.kind, u.shape.words, u.shape.word_bits, u.shape.banks, u.copies)
        for name, u in uses.items()
        if name not in fifos and u.kind != "registers"
    )
    assert reported == Counter((m.kind, m.words, m.bits, m.banks, m.copies) for m in code.memories.values())
    resources = done.placement.resources
    if not evaluator.assembler.library.memory.own_modules:  # else no tool that reads pragmas builds it
        assert (resources.bram18, resources.uram) == (code.bram18, code.uram)
    return ""


@pytest.mark.parametrize("quantize", [None, "w8a8"], ids=["fp32", "w8a8"])
@pytest.mark.parametrize("model", [m if m in QUICK else pytest.param(m, marks=pytest.mark.slow) for m in ZOO])
def test_the_zoo_is_built_as_it_is_reported(model: str, quantize: str | None, tmp_path: Path) -> None:
    program = prepare(import_model(model), quantize)
    evaluator = Evaluator.create(program, "u55c", quantize=quantize)
    assert compared(evaluator, {}, tmp_path) == ""


def random_setting(evaluator: Evaluator, seed: int) -> dict[str, object]:
    chance = random.Random(seed)
    return {name: chance.choice(list(values)) for name, values in evaluator.space.choices.items()}


@pytest.mark.parametrize("platform", ["u55c", "zcu104", "ecp5-85k"])
@pytest.mark.parametrize("kind", ["float32", "int8"])
def test_designs_drawn_from_the_space_are_built_or_have_no_place(kind: str, platform: str, tmp_path: Path) -> None:
    """None is chosen and then refused by what writes it."""
    layers = (Dense(24, True, True), Dense(36, False, False), Dense(10, True, False))
    evaluator = Evaluator.create(build_network(kind, 6, 32, layers, seed=2), platform)
    found = Counter(compared(evaluator, random_setting(evaluator, seed), tmp_path / str(seed)) for seed in range(4))
    assert found[""] > 0


@pytest.mark.slow
@pytest.mark.parametrize("quantize", [None, "w8a8"], ids=["fp32", "w8a8"])
@pytest.mark.parametrize("model", ZOO)
def test_designs_drawn_from_the_space_of_each_model(model: str, quantize: str | None, tmp_path: Path) -> None:
    evaluator = Evaluator.create(prepare(import_model(model), quantize), "u55c", quantize=quantize)
    for seed in range(3):
        compared(evaluator, random_setting(evaluator, seed), tmp_path / str(seed))


TEXT = """
typedef int8_t block_t[6][4];

static void fc(hls::stream<hls::vector<float, 2>> &in) {
    float acc[10][9];
#pragma HLS ARRAY_RESHAPE variable=acc cyclic factor=3 dim=2
#pragma HLS ARRAY_PARTITION variable=acc cyclic factor=4 dim=1
#pragma HLS BIND_STORAGE variable=acc type=ram_s2p impl=lutram
    float x0[4];
#pragma HLS ARRAY_PARTITION variable=x0 complete dim=0
#pragma HLS ARRAY_RESHAPE variable=fc__w complete dim=2
#pragma HLS BIND_STORAGE variable=fc__w type=rom_2p impl=bram
}

extern "C" void top(float *x) {
    hls::stream<hls::vector<float, 2>> a("a");
#pragma HLS STREAM variable=a depth=600 type=fifo
#pragma HLS BIND_STORAGE variable=a type=fifo impl=bram
    hls::stream_of_blocks<block_t, 2> b;
#pragma HLS ARRAY_RESHAPE variable=b complete dim=2
#pragma HLS BIND_STORAGE variable=b type=ram_s2p impl=uram
}
"""


def test_the_reader_knows_what_the_pragmas_mean() -> None:
    code = read_code(TEXT, "static const int8_t fc__w[600][4] = {")
    assert code.memories == {
        "fc.acc": BuiltMemory("lutram", 9, 96, 4),
        "fc.fc__w": BuiltMemory("bram", 600, 32, both_ports=True),
        "top.b": BuiltMemory("uram", 6, 32, copies=2),
    }
    assert code.fifos == {"a": BuiltMemory("bram", 600, 64)}
    assert (code.bram18, code.uram) == (2 + 4, 2)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("#pragma HLS BIND_STORAGE variable=acc type=ram_s2p impl=lutram\n", "", "the tool decides"),
        ("variable=acc cyclic factor=3 dim=2", "variable=acc cyclic factor=3 dim=1", "is cut twice"),
        ("variable=acc cyclic factor=3 dim=2", "variable=acc cyclic factor=3 dim=3", "dim 3 of"),
        ("variable=x0 complete dim=0", "variable=x1 complete dim=0", "not declared before"),
    ],
)
def test_the_reader_refuses_what_a_tool_would_do_on_its_own(old: str, new: str, said: str) -> None:
    assert old in TEXT
    with pytest.raises(AssertionError, match=said):
        read_code(TEXT.replace(old, new, 1), "static const int8_t fc__w[600][4] = {")
