"""Prompts that are read several tokens a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from penstock.compiler.arrays import Array
from penstock.compiler.frontend.loader import load_model
from penstock.compiler.reference import parse_reference
from penstock.compiler.runtime.penstock_runtime.generate import generate
from penstock.compiler.runtime.penstock_runtime.host import HostGraph
from penstock.compiler.runtime.penstock_runtime.lengths import Lengths
from penstock.compiler.runtime.penstock_runtime.package import SharedLayers
from penstock.compiler.runtime.penstock_runtime.ports import Port
from penstock.compiler.runtime.penstock_runtime.text import Characters
from penstock.compiler.text import cosine_of

SIZES = "layers=2&d=16&heads=2&tokens=32&cache=16&seed=4"
LETTERS = "".join(chr(ord("a") + n) for n in range(26)) + "ABCDEF"


@dataclass
class InPyTorch:
    """A model of the zoo as `generate` calls it, computed by PyTorch; `calls` are the places of every call."""

    chunk: int
    layers: SharedLayers | None = None
    host: HostGraph | None = None
    lengths: Lengths | None = None
    calls: list[list[int]] = field(default_factory=list[list[int]])

    def __post_init__(self) -> None:
        self.reset()

    @property
    def package(self) -> InPyTorch:
        return self

    @property
    def inputs(self) -> Sequence[Port]:
        return [Port(name, (self.chunk,), "int64") for name in ("token", "place")]

    def tokenizer(self) -> Characters:
        return Characters([ord(c) for c in LETTERS])

    def reset(self) -> None:
        self.module = load_model(parse_reference(f"zoo:gpt2_text?{SIZES}&chunk={self.chunk}")).module
        self.calls.clear()

    def run_call(self, inputs: Sequence[Array], rows: int | None = None) -> tuple[list[Array], list[Array]]:
        self.calls.append(inputs[1].tolist())
        with torch.no_grad():
            return [], [self.module(*(torch.from_numpy(x) for x in inputs)).numpy()]

    def read_call(self, inputs: Sequence[Array], rows: int | None = None) -> None:
        self.run_call(inputs, rows)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 6, 7])
def test_a_prompt_read_in_chunks_is_gone_on_with_as_one_read_token_by_token(length: int) -> None:
    one, three = InPyTorch(1), InPyTorch(3)
    prompt = "qaDexBz"[:length]
    wanted, found = generate(one, prompt, 8), generate(three, prompt, 8)
    assert found.tokens == wanted.tokens
    assert len(one.calls) == length + 7
    assert len(three.calls) == -(-length // 3) + 7
    assert [place for call in three.calls for place in dict.fromkeys(call)] == [*range(length + 7)]


@pytest.mark.parametrize("model", ["hf:gpt2?n_layer=1&n_embd=16&n_head=2&vocab_size=32", "hf:llama?" + "&".join((
    "num_hidden_layers=1", "hidden_size=16", "intermediate_size=32", "vocab_size=32", "num_attention_heads=2",
))])  # fmt: skip
def test_decoders_of_transformers_take_chunks(model: str) -> None:
    pytest.importorskip("transformers", reason="the extra models is not installed")
    one, four = (load_model(parse_reference(f"{model}&cache=8&chunk={n}")).module for n in (1, 4))
    tokens = torch.tensor([3, 9, 4, 1])
    with torch.no_grad():
        wanted = [one(token[None], torch.tensor([place])) for place, token in enumerate(tokens)]
        torch.testing.assert_close(four(tokens, torch.arange(4)), wanted[-1], rtol=1e-4, atol=1e-5)


def test_scores_of_one_direction_have_the_cosine_one() -> None:
    scores = np.array([1.0, -2.0, 3.0], np.float32)
    assert cosine_of(3 * scores, scores) == pytest.approx(1.0)
    assert cosine_of(-scores, scores) == pytest.approx(-1.0)
    assert cosine_of(np.array([1.0, 0.0]), np.array([1.0, 1.0])) == pytest.approx(0.5**0.5)
    assert cosine_of(np.zeros(3), np.zeros(3)) == 1.0
    assert cosine_of(np.zeros(3), scores) == 0.0
