"""`torch.stft` and `torch.istft`: frames of a signal times a window, each transformed, and the way back; phases."""

# torch's operations come without types
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

aten = torch.ops.aten


def short_time() -> dict[Any, Callable[..., Any]]:
    return {
        aten.stft.default: _stft, aten.stft.center: _stft_around, aten.istft.default: _istft,
        aten.angle.default: _angle,
    }  # fmt: skip


def _angle(x: Tensor) -> Any:
    return torch.atan2(x.imag, x.real) if x.is_complex() else NotImplemented


def _stft(
    x: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
    normalized: bool = False, onesided: bool | None = None, return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Any:  # fmt: skip
    if align_to_window or x.is_complex():
        return NotImplemented
    frames = x.unfold(-1, n_fft, hop_length or n_fft // 4)
    if window is not None:
        frames = frames * _centred(window, n_fft)
    elif win_length is not None and win_length != n_fft:
        frames = frames * _centred(torch.ones(win_length, dtype=x.dtype), n_fft)
    norm = "ortho" if normalized else None
    spectra = torch.fft.fft(frames, norm=norm) if onesided is False else torch.fft.rfft(frames, norm=norm)
    spectra = spectra.transpose(-1, -2)
    return spectra if return_complex else torch.view_as_real(spectra)


def _stft_around(
    x: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
    center: bool = True, pad_mode: str = "reflect", normalized: bool = False, onesided: bool | None = None,
    return_complex: bool | None = None, align_to_window: bool | None = None,
) -> Any:  # fmt: skip
    """With the middle of each frame at its place: what stands before and behind the signal is made up."""
    if center:
        rows = functional.pad(x.reshape(1, -1, x.shape[-1]), [n_fft // 2, n_fft // 2], pad_mode)
        x = rows.reshape(*x.shape[:-1], rows.shape[-1])
    return _stft(x, n_fft, hop_length, win_length, window, normalized, onesided, return_complex, align_to_window)


def _istft(
    x: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None, window: Tensor | None = None,
    center: bool = True, normalized: bool = False, onesided: bool | None = None, length: int | None = None,
    return_complex: bool = False,
) -> Any:  # fmt: skip
    """Frames laid over one another where they were, over the sum of the squares of the windows that lie there."""
    hop = hop_length or n_fft // 4
    if return_complex or n_fft % hop:
        return NotImplemented
    spectra, norm = x.transpose(-1, -2), "ortho" if normalized else None
    half = spectra.shape[-1] != n_fft if onesided is None else onesided
    frames = torch.fft.irfft(spectra, n_fft, norm=norm) if half else torch.fft.ifft(spectra, norm=norm).real
    size = n_fft if win_length is None else win_length
    shape = _centred(torch.ones(size, dtype=frames.dtype) if window is None else window, n_fft)
    signal = _overlaid(frames * shape, hop)
    weight = _overlaid((shape * shape).expand(frames.shape[-2], n_fft), hop)
    first = n_fft // 2 if center else 0
    last = signal.shape[-1] - first if length is None else first + length
    kept = (signal[..., first:last], weight[first:last])
    result = kept[0] / kept[1]
    missing = 0 if length is None else length - result.shape[-1]
    return functional.pad(result, [0, missing]) if missing > 0 else result


def _centred(window: Tensor, size: int) -> Tensor:
    """A window that is shorter than a frame, with zeros on both sides."""
    before = (size - window.shape[0]) // 2
    return window if window.shape[0] == size else functional.pad(window, [before, size - window.shape[0] - before])


def _overlaid(frames: Tensor, hop: int) -> Tensor:
    """The sum of frames, each of whole hops, a hop apart."""
    *lead, count, size = frames.shape
    turns = size // hop
    pieces = frames.reshape(*lead, count, turns, hop)
    total = None
    for turn in range(turns):
        part = functional.pad(pieces[..., turn, :], [0, 0, turn, turns - 1 - turn])
        total = part if total is None else total + part
    assert total is not None
    return total.reshape(*lead, (count + turns - 1) * hop)
