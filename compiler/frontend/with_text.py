"""A language model's tokenizer and text: checked against the model, cut into windows, and gone through by PyTorch."""

# some of torch's functions come without types
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.export import SayStage, run_eagerly
from penstock.compiler.frontend.loaded import LoadedModel, LoadedText
from penstock.compiler.frontend.quiet import quiet_torch
from penstock.compiler.frontend.results import tensors_of
from penstock.compiler.program import Program
from penstock.compiler.runtime.penstock_runtime import PackageError
from penstock.compiler.runtime.penstock_runtime.generate import places_of
from penstock.compiler.runtime.penstock_runtime.text import Characters, Tokenizer, TokenizerFile
from penstock.compiler.text import MOST_HELD_OUT, MOST_SCORES, TextPart, loss_of

WINDOW = 128
"""Tokens of a window where the model has no end of its own."""


def with_text(program: Program, model: LoadedModel, begin: SayStage) -> Program:
    """The program with what its model brought for text, or as it is where that brought nothing."""
    given = model.text
    if given is None:
        return program
    begin("go through the text in PyTorch")
    characters = None if given.characters is None else np.array([ord(c) for c in given.characters], np.int32)
    try:
        tokenizer = _opened(given)
        held_out, calibration = (np.array(tokenizer.encode(t), np.int64) for t in (given.held_out, given.calibration))
    except PackageError as error:
        raise _refused(model, error.what, error.hint) from error
    _check_ports(model, tokenizer)
    length = min(_places(program) or WINDOW, MOST_HELD_OUT)
    held_out = held_out[:MOST_HELD_OUT]
    windows = [held_out[at : at + length] for at in range(0, len(held_out), length)]
    windows = [window for window in windows if len(window) == len(windows[0])]
    if not windows or len(windows[0]) < 2 or not len(calibration):
        raise _refused(model, "the held-out or the calibration text is empty", "give some tokens of each")
    scores: list[Array] = []
    losses = np.concatenate([_losses(model, window, scores if window is windows[0] else None) for window in windows])
    text = TextPart(
        given.name, characters, given.tokenizer, calibration[:length], tuple(windows), losses, np.stack(scores)
    )
    return replace(program, text=text)


def _opened(given: LoadedText) -> Tokenizer:
    if given.characters is not None:
        return Characters([ord(c) for c in given.characters])
    assert given.tokenizer is not None
    return TokenizerFile(given.tokenizer.decode(errors="replace"))


def _check_ports(model: LoadedModel, tokenizer: Tokenizer) -> None:
    inputs = model.example_inputs
    outputs = run_eagerly(model, inputs)
    tokens = inputs[0].numel() if len(inputs) == 2 else 1  # several only if it is told where each of them stands
    fits = all(x.numel() == tokens and not x.is_floating_point() for x in inputs) and len(inputs) <= 2
    if not fits or len(outputs) != 1 or not outputs[0].is_floating_point():
        raise _refused(
            model, "it does not take one token and give scores",
            "forward takes one token, and perhaps its place (or some, and theirs), and gives the scores of the next",
        )  # fmt: skip
    scores = outputs[0].numel()
    if tokenizer.size > scores or outputs[0].shape[-1] != scores:
        raise _refused(
            model, f"it gives scores of shape {tuple(outputs[0].shape)} for {tokenizer.size} tokens",
            "give a score for each token",
        )  # fmt: skip


def _places(program: Program) -> int | None:
    around = program.layers.graph if program.layers else None
    host = program.host.graph if program.host else None
    outer = around or host
    if outer is None:
        return None
    entering = {state.input for state in program.states} if around is None else set[int]()
    ports = [port["name"] for i, port in enumerate(outer["inputs"]) if i not in entering]
    return places_of([g for g in (around, host) if g is not None], ports[1] if len(ports) > 1 else None)


def _losses(model: LoadedModel, window: Array, kept: list[Array] | None) -> Array:
    """One a prediction: of every token but the first, from those before it. Scores are added to those that are kept."""
    module = copy.deepcopy(model.module)  # its buffers change from call to call
    found: list[float] = []
    with torch.no_grad(), quiet_torch():
        for place, (token, following) in enumerate(pairwise(window)):
            pair = (int(token), place)
            inputs = [torch.full_like(x, value) for x, value in zip(model.example_inputs, pair, strict=False)]
            (scores,) = tensors_of(module(*inputs), model.reference)
            found.append(loss_of(scores.numpy(), int(following)))
            if kept is not None and (not kept or (len(kept) + 1) * scores.numel() <= MOST_SCORES):
                kept.append(scores.numpy().reshape(-1).copy())
    return np.array(found)


def _refused(model: LoadedModel, what: str, hint: str) -> PenstockError:
    return PenstockError(code="model-text", what=f"the model's text cannot be used: {what}", where=model.reference,
                         hint=hint)  # fmt: skip
