"""A language model goes on with a text: token for token, with what it keeps between calls on the accelerator."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from .errors import PackageError
from .host import HostGraph
from .lengths import Lengths
from .package import SharedLayers
from .ports import Array, Port
from .text import Tokenizer

Show = Callable[[str, int, float], None]
"""Is told what was written, how many tokens there are now, and how many a second."""
_HALF = "\ufffd"
"""Stands where a character's bytes are not all there yet."""


class TextPackage(Protocol):
    def tokenizer(self) -> Tokenizer | None: ...


class CalledModel(Protocol):
    """What of a loaded package is needed here: its tokenizer, the model's ports, and its calls."""

    @property
    def package(self) -> TextPackage: ...

    @property
    def inputs(self) -> Sequence[Port]: ...

    @property
    def layers(self) -> SharedLayers | None: ...

    @property
    def host(self) -> HostGraph | None: ...

    @property
    def lengths(self) -> Lengths | None: ...

    def run_call(self, inputs: Sequence[Array], rows: int | None = None) -> tuple[list[Array], list[Array]]: ...

    def read_call(self, inputs: Sequence[Array], rows: int | None = None) -> None: ...

    def reset(self) -> None: ...


@dataclass(frozen=True)
class Generated:
    text: str
    """The prompt and what follows it."""
    tokens: list[int]
    """What was written, without the prompt's."""
    prompt_tokens: int
    first_seconds: float
    """Until the first token was there."""
    seconds: float

    @property
    def tokens_per_second(self) -> float:
        """Of all calls: the prompt's tokens are calls as well."""
        return (self.prompt_tokens + len(self.tokens) - 1) / self.seconds


def generate(
    accelerator: CalledModel,
    prompt: str,
    tokens: int,
    *,
    temperature: float = 0.0,
    top_k: int | None = None,
    seed: int | None = None,
    show: Show | None = None,
) -> Generated:
    """Goes on with the prompt by so many tokens: the likeliest, or with a temperature one drawn from the `top_k`."""
    choose = _chooser(temperature, top_k, seed)
    tokenizer = accelerator.package.tokenizer()
    if tokenizer is None:
        raise PackageError("this package brings no tokenizer", "return one with the model: see docs/package.md")
    given = tokenizer.encode(prompt)
    _check_length(accelerator, len(given), tokens)
    accelerator.reset()
    began = first = time.perf_counter()
    written: list[int] = []
    shown = tokenizer.decode(given)
    if show is not None:
        show(shown, 0, 0.0)
    last = _read(accelerator, given)
    for place in range(len(given) - 1, len(given) + tokens - 1):
        written.append(choose(_scores(accelerator, written[-1:] or last, place + 1)))
        first = time.perf_counter() if len(written) == 1 else first
        text = tokenizer.decode([*given, *written])
        if show is not None and not text.endswith(_HALF):
            show(text[len(shown) :], len(written), (place + 1) / (time.perf_counter() - began))
            shown = text
    seconds = time.perf_counter() - began
    return Generated(tokenizer.decode([*given, *written]), written, len(given), first - began, seconds)


def places_of(graphs: Sequence[Mapping[str, Any]], place: str | None) -> int | None:
    """How many tokens the model has room for: entries in its table of places, rows in its caches; None if any.

    `graphs` are what of it runs on the host, `place` is the input that says where a token stands.
    """
    limits = [int(size) for graph in graphs for size in graph.get("positions", {}).values()]
    limits += [int(size) for graph in graphs for name, size in graph["tables"].items() if name == place]
    return min(limits, default=None)


def _check_length(accelerator: CalledModel, given: int, tokens: int) -> None:
    if tokens < 1:
        raise PackageError(f"{tokens} tokens are asked for", "ask for at least one")
    if not given:
        raise PackageError("the prompt is empty", "begin with at least one token")
    inputs, graphs = accelerator.inputs, (accelerator.layers and accelerator.layers.graph, accelerator.host)
    places = places_of([g.document for g in graphs if g is not None], inputs[1].name if len(inputs) > 1 else None)
    if places is not None and given + tokens - 1 > places:
        room = places - given + 1
        raise PackageError(
            f"the prompt has {given} tokens and {tokens} more are asked for, the model has places for {places}",
            f"ask for at most {room}" if room > 0 else f"a prompt has at most {places} tokens here",
        )


def _read(accelerator: CalledModel, given: Sequence[int]) -> Sequence[int]:
    """Has the prompt read, as many tokens a call as the model takes; the last of it, whose scores are wanted."""
    size = _at_once(accelerator)
    behind = (len(given) - 1) // size * size
    for place in range(0, behind, size):
        accelerator.read_call(_inputs(accelerator, given[place : place + size], place + size), place + size)
    return given[behind:]


def _scores(accelerator: CalledModel, tokens: Sequence[int], end: int) -> Array:
    """Of every token that may come behind these."""
    inputs = _inputs(accelerator, tokens, end)
    scores = np.asarray(accelerator.run_call(inputs, end)[1][0], np.float64).reshape(-1)
    if np.isnan(scores).any() or not np.isfinite(scores.max()):
        raise PackageError(f"the model's scores at token {end - 1} are not numbers", "check the weights of the model")
    return scores


def _at_once(accelerator: CalledModel) -> int:
    """Tokens that a call takes. A model that is told no places takes one: it could not tell repeated ones."""
    ports = accelerator.inputs
    return int(np.prod(ports[0].shape)) if len(ports) > 1 and ports[0].shape == ports[1].shape else 1


def _inputs(accelerator: CalledModel, tokens: Sequence[int], end: int) -> list[Array]:
    """The tokens up to place `end`. Where fewer are left than a call takes, the last one stands there again."""
    size = _at_once(accelerator)
    if size > 1 and accelerator.lengths is not None:
        size = accelerator.lengths.least_of(0, len(tokens)) or size
    rows = [*tokens, *[tokens[-1]] * (size - len(tokens))]
    places = [*range(end - len(tokens), end), *[end - 1] * (size - len(tokens))]
    if _at_once(accelerator) == 1:
        return [np.full(port.shape, value, port.dtype) for port, value in zip(accelerator.inputs, (rows[0], places[0]))]
    shapes = [tuple(-1 if n > 1 else 1 for n in port.shape) for port in accelerator.inputs]
    return [
        np.array(values, port.dtype).reshape(shape)
        for port, shape, values in zip(accelerator.inputs, shapes, (rows, places))
    ]


def _chooser(temperature: float, top_k: int | None, seed: int | None) -> Callable[[Array], int]:
    if not 0.0 <= temperature < float("inf"):
        raise PackageError(f"the temperature is {temperature}", "0 for the likeliest token, above for drawn ones")
    if top_k is not None and top_k < 1:
        raise PackageError(f"the choice is among {top_k} tokens", "choose among at least one")
    if not temperature:
        if top_k is not None or seed is not None:
            raise PackageError("without a temperature nothing is drawn", "give a temperature, for example 0.8")
        return lambda scores: int(scores.argmax())
    draw: Any = np.random.default_rng(seed)

    def chosen(scores: Array) -> int:
        likely = np.argsort(-scores, kind="stable")[:top_k]
        odds = np.exp((scores[likely] - scores[likely[0]]) / temperature)
        return int(draw.choice(likely, p=odds / odds.sum()))

    return chosen
