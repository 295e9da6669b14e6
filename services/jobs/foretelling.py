"""How well the accelerator's arithmetic foretells a held-out text, beside PyTorch's floats.

The integer interpreter computes it, on which every level below is held bit for bit. The windows of the text are gone
through side by side: a call of the interpreter takes hardly longer for ten of them than for one.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.interpreter.calls import example_calls, run_calls, text_calls
from penstock.compiler.interpreter.linalg import run_many
from penstock.compiler.package.report import Language
from penstock.compiler.program import Program
from penstock.compiler.text import cosine_of, loss_of, perplexity
from penstock.compiler.transforms.resize_dims import at_lengths


def language_section(program: Program) -> Language | None:
    """None for a model that brought no text."""
    text = program.text
    if text is None or text.losses is None:
        return None
    like = example_calls(program)[0]
    together = _Together(len(text.held_out))

    cosines: list[float] = []

    def losses(number: int) -> list[float]:
        window = text.held_out[number]
        answers = run_calls(
            program, text_calls(window[:-1], like), lambda layer, passed: together.run(number, layer, passed),
            resize=at_lengths, rows=range(1, len(window)),
        )  # fmt: skip
        if number == 0 and text.scores is not None:
            pairs = [(one, wanted) for (one,), wanted in zip(answers, text.scores, strict=False)]
            cosines.extend(cosine_of(one, wanted) for one, wanted in pairs if one.size == wanted.size)
        return [loss_of(scores, int(token)) for (scores,), token in zip(answers, window[1:], strict=True)]

    with ThreadPoolExecutor(len(text.held_out)) as pool:
        found = np.array([loss for window in pool.map(losses, range(len(text.held_out))) for loss in window])
    own, theirs = perplexity(found), perplexity(text.losses)
    return Language(
        dataset=text.name, tokens=len(found), float_perplexity=theirs, accelerator_perplexity=own,
        loss=own / theirs - 1.0, cosine_mean=float(np.mean(cosines)) if cosines else None,
        cosine_least=min(cosines, default=None), evidence="simulated",
    )  # fmt: skip


class _Together:
    """Calls of one layer by several runs of the model, computed when the last of them has come."""

    def __init__(self, count: int) -> None:
        self._passed: list[Sequence[Array]] = [()] * count
        self._answers: list[list[Array]] = []
        self._program: Program | None = None
        self._all_here = threading.Barrier(count, self._compute)

    def run(self, number: int, program: Program, passed: Sequence[Array]) -> list[Array]:
        self._passed[number], self._program = passed, program
        self._all_here.wait()
        return self._answers[number]

    def _compute(self) -> None:
        assert self._program is not None
        self._answers = run_quantised(self._program, self._passed)


def run_quantised(program: Program, runs: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """The accelerator's answers in real numbers, a row a run: one layer's weights are the program's parameters."""
    params, outputs = program.params, program.signature.outputs
    inputs: list[list[Array]] = []
    for passed in runs:
        rest = iter(passed)
        ports = program.signature.inputs
        inputs.append(program.quantise_inputs([params[p.name] if p.name in params else next(rest) for p in ports]))
    stacked = run_many(program, [np.stack(values) for values in zip(*inputs, strict=True)])
    return [
        program.dequantise_outputs([a[run].reshape(p.shape) for a, p in zip(stacked, outputs, strict=True)])
        for run in range(len(runs))
    ]
