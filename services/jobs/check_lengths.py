"""The correctness chain of an accelerator whose sizes each call says, at other lengths than the largest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.interpreter import linalg as linalg_interpreter
from penstock.compiler.interpreter.calls import run_calls
from penstock.compiler.layout import crop, pad
from penstock.compiler.lengths import Length
from penstock.compiler.model_lengths import LengthSample
from penstock.compiler.pipeline.lower import Lowered, at_lengths
from penstock.compiler.pipeline.verify import (
    FLOAT_TOLERANCE,
    TOLERANCES,
    Comparison,
    compare,
    make_inputs,
    stream_work,
)
from penstock.compiler.transforms.resize_dims import at_lengths as program_at
from penstock.profiling.csim import Csim
from penstock.services.jobs.foretelling import run_quantised

_MOST_SLOTS = 20_000_000
"""Of the stream interpreter at all lengths together; beyond, the C++ answers for it."""
_WITH_RANDOM = 5
"""Lengths with random inputs, the least and the largest among them."""

Answers = list[list[Array]]


def check_lengths(lowered: Lowered, csim: Csim) -> tuple[list[Comparison], Answers]:
    """Every level and the C++ at those lengths that PyTorch answered at, and at some with random inputs.

    Also what the accelerator must answer to PyTorch's examples, in its own numbers.
    """
    known = lowered.program.lengths
    if known is None:
        return [], []
    found: list[Comparison] = []
    expected: Answers = []
    slots = 0
    for sample in known.samples:
        own = at_lengths(lowered, sample.lengths)
        inputs, outputs = own.program.quantise_inputs(sample.inputs), own.program.signature.outputs
        slots += stream_work(own)
        found += _levels(own, [inputs], sample.lengths, streams=slots < _MOST_SLOTS)
        found.append(_beside_csim(lowered, own, csim, [inputs], sample.lengths))
        answers = [o.reshape(p.shape) for o, p in zip(own.run_itensor(inputs), outputs, strict=True)]
        real, level = own.program.dequantise_outputs(answers), f"interpreter at {_said(sample.lengths)}"
        found.append(compare(level, "PyTorch", real, sample.outputs, TOLERANCES[lowered.design.quantize]))
        if sample.given:
            found.append(_whole(lowered, sample))
        expected.append(answers)
    for sizes in _others(known.lengths, {tuple(sample.lengths.values()) for sample in known.samples}):
        own = at_lengths(lowered, sizes)
        inputs = make_inputs(own, random_sets=1)
        found += [*_levels(own, inputs, sizes, streams=False), _beside_csim(lowered, own, csim, inputs, sizes)]
    return found, expected


def _others(lengths: Sequence[Length], seen: set[tuple[int, ...]]) -> Iterator[dict[str, int]]:
    for number in range(_WITH_RANDOM):
        part = (_WITH_RANDOM - 1, number)
        sizes = {one.name: (one.least + part[1] * (one.most - one.least) // part[0]) * one.step for one in lengths}
        if tuple(sizes.values()) not in seen:
            seen.add(tuple(sizes.values()))
            yield sizes


def _levels(
    own: Lowered, inputs: Sequence[Sequence[Array]], sizes: Mapping[str, int], *, streams: bool
) -> list[Comparison]:
    said, program = _said(sizes), own.program
    itensor = _flat([own.run_itensor(one) for one in inputs])
    exact = all(np.issubdtype(np.dtype(port.dtype), np.integer) for port in program.signature.outputs)
    linalg = _flat([linalg_interpreter.run(program, one) for one in inputs])
    found = [compare(f"itensor at {said}", "linalg", itensor, linalg, 0.0 if exact else FLOAT_TOLERANCE)]
    if streams:
        found.append(compare(f"stream at {said}", "itensor", _flat([own.run_stream(one) for one in inputs]), itensor))
    return found


def _beside_csim(
    lowered: Lowered, own: Lowered, csim: Csim, inputs: Sequence[Sequence[Array]], sizes: Mapping[str, int]
) -> Comparison:
    """The C++ is given what a host gives: inputs as large as its memories, and the lengths in steps."""
    known = lowered.program.lengths
    assert known is not None
    whole, mine = lowered.program.signature, own.program.signature
    steps = np.array([sizes[one.name] // one.step for one in known.lengths], np.int32)
    frames = [[*(pad(x, port.shape) for x, port in zip(one, whole.inputs, strict=True)), steps] for one in inputs]
    answers = [
        [crop(o.reshape(p.shape), q.shape) for o, p, q in zip(answer, whole.outputs, mine.outputs, strict=True)]
        for answer in csim.run_frames(frames)
    ]
    itensor = _flat([own.run_itensor(one) for one in inputs])
    return compare(f"C++ at {_said(sizes)}", "itensor", _flat(answers), itensor)


def _whole(lowered: Lowered, sample: LengthSample) -> Comparison:
    """The model with its host's part at these sizes, layer by layer where layers share the accelerator."""
    (answers,) = run_calls(
        lowered.program, [sample.given], lambda one, given: run_quantised(one, [given])[0],
        resize=program_at, rows=[sample.lengths],
    )  # fmt: skip
    pairs = [(a, b) for a, b in zip(answers, sample.answered, strict=True) if b.dtype.kind == "f"]
    ours, theirs = [a for a, _ in pairs], [b for _, b in pairs]
    level = f"the whole at {_said(sample.lengths)}"
    return compare(level, "PyTorch", ours, theirs, TOLERANCES[lowered.design.quantize])


def _said(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


def _flat(sets: Sequence[Sequence[Array]]) -> list[Array]:
    return [array.reshape(-1) for one in sets for array in one]
