"""Complex numbers inside a model, as rotations, spectra and state-space kernels have them: PyTorch's answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import fft, nn
from torch.nn import functional

from penstock.compiler.interpreter.linalg import run
from penstock.compiler.pipeline import prepare
from penstock.compiler.program import Program
from tests.frontend.models import Lambda, import_module, make, seeded


def complex_seeded(*shape: int, seed: int) -> torch.Tensor:
    return torch.view_as_complex(seeded((*shape, 2), seed))


def rotated_by_position() -> nn.Module:
    """As Llama's first code writes it, with a table of complex numbers, a buffer or an attribute."""

    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        pairs = torch.view_as_complex(m.q(x).view(6, 2, 2, 2))
        return torch.view_as_real(pairs * m.table.unsqueeze(1)).flatten(1)

    angles = torch.outer(torch.arange(6.0), 10000 ** (-torch.arange(2) / 2))
    return Lambda(forward, q=nn.Linear(8, 8), table=torch.polar(torch.ones(6, 2), angles))


def rotated_inside() -> nn.Module:
    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        turned = torch.view_as_complex(m.a(x).view(6, 2, 2)) * torch.polar(torch.ones(6, 2), m.b(x))
        return torch.cat([turned.real, turned.imag, turned.abs()], 1)

    return Lambda(forward, a=nn.Linear(8, 4), b=nn.Linear(8, 2))


def state_space_by_spectra() -> nn.Module:
    """S4D: a kernel of complex exponentials, convolved by way of spectra of twice the length."""

    def forward(m: Any, u: torch.Tensor) -> torch.Tensor:
        length, step = u.shape[-1], m.step.exp()
        poles = -m.decay.exp() + 1j * m.frequencies
        powers = (poles * step[:, None])[..., None] * torch.arange(length)
        weights = torch.view_as_complex(m.weights) * (torch.exp(poles * step[:, None]) - 1.0) / poles
        kernel = 2 * torch.einsum("hn,hnl->hl", weights, torch.exp(powers)).real
        spectrum = fft.rfft(u, n=2 * length) * fft.rfft(kernel, n=2 * length)
        y = fft.irfft(spectrum, n=2 * length)[..., :length] + u * m.past[:, None]
        return functional.glu(m.mixed(functional.gelu(y)), 1)

    return Lambda(
        forward, step=nn.Parameter(seeded((3,), 1) - 3), decay=nn.Parameter(seeded((3, 2), 2)),
        frequencies=nn.Parameter(math.pi * torch.arange(2.0).repeat(3, 1)), weights=nn.Parameter(seeded((3, 2, 2), 3)),
        past=nn.Parameter(seeded((3,), 4)), mixed=nn.Conv1d(3, 6, 1),
    )  # fmt: skip


def fourier_operator() -> nn.Module:
    """A complex weight for each of the lowest frequencies."""

    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        spectrum = fft.rfft(x)
        mixed = torch.zeros(1, 3, spectrum.shape[-1], dtype=torch.cfloat)
        mixed[:, :, :2] = torch.einsum("bix,iox->box", spectrum[:, :, :2], m.weights)
        return functional.gelu(fft.irfft(mixed, n=x.shape[-1]) + m.beside(x))

    return Lambda(forward, weights=nn.Parameter(complex_seeded(3, 3, 2, seed=5)), beside=nn.Conv1d(3, 3, 1))


def spectrogram() -> nn.Module:
    """As a front end of speech has it, with the phases beside."""

    def forward(m: Any, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        spectra = torch.stft(m.a(x), 8, 2, window=m.window, return_complex=True)
        return torch.log1p(spectra.abs() ** 2) @ m.bands, spectra.angle()

    return Lambda(forward, a=nn.Linear(20, 20), window=torch.hann_window(8), bands=nn.Parameter(seeded((11, 3), 6)))


def signal_through_a_mask() -> nn.Module:
    """As an enhancer of speech: what a network says of each frequency in each frame, and back to the signal."""

    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        named = {"hop_length": 2, "win_length": 6, "window": m.window}
        spectra = torch.stft(x, 8, center=False, normalized=True, return_complex=True, **named)
        mask = torch.sigmoid(m.a(spectra.abs()))
        return torch.istft(spectra * mask, 8, normalized=True, length=13, center=True, **named)

    return Lambda(forward, a=nn.Conv1d(5, 5, 3, padding=1), window=torch.hamming_window(6))


def both_sides_of_plain_frames() -> nn.Module:
    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        spectra = torch.stft(m.a(x), 4, 4, onesided=False, pad_mode="constant", return_complex=True)
        return torch.istft(spectra * 2, 4, 2, onesided=False)

    return Lambda(forward, a=nn.Linear(9, 9))


MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "rotated by position": (rotated_by_position, (6, 8)),
    "rotated inside": (rotated_inside, (6, 8)),
    "state space by spectra": (state_space_by_spectra, (1, 3, 6)),
    "Fourier operator": (fourier_operator, (1, 3, 8)),
    "spectrogram": (spectrogram, (2, 20)),
    "signal through a mask": (signal_through_a_mask, (1, 24)),
    "both sides of plain frames": (both_sides_of_plain_frames, (2, 9)),
}


def answers_as_pytorch(program: Program, names: list[str] | None = None) -> None:
    canonical = prepare(program)
    assert program.samples is not None
    assert program.host is None
    assert all(value.dtype == np.float32 for value in program.params.values())
    answers = zip(run(canonical, program.samples.inputs), program.samples.outputs, strict=True)
    for place, (ours, theirs) in enumerate(answers):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=2e-5, err_msg=names[place] if names else "")


@pytest.mark.parametrize("name", MODELS)
def test_models_with_complex_numbers_answer_as_pytorch(name: str) -> None:
    build, shape = MODELS[name]
    answers_as_pytorch(import_module(make(build), seeded(shape)))


Z = complex_seeded(6, 4, seed=6)
ARITHMETIC: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "quotient": lambda z: z / (z + 3), "of a real number": lambda z: 2.0 / z, "by a table": lambda z: z / Z,
    "by a number": lambda z: z * (1 - 2j) / 4 - 1j, "from a number": lambda z: 1 - z, "conjugate": lambda z: z.conj(),
    "exponential": torch.exp, "product": lambda z: z.T @ Z, "product of two": lambda z: z @ z.mH,
    "sum": lambda z: z.sum(0) + z.mean(), "joined": lambda z: torch.cat([z, Z], 1)[:, 1::2].flip(0),
    "stacked": lambda z: torch.stack([z, z.mul(2)], 1).transpose(0, 1), "padded": lambda z: functional.pad(z, (1, 0)),
    "weighed": lambda z: z * z.real, "negated": lambda z: -z.reshape(4, 6), "reciprocal": torch.reciprocal,
    "less": lambda z: torch.sub(z, Z, alpha=2), "made of reals": lambda z: torch.complex(z.imag, z.real),
    "made of one": lambda z: z.real.to(torch.complex64) + Z, "outer": lambda z: z[:, :1] * Z[0],
    "rows": lambda z: z[[2, 0]],
}  # fmt: skip
TRANSFORMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "forward and back": lambda z: fft.ifft(fft.fft(z) * Z), "of reals": lambda z: fft.fft(z.real, dim=0, norm="ortho"),
    "back of reals": lambda z: fft.ifft(z.real, n=5), "half": lambda z: fft.rfft(z.real, n=7, dim=0, norm="forward"),
    "from half": lambda z: fft.irfft(z) + 0j, "from half, odd": lambda z: fft.irfft(z, n=5, dim=0, norm="ortho") + 0j,
    "two dims": lambda z: fft.fft2(z, norm="forward"), "half of two": lambda z: fft.rfft2(z.real, s=(4, 5)),
    "from half of two": lambda z: fft.irfft2(z, s=(6, 6)) + 0j, "all dims": lambda z: fft.ifftn(z.unflatten(0, (2, 3))),
    "from half of all": lambda z: fft.irfftn(z.unflatten(0, (2, 3)), dim=(0, 2)) + 0j,
    "half of some": lambda z: fft.rfftn(z.real, dim=(1, 0)),
}  # fmt: skip


@pytest.mark.parametrize("group", [ARITHMETIC, TRANSFORMS], ids=["arithmetic", "transforms"])
def test_operations_on_complex_numbers(group: dict[str, Callable[[torch.Tensor], torch.Tensor]]) -> None:
    """All of a group in one model, which is read from one product."""

    def forward(m: Any, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        z = torch.view_as_complex(m.a(x).view(6, 4, 2))
        return tuple(torch.view_as_real(function(z).resolve_conj()) for function in group.values())

    module = make(lambda: Lambda(forward, a=nn.Linear(4, 8)))
    answers_as_pytorch(import_module(module, seeded((6, 4))), list(group))


def test_double_precision_and_shared_tables_become_single_parts() -> None:
    table = complex_seeded(6, 2, seed=7).to(torch.complex128)

    def forward(m: Any, x: torch.Tensor) -> torch.Tensor:
        z = torch.view_as_complex(m.a(x).view(6, 2, 2))
        return torch.view_as_real(z * m.table + z.roll(1, 0) * m.table)

    module = make(lambda: Lambda(forward, a=nn.Linear(4, 4)))
    module.register_buffer("table", table)
    program = import_module(module, seeded((6, 4)))
    answers_as_pytorch(program)
    assert sorted(shape for shape in (v.shape for v in program.params.values()) if shape == (6, 2)) == [(6, 2), (6, 2)]
