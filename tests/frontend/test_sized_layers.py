"""A language model whose layers share one accelerator, and of which each call says its sizes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import import_model, make_context
from penstock.compiler.interpreter.calls import run_calls
from penstock.compiler.interpreter.linalg import run
from penstock.compiler.lengths import ByLength, parse_lengths
from penstock.compiler.pipeline import prepare
from penstock.compiler.program import Program
from penstock.compiler.saved_program import load_checked
from penstock.compiler.transforms.resize_dims import at_lengths
from penstock.services.jobs.foretelling import run_quantised
from tests.frontend import sized_models

MODELS = Path(sized_models.__file__)
CHUNK, CACHE = 3, 6


@pytest.fixture(scope="module")
def decoder() -> Program:
    return import_model(f"{MODELS}:model#", dims=parse_lengths([f"chunk=1..{CHUNK}", f"cache=1..{CACHE}"]))


@pytest.fixture(scope="module")
def quantised(decoder: Program) -> Program:
    return prepare(decoder, "w8a8")


def test_what_follows_from_the_tokens_of_a_call_and_what_from_the_rows_that_it_sees(decoder: Program) -> None:
    chunk, cache = (ByLength.of({name: 1}) for name in ("chunk", "cache"))
    assert decoder.lengths is not None
    assert decoder.layers is not None
    assert decoder.host is not None
    sizes = dict(zip((port.name for port in decoder.signature.inputs), decoder.lengths.inputs, strict=True))
    places = {state.port: state.positions for state in decoder.states}
    assert len(places) == 2
    assert all(sizes[port or ""] == (cache, None) for port in places)
    assert decoder.lengths.outputs == ((chunk, None),) * 3
    size = {"size": {"factors": {"cache": 1}, "offset": 0}}
    assert decoder.host.graph["positions"] == dict.fromkeys(places.values(), size)
    assert [port["shape"] for port in decoder.layers.graph["inputs"]] == [
        [{"size": {"factors": {"chunk": 1}, "offset": 0}}]
    ] * 2
    assert [node["args"] for node in decoder.layers.graph["nodes"] if "arange" in node["op"]] == [[0, size]]


def calls_of(pieces: Sequence[int]) -> tuple[list[list[Array]], list[int]]:
    """So many tokens a call, and how many rows are there after each."""
    tokens = np.random.default_rng(len(pieces)).integers(0, sized_models.TOKENS, sum(pieces))
    ends = [int(end) for end in np.cumsum(pieces)]
    return [
        [tokens[end - count : end], np.arange(end - count, end)] for count, end in zip(pieces, ends, strict=True)
    ], ends


PIECES = st.lists(st.integers(1, CHUNK), min_size=1, max_size=CACHE).filter(lambda pieces: sum(pieces) <= CACHE)


@settings(max_examples=15, deadline=None)
@given(PIECES)
def test_a_text_in_pieces_is_answered_as_pytorch_does(decoder: Program, pieces: list[int]) -> None:
    module, _ = sized_models.model(CHUNK, CACHE)
    program = prepare(decoder)
    calls, ends = calls_of(pieces)

    def run_layer(one: Program, passed: Sequence[Array]) -> list[Array]:
        rest = iter(passed)
        given = [one.params[p.name] if p.name in one.params else next(rest) for p in one.signature.inputs]
        answers = run(one, one.quantise_inputs(given))
        return [a.reshape(p.shape) for a, p in zip(answers, one.signature.outputs, strict=True)]

    with torch.no_grad():
        wanted = [module(*map(torch.from_numpy, call)).numpy() for call in calls]
    for rows in (ends, ()):  # as little of the caches as there has to be, and all of it
        found = run_calls(program, calls, run_layer, resize=at_lengths, rows=rows)
        for (one,), other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


@settings(max_examples=15, deadline=None)
@given(PIECES)
def test_integers_are_the_same_in_pieces_and_token_by_token(quantised: Program, pieces: list[int]) -> None:
    (calls, ends), (tokens, places) = calls_of(pieces), map(np.concatenate, zip(*calls_of(pieces)[0], strict=True))

    def answers(calls: list[list[Array]], rows: Sequence[int]) -> list[Array]:
        found = run_calls(
            quantised, calls, lambda one, given: run_quantised(one, [given])[0], resize=at_lengths, rows=rows
        )
        return [scores for (scores,) in found]

    one_by_one = answers([[tokens[n : n + 1], places[n : n + 1]] for n in range(len(tokens))], range(1, CACHE + 1))
    for end, scores in zip(ends, answers(calls, ends), strict=True):
        np.testing.assert_array_equal(scores, one_by_one[end - 1])


def test_of_rows_for_one_place_the_last_counts(decoder: Program) -> None:
    """A call that has to be longer than its tokens repeats the last of them."""
    program = prepare(decoder)
    assert program.host is not None
    padded, whole = ([np.array([1, *[2] * n]), np.array([0, *[1] * n])] for n in (2, 1))

    def run_layer(one: Program, passed: Sequence[Array]) -> list[Array]:
        rest = iter(passed)
        given = [one.params[p.name] if p.name in one.params else next(rest) for p in one.signature.inputs]
        answers = run(one, one.quantise_inputs(given))
        return [a.reshape(p.shape) for a, p in zip(answers, one.signature.outputs, strict=True)]

    after = [np.array([3]), np.array([2])]
    ours, theirs = (
        run_calls(program, [call, after], run_layer, resize=at_lengths, rows=[2, 3]) for call in (padded, whole)
    )
    np.testing.assert_allclose(np.stack(ours), np.stack(theirs), rtol=1e-5, atol=1e-6)


def test_it_is_kept_and_read_again(decoder: Program, tmp_path: Path) -> None:
    decoder.save(tmp_path)
    read = load_checked(tmp_path, make_context(), 1 << 24)
    assert read.layers is not None
    assert read.host is not None
    assert decoder.layers is not None
    assert decoder.host is not None
    assert decoder.lengths is not None
    assert read.lengths is not None
    assert (read.layers.graph, read.host.graph) == (decoder.layers.graph, decoder.host.graph)
    for one, other in zip(read.lengths.samples, decoder.lengths.samples, strict=True):
        assert [x.shape for x in one.arrays] == [x.shape for x in other.arrays]
        assert all(np.array_equal(a, b) for a, b in zip(one.arrays, other.arrays, strict=True))
        assert len(one.given) == 2


@pytest.mark.parametrize(
    ("file", "change", "words"),
    [
        ("host", {"size": {"factors": {"depth": 1}, "offset": 0}}, "follows from 'depth', which no call says"),
        ("host", {"size": {"factors": 3, "offset": 0}}, "a size is "),
        ("host", {"size": {"factors": [["seq", 1]], "offset": 0}}, "a size is "),
        ("layers", {"size": {"factors": {"cache": 1.5}, "offset": 0}}, "a size is"),
        ("host", {"size": {"factors": {"cache": 1}, "offset": 1 << 29}}, "over 268435456 elements"),
    ],
)
def test_what_was_written_by_somebody_else_is_refused(
    decoder: Program, tmp_path: Path, file: str, change: object, words: str
) -> None:
    decoder.save(tmp_path)
    path = tmp_path / file / "graph.json"
    document = json.loads(path.read_text())
    graph = document["graph"]
    node = next(one for one in graph.get("before", graph.get("nodes")) if one["op"] != "penstock.layer")
    node["args"].append([change])
    path.write_text(json.dumps(document))
    with pytest.raises(PenstockError, match=words):
        load_checked(tmp_path, make_context(), 1 << 24)
