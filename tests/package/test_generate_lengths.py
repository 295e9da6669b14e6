"""Text through one package for prompts and tokens: each call says how many tokens it takes and how much it sees."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.compiler.arrays import Array
from penstock.compiler.frontend import import_model
from penstock.compiler.interpreter.calls import run_calls
from penstock.compiler.lengths import parse_lengths
from penstock.compiler.program import Program
from penstock.compiler.runtime import penstock_runtime
from penstock.compiler.runtime.penstock_runtime import PackageError
from penstock.compiler.runtime.penstock_runtime.lengths import Lengths, at_sizes
from penstock.compiler.runtime.penstock_runtime.ports import Port
from penstock.compiler.transforms.resize_dims import at_lengths
from penstock.services.jobs.foretelling import run_quantised
from tests.frontend import sized_models
from tests.package.test_generate import characters, write_package

MODELS = Path(sized_models.__file__)
CHUNK, CACHE = 3, 8
LETTERS = "abcdefgh"
PROMPT = "bdfhacgb"
LLAMA = (
    "hf:llama?num_hidden_layers=2&hidden_size=64&intermediate_size=128&num_attention_heads=4&vocab_size=64"
    "&num_key_value_heads=2#"
)


def size(**factors: int) -> dict[str, Any]:
    offset = factors.pop("offset", 0)
    return {"factors": factors, "offset": offset}


def lengths(chunk: tuple[int, int, int], cache: tuple[int, int, int], places: dict[str, Any]) -> Lengths:
    of = [
        {"name": name, "low": low, "high": high, "step": step}
        for name, (low, high, step) in (("chunk", chunk), ("cache", cache))
    ]
    return Lengths(of, [], [], [[size(chunk=1)], [size(chunk=1)]], [places])


@pytest.mark.parametrize(
    ("cache", "places", "rows", "wanted"),
    [
        ((1, 16, 1), size(cache=1), 5, 5),
        ((1, 16, 1), size(cache=1), None, 16),
        ((4, 16, 4), size(cache=1), 1, 4),
        ((4, 16, 4), size(cache=1), 5, 8),
        ((1, 16, 1), size(cache=2, offset=1), 6, 3),
        ((1, 16, 1), size(cache=1), 99, 16),  # the places are refused, not the length
    ],
)
def test_a_call_sees_as_little_of_what_is_kept_as_it_must(
    cache: tuple[int, int, int], places: dict[str, Any], rows: int | None, wanted: int
) -> None:
    known = lengths((1, 4, 1), cache, places)
    ports = [Port(name, (4,), "int64") for name in ("token", "place")]
    given = [np.zeros(2, np.int64)] * 2
    assert known.of_call(ports, given, rows) == {"chunk": 2, "cache": wanted}


@pytest.mark.parametrize(("chunk", "tokens", "wanted"), [((1, 8, 1), 3, 3), ((4, 8, 4), 3, 4), ((2, 8, 1), 1, 2)])
def test_tokens_fill_up_the_least_call_that_takes_them(chunk: tuple[int, int, int], tokens: int, wanted: int) -> None:
    assert lengths(chunk, (1, 8, 1), size(cache=1)).least_of(0, tokens) == wanted


def test_inputs_of_two_lengths_are_refused() -> None:
    known = lengths((1, 4, 1), (1, 8, 1), size(cache=1))
    ports = [Port(name, (4,), "int64") for name in ("token", "place")]
    with pytest.raises(PackageError, match="chunk is 2 in input 'token' and 3 in 'place'"):
        known.of_call(ports, [np.zeros(2, np.int64), np.zeros(3, np.int64)])


def test_the_hosts_part_at_some_lengths() -> None:
    document = {"args": [0, {"size": size(cache=2, offset=-1)}, {"value": "size"}], "kwargs": {"size": [1, 2]}}
    assert at_sizes(document, {"cache": 5}) == {"args": [0, 9, {"value": "size"}], "kwargs": {"size": [1, 2]}}
    for kwargs, wanted in (({"size": {"size": size(cache=1)}}, 5), ({"size": {"value": "x"}}, {"value": "x"})):
        assert at_sizes({"kwargs": kwargs}, {"cache": 5}) == {"kwargs": {"size": wanted}}


def reference_of(program: Program, pieces: Sequence[Sequence[int]], ends: Sequence[int]) -> list[Array]:
    """The scores behind each piece, by the interpreter's integers."""
    calls = [[np.array(piece), np.arange(end - len(piece), end)] for piece, end in zip(pieces, ends, strict=True)]
    found = run_calls(
        program, calls, lambda one, given: run_quantised(one, [given])[0], resize=at_lengths, rows=list(ends)
    )
    return [scores for (scores,) in found]


def goes_on_as_integers(program: Program, package: Path, prompt: str) -> None:
    """Prompts of every length, read in pieces as large as a call takes, then token by token behind them."""
    said: list[Mapping[str, int]] = []
    with penstock_runtime.load(package) as accelerator:
        assert accelerator.lengths is not None
        assert accelerator.backend.call_list is not None
        tokenizer = accelerator.package.tokenizer()
        assert tokenizer is not None
        most = {one["name"]: one["high"] for one in accelerator.lengths.of}
        run_list = accelerator.backend.call_list

        def spied(frames: Sequence[Sequence[Any]], stays: frozenset[int]) -> list[list[Array]]:
            said.append(dict(zip(most, frames[0][-1].tolist(), strict=True)))
            return run_list(frames, stays)

        for by_list in (True, False):  # all layers by one start, and a start for each
            accelerator.backend.call_list = spied if by_list else None
            for length in range(1, len(prompt) + 1):
                said.clear()
                tokens = most["cache"] + 1 - length
                made = accelerator.generate(prompt[:length], tokens)
                given = tokenizer.encode(prompt[:length])
                whole = [*given, *made.tokens]
                cuts = [*range(0, length, most["chunk"]), *range(length, len(whole))]
                pieces = [whole[a:b] for a, b in pairwise(cuts)]
                ends = cuts[1:]
                scores = reference_of(program, pieces, ends)[-tokens:]
                assert made.tokens == [int(one.argmax()) for one in scores]
                if by_list:
                    sizes = [{"chunk": len(piece), "cache": end} for piece, end in zip(pieces, ends, strict=True)]
                    assert said == sizes
        with pytest.raises(PackageError, match="places for"):
            accelerator.generate(prompt, most["cache"])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Program, Path]:
    folder = tmp_path_factory.mktemp("generate")
    dims = parse_lengths([f"chunk=1..{CHUNK}", f"cache=1..{CACHE}"])
    imported = import_model(f"{MODELS}:model#", dims=dims)
    given = np.random.default_rng(1).integers(0, sized_models.TOKENS, CACHE)
    program = write_package(replace(imported, text=replace(characters(LETTERS), calibration=given)), folder, 1.5)
    return program, folder / "package"


@pytest.mark.slow
def test_prompt_and_tokens_come_from_one_accelerator(made: tuple[Program, Path]) -> None:
    goes_on_as_integers(*made, PROMPT)


@pytest.mark.slow
def test_calls_of_the_model_say_their_sizes_by_their_inputs(made: tuple[Program, Path]) -> None:
    """Two sessions in other pieces answer alike; what does not fit is refused with what would."""
    program, package = made
    tokens = np.array([1, 3, 5, 7, 0])
    wanted = reference_of(program, [[token] for token in tokens], range(1, 6))
    with penstock_runtime.load(package) as accelerator:
        for pieces in ((3, 2), (1, 1, 3), (2, 3)):
            accelerator.reset()
            ends = np.cumsum(pieces)
            for count, end in zip(pieces, ends, strict=True):
                scores = accelerator.run(tokens[end - count : end], np.arange(end - count, end))
                np.testing.assert_array_equal(scores, wanted[end - 1])
        with pytest.raises(PackageError, match="chunk is 4 - this accelerator takes 1 to 3"):
            accelerator.run(np.zeros(4, np.int64), np.arange(4))
        with pytest.raises(PackageError, match="rows would be written at 8 to 8 of 8 places"):
            accelerator.run(np.zeros(1, np.int64), np.array([8]))


@pytest.mark.slow
def test_the_command_goes_on_and_tests_itself(made: tuple[Program, Path]) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(made[1] / "run.py"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    tested = run("--self-test")
    assert tested.returncode == 0, tested.stdout
    assert "3 other sizes" in tested.stdout
    with penstock_runtime.load(made[1]) as accelerator:
        wanted = accelerator.generate(PROMPT[:4], 4).text
    assert run("--generate", PROMPT[:4], "--tokens", "4").stdout == wanted + "\n"


@pytest.mark.slow
def test_a_llama_of_transformers_goes_on_as_its_integers_do(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="needs transformers")
    imported = import_model(LLAMA, dims=parse_lengths(["chunk=1..4", "cache=4..12/4"]))
    given = np.random.default_rng(1).integers(0, 64, 12)
    text = replace(characters("".join(chr(0x4E00 + n) for n in range(64))), calibration=given)
    program = write_package(replace(imported, text=text), tmp_path)
    with penstock_runtime.load(tmp_path / "package") as accelerator:
        made = accelerator.generate("".join(chr(0x4E00 + n) for n in (3, 3, 9, 7, 1, 4)), 6)
    whole = [3, 3, 9, 7, 1, 4, *made.tokens]
    cuts = [0, 4, *range(6, 12)]
    pieces = [whole[a:b] for a, b in pairwise(cuts)]
    assert made.tokens == [int(one.argmax()) for one in reference_of(program, pieces, cuts[1:])[1:]]
