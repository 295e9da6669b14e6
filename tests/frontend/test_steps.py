"""Nets that go step by step and stack what each step gives: state-space layers, linear recurrences, decayed sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import prepare
from tests.frontend.models import Lambda, import_module, make, seeded

STEPS, WIDTH, STATE = 4, 4, 3


def state_space() -> nn.Module:
    """A diagonal one, its input and its output projected."""

    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        u, step = m.first(x), m.step.exp()
        decay, taken = torch.exp(-m.rates.exp() * step), m.taken * step
        state, given = torch.zeros(x.shape[0], WIDTH, STATE), []
        for t in range(STEPS):
            state = decay * state + taken * u[:, t, :, None]
            given.append((state * m.read).sum(-1) + m.past * u[:, t])
        return m.last(functional.gelu(torch.stack(given, 1)))

    return Lambda(
        forward, first=nn.Linear(3, WIDTH), last=nn.Linear(WIDTH, 2), step=nn.Parameter(seeded((WIDTH, 1), 1) - 1),
        rates=nn.Parameter(seeded((WIDTH, STATE), 2)), taken=nn.Parameter(seeded((WIDTH, STATE), 3)),
        read=nn.Parameter(seeded((WIDTH, STATE), 4)), past=nn.Parameter(seeded((WIDTH,), 5)),
    )  # fmt: skip


def selective_scan() -> nn.Module:
    """As Mamba writes it: what decays, enters and is read depends on the input, behind a short causal convolution."""

    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        inner, gate = m.first(x).chunk(2, -1)
        inner = functional.silu(m.mixed(inner.transpose(1, 2))[..., :STEPS].transpose(1, 2))
        step, entering, read = m.chosen(inner).split([2, STATE, STATE], -1)
        step = functional.softplus(m.step(step))
        decays = torch.exp(torch.einsum("bld,dn->bldn", step, -m.rates.exp()))
        enters = torch.einsum("bld,bln,bld->bldn", step, entering, inner)
        state, given = torch.zeros(x.shape[0], WIDTH, STATE), []
        for t in range(STEPS):
            state = decays[:, t] * state + enters[:, t]
            given.append(torch.einsum("bdn,bn->bd", state, read[:, t]))
        return m.last((torch.stack(given, 1) + inner) * functional.silu(gate))

    return Lambda(
        forward, first=nn.Linear(3, 2 * WIDTH, bias=False), last=nn.Linear(WIDTH, 3, bias=False),
        mixed=nn.Conv1d(WIDTH, WIDTH, 3, groups=WIDTH, padding=2), chosen=nn.Linear(WIDTH, 2 + 2 * STATE, bias=False),
        step=nn.Linear(2, WIDTH), rates=nn.Parameter(seeded((WIDTH, STATE), 6)),
    )  # fmt: skip


def decayed_sums() -> nn.Module:
    """As RWKV's time mixing: sums of exponentials, kept below their largest so far."""

    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        before = functional.pad(x, (0, 0, 1, -1))
        mixed = x * m.mix + before * (1 - m.mix)
        keys, values, gate = m.key(mixed), m.value(mixed), torch.sigmoid(m.gate(mixed))
        above, below, largest = torch.zeros_like(x[:, 0]), torch.zeros_like(x[:, 0]), torch.full_like(x[:, 0], -1e30)
        given: list[torch.Tensor] = []
        for t in range(STEPS):
            now = torch.maximum(largest, m.bonus + keys[:, t])
            old, new = torch.exp(largest - now), torch.exp(m.bonus + keys[:, t] - now)
            given.append((old * above + new * values[:, t]) / (old * below + new))
            now = torch.maximum(largest - m.decay.exp(), keys[:, t])
            old, new = torch.exp(largest - m.decay.exp() - now), torch.exp(keys[:, t] - now)
            above, below, largest = old * above + new * values[:, t], old * below + new, now
        return m.last(gate * torch.stack(given, 1))

    return Lambda(
        forward, **{name: nn.Linear(WIDTH, WIDTH, bias=False) for name in ("key", "value", "gate", "last")},
        mix=nn.Parameter(torch.rand(WIDTH)), bonus=nn.Parameter(seeded((WIDTH,), 7)),
        decay=nn.Parameter(seeded((WIDTH,), 8)),
    )  # fmt: skip


def frequencies_joined() -> nn.Module:
    """As radiance fields encode places: the numbers, their sines and cosines, later joined to what was made of them."""

    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        angles = (x[..., None, :] * m.octaves[:, None]).flatten(-2)
        encoded = torch.cat([x, angles.sin(), angles.cos()], -1)
        return m.second(torch.cat([torch.relu(m.first(encoded)), encoded], -1))

    octaves = nn.Parameter(2.0 ** torch.arange(4))
    return Lambda(forward, first=nn.Linear(27, 8), second=nn.Linear(35, 4), octaves=octaves)


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "state space": (state_space, (1, STEPS, 3)),
    "selective scan": (selective_scan, (1, STEPS, 3)),
    "decayed sums": (decayed_sums, (1, STEPS, WIDTH)),
    "frequencies joined": (frequencies_joined, (4, 3)),
}


@pytest.mark.parametrize("name", MODELS)
def test_stacked_steps_compile_and_answer_as_pytorch(name: str) -> None:
    build, shape = MODELS[name]
    program = prepare(import_module(make(build), seeded(shape)))
    assert program.samples is not None
    (answer,) = run(program, program.samples.inputs)
    np.testing.assert_allclose(answer, program.samples.outputs[0], rtol=1e-4, atol=1e-5)
    assert program.host is None
