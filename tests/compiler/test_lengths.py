"""Sizes that each call says: one accelerator does every length, with the values that the model has there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from penstock.compiler.analysis.default_design import default_design
from penstock.compiler.analysis.graph import read_graph
from penstock.compiler.analysis.lengths import SizedGraph, reshaped
from penstock.compiler.design import Design
from penstock.compiler.dialects.nest import NestOp
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.lengths import import_lengths
from penstock.compiler.interpreter import linalg as linalg_interpreter
from penstock.compiler.layout import crop, pad
from penstock.compiler.lengths import ByLength, Length
from penstock.compiler.model_lengths import ModelLengths
from penstock.compiler.pipeline import Lowered, lower, prepare
from penstock.compiler.pipeline.emit import emit_code
from penstock.compiler.pipeline.lower import at_lengths
from penstock.compiler.pipeline.verify import compare, make_inputs
from penstock.compiler.program import Program
from penstock.compiler.reference import parse_reference
from penstock.profiling.csim import build_csim
from penstock.profiling.tool_runner import ToolRunner
from tests.compiler.designs import Dense, build_network, designs

BATCH = 6


def lengths_of(program: Program, length: Length) -> Program:
    """A drawn network whose rows each call says."""
    rows = ByLength.of({length.name: 1})
    inputs = tuple((rows, None) if port.name == "x" else (None,) for port in program.signature.inputs)
    outputs = tuple((rows, None) for _ in program.signature.outputs)
    return replace(program, lengths=ModelLengths((length,), inputs, outputs))


def by_rows(program: Program, design: Design) -> Design:
    """The design with every tile along the dim that varies a row, or all of them."""
    sized = SizedGraph(read_graph(program.module))
    kernels = dict(design.kernels)
    for operation in sized.graph.operations:
        own = kernels[operation.layer]
        kept = [
            (t, u) if count is None else (trip, 1) if t == trip else (1, 1)
            for t, u, trip, count in zip(own.tile, own.unroll, operation.trips, sized.of_loops(operation), strict=True)
        ]
        tile, unroll = zip(*kept, strict=True)
        kernels[operation.layer] = replace(own, tile=tile, unroll=unroll)
    return replace(design, kernels=kernels)


def check_length(lowered: Lowered, sizes: dict[str, int]) -> None:
    """linalg at this length = the accelerator told of it."""
    own = at_lengths(lowered, sizes)
    for inputs in make_inputs(own, random_sets=1):
        wanted = linalg_interpreter.run(own.program, inputs)
        exact = all(np.issubdtype(value.dtype, np.integer) for value in wanted)
        found = compare("stream", f"linalg at {sizes}", own.run_stream(inputs), wanted, 0.0 if exact else 1e-4)
        assert found.equal, found


@settings(max_examples=12, deadline=None)
@given(data=st.data(), kind=st.sampled_from(["int8", "float32"]), seed=st.integers(0, 99))
def test_any_design_by_rows_does_every_length(data: st.DataObject, kind: str, seed: int) -> None:
    dense = st.builds(Dense, st.sampled_from([1, 2, 4, 6]), st.booleans(), st.booleans())
    layers, flags = data.draw(st.lists(dense, min_size=1, max_size=2)), st.booleans()
    network = build_network(kind, BATCH, 4, tuple(layers), seed, tap=data.draw(flags), rotate=data.draw(flags))
    program = prepare(lengths_of(network, Length("rows", 1, BATCH)))
    design = by_rows(program, data.draw(designs(program.module)))
    try:
        lowered = lower(program, design)
    except PenstockError as error:
        if error.code != "length-unsupported":
            raise
        reject()  # what is made at one length and not at another is refused, never wrong
    for rows in (1, 2, 5, BATCH):
        check_length(lowered, {"rows": rows})


def test_lanes_along_a_length_take_its_step() -> None:
    network = build_network("int8", 12, 4, (Dense(6, transposed=False, skip=False),), 3)
    program = prepare(lengths_of(network, Length("rows", 4, 12, 4)))
    start = default_design(read_graph(program.module), "u55c", 300.0)
    kernels = {name: replace(k, tile=(4, *k.tile[1:]), unroll=(4, *k.unroll[1:])) for name, k in start.kernels.items()}
    lowered = lower(program, replace(start, kernels=kernels))
    for rows in (4, 8, 12):
        check_length(lowered, {"rows": rows})


def test_lanes_that_do_not_fit_every_length_are_refused_by_layer() -> None:
    network = build_network("int8", BATCH, 4, (Dense(6, transposed=False, skip=False),), 3)
    program = prepare(lengths_of(network, Length("rows", 1, BATCH)))
    start = default_design(read_graph(program.module), "u55c", 300.0)
    kernels = {name: replace(k, tile=(3, *k.tile[1:]), unroll=(3, *k.unroll[1:])) for name, k in start.kernels.items()}
    with pytest.raises(PenstockError) as raised:
        lower(program, replace(start, kernels=kernels))
    assert raised.value.code == "bad-design"
    assert raised.value.where.startswith("fc0")


@pytest.fixture(scope="module")
def attention() -> Lowered:
    """A block of GPT-2 in W8A8: softmax and both products of attention go over the length twice."""
    program = prepare(
        import_lengths(parse_reference("zoo:gpt2?d=8&heads=2&ffn=8"), [Length("seq", 1, 9)], lambda _: None), "w8a8"
    )
    return lower(program, default_design(read_graph(program.module), "u55c", 300.0, "w8a8"))


def test_a_block_does_every_length(attention: Lowered) -> None:
    for seq in range(1, 10):
        check_length(attention, {"seq": seq})


def test_numbers_follow_from_the_length(attention: Lowered) -> None:
    """The loops at a length are those of a design that is made for it alone."""
    counted = [loop for op in attention.stream.walk() if isinstance(op, NestOp) for loop in op.loops.data if loop.count]
    assert counted
    for seq in (4, 7):
        own = at_lengths(attention, {"seq": seq})
        alone = lower(own.program, own.design)
        for mine, theirs in zip(own.nests, alone.nests, strict=True):
            assert mine[1].trips == theirs[1].trips


def test_pytorch_answers_at_other_lengths(attention: Lowered) -> None:
    known = attention.program.lengths
    assert known is not None
    assert [sample.lengths["seq"] for sample in known.samples] == [1, 3, 6]
    for sample in known.samples:
        own = at_lengths(attention, sample.lengths)
        program = own.program
        answers = own.run_stream(program.quantise_inputs(sample.inputs))
        shaped = [a.reshape(p.shape) for a, p in zip(answers, program.signature.outputs, strict=True)]
        found = compare("stream", "PyTorch", program.dequantise_outputs(shaped), sample.outputs, 0.1)
        assert found.equal, found


def test_what_is_known_of_lengths_is_kept(attention: Lowered, tmp_path: Path) -> None:
    known = attention.program.lengths
    assert known is not None
    known.save(tmp_path)
    again = ModelLengths.load(tmp_path)
    assert (again.lengths, again.inputs, again.outputs, again.params) == (
        known.lengths, known.inputs, known.outputs, known.params
    )  # fmt: skip
    for one, other in zip(again.samples, known.samples, strict=True):
        assert one.lengths == other.lengths
        for a, b in zip((*one.inputs, *one.outputs), (*other.inputs, *other.outputs), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("seq", "no range"), ("seq=8", "no range"), ("seq=0..8", "at least 1"), ("seq=8..8", "not below"),
        ("seq=1..8/4", "multiples of 4"), ("2seq=1..8", "no range"), ("seq=1..8/0", "at least 1"),
    ],
)  # fmt: skip
def test_bad_ranges_are_named(text: str, said: str) -> None:
    with pytest.raises(PenstockError) as raised:
        Length.parse(text)
    assert said in raised.value.what


def test_ranges_are_written_as_they_are_read() -> None:
    for text in ("seq=1..64", "seq=16..64/16"):
        assert str(Length.parse(text)) == text


def test_sizes_under_another_shape() -> None:
    seq = ByLength.of({"seq": 1})
    assert reshaped((1, 8, 6), (None, seq, None), (8, 6)) == (seq, None)
    assert reshaped((8, 6), (seq, None), (8, 2, 1, 3)) == (seq, None, None, None)
    assert reshaped((8, 6), (seq, None), (48,)) == (seq.times(6),)
    assert reshaped((8, 6), (seq, None), (2, 4, 6)) is None
    assert reshaped((8, 8), (seq, seq), (64,)) is None


@pytest.mark.parametrize(
    ("reference", "length", "said"),
    [
        ("zoo:gpt2?seq=8", Length("seq", 1, 8), "one number in the model and a range"),
        ("zoo:mlp", Length("sequence", 1, 8), "sequence"),
        ("zoo:gpt2", Length("heads", 1, 4), "heads"),
    ],
)
def test_models_without_such_a_length_are_refused(reference: str, length: Length, said: str) -> None:
    with pytest.raises(PenstockError) as raised:
        import_lengths(parse_reference(reference), [length], lambda _: None)
    assert said in str(raised.value)


def test_cpp_follows_two_lengths(tmp_path: Path) -> None:
    """A cache and the rows behind it: one loop goes over both, and the C++ counts the places of all loops together."""
    lengths = [Length("seq", 1, 3), Length("cache", 1, 4)]
    reference = parse_reference("zoo:gpt2?mode=decode&d=8&heads=2&ffn=8")
    program = prepare(import_lengths(reference, lengths, lambda _: None), "w8a8")
    lowered = lower(program, default_design(read_graph(program.module), "u55c", 300.0, "w8a8"))
    emit_code(lowered, tmp_path, part="xcu55c-fsvh2892-2L-e", clock_mhz=300.0)
    csim = build_csim(tmp_path, ToolRunner())
    whole = program.signature
    for sizes in ({"seq": 1, "cache": 1}, {"seq": 3, "cache": 2}, {"seq": 2, "cache": 4}):
        own = at_lengths(lowered, sizes)
        inputs = make_inputs(own, random_sets=1)[0]
        frame = [pad(value, port.shape) for value, port in zip(inputs, whole.inputs, strict=True)]
        (answer,) = csim.run_frames([[*frame, np.array(list(sizes.values()), np.int32)]])
        for got, port, cut, wanted in zip(
            answer, whole.outputs, own.program.signature.outputs, own.run_itensor(inputs), strict=True
        ):
            np.testing.assert_array_equal(crop(got.reshape(port.shape), cut.shape).reshape(-1), wanted.reshape(-1))


def test_frames_one_after_the_other_are_as_many_as_a_call_says() -> None:
    """Windows slide along other dims."""
    reference = parse_reference("zoo:resnet8?channels=2&side=8")
    program = prepare(import_lengths(reference, [Length("batch", 1, 3)], lambda _: None))
    lowered = lower(program, default_design(read_graph(program.module), "u55c", 300.0))
    for batch in (1, 3):
        check_length(lowered, {"batch": batch})
