"""What a design holds of the tensors between its kernels: the same tensors are counted on both sides."""

from __future__ import annotations

import pytest

from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.dialects.types import tensor_bits
from penstock.compiler.frontend import import_model
from penstock.compiler.pipeline import prepare
from penstock.compiler.program import Program
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.waiting import between_kernels
from penstock.profiling.handed_over import loaded_channels, stored_channels


@pytest.fixture(scope="module")
def program() -> Program:
    """One token of a decoder block, with 16 earlier ones."""
    return prepare(import_model("zoo:gpt2?size=small&mode=decode&seq=1&cache=16"), "w8a8")


def test_channels_of_inputs_caches_and_results_hold_nothing_between_kernels(program: Program) -> None:
    evaluator = Evaluator.create(program, "u55c")
    design = evaluator.evaluate(evaluator.space.fitted_setting()).design
    network = evaluator.assembler.network(design)
    loaded, stored = loaded_channels(network), stored_channels(network)
    kernels = {op.layer.replace(".", "_") for op in read_graph(program.module).operations}
    waiting = network.channels.keys() - loaded - stored
    assert not loaded & stored
    for name, (writer, reader) in network.ends().items():
        if writer in kernels:
            assert name not in loaded, "it is computed"
        if reader in kernels:
            assert name not in stored, "it is computed with"
        if writer.startswith(("load", "unpack")):
            assert name in loaded
        if reader.startswith(("pack", "store")):
            assert name in stored
    assert "convert.concat.key_cache.block" in loaded, "mostly the cache"
    assert "convert_attn_cat_part__concat_key_cache" in waiting, "the row that is joined to it"
    assert "convert.attn.add.block" in waiting


def test_tensors_between_kernels_are_those_that_one_makes_and_another_reads(program: Program) -> None:
    graph = read_graph(program.module)
    last = graph.operations[-1].result
    assert last in graph.returned
    made = {op.layer: op.result for op in graph.operations}
    assert made["attn.add_2"] in graph.returned, "the keys of the token, which it attends to as well"
    everything = sum(tensor_bits(value) for value in made.values())
    assert between_kernels(graph) == everything - tensor_bits(last)
