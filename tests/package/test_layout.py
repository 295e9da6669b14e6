"""The runtime packs a tensor as the compiler says it lies in external memory."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.compiler.layout import Layout, pack, unpack
from penstock.compiler.runtime.penstock_runtime.layout import from_memory, memory_for, to_memory


@pytest.mark.parametrize(
    ("shape", "tile", "word"),
    [((64, 64), (16, 16), (4, 16)), ((6, 8, 4), (3, 8, 2), (1, 4, 2)), ((12,), (12,), (4,)), ((5, 2), (5, 2), (1, 2))],
)
def test_the_runtime_and_the_compiler_agree(
    shape: tuple[int, ...], tile: tuple[int, ...], word: tuple[int, ...]
) -> None:
    tensor = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    layout = Layout(tile, word)
    entry = {"shape": shape, "dtype": "int32", "layout": {"tile": tile, "word": word}}
    packed = pack(tensor, layout)
    assert packed.shape == layout.packed(shape)
    assert np.array_equal(to_memory(tensor, entry).reshape(-1), packed.reshape(-1))
    assert np.array_equal(unpack(packed, layout, shape), tensor)
    assert np.array_equal(from_memory(packed.reshape(-1), entry), tensor)
    assert memory_for(entry).shape == (tensor.size,)


@pytest.mark.parametrize(("stripes", "stripe"), [(1, None), (4, 0), (4, 3)])
def test_the_runtime_and_the_compiler_leave_the_same_room(stripes: int, stripe: int | None) -> None:
    tensor = np.arange(1, 5 * 12 + 1, dtype=np.int32).reshape(5, 12)
    layout = Layout((5, 12), (1, 6), stripes, stripe, room=8)
    written = {"tile": (5, 12), "word": (1, 6), "room": 8}
    shares = {} if stripe is None else {"stripes": stripes, "stripe": stripe}
    entry = {"shape": (5, 12), "dtype": "int32", "layout": {**written, **shares}}
    packed = pack(tensor, layout)
    assert packed.shape == layout.packed((5, 12))
    assert packed.size == 10 * 8 // stripes == memory_for(entry).size
    assert np.array_equal(to_memory(tensor, entry).reshape(-1), packed.reshape(-1))
    if stripe is None:
        assert not packed[..., 6:].any()
        assert np.array_equal(unpack(packed, layout, (5, 12)), tensor)
        assert np.array_equal(from_memory(packed.reshape(-1), entry), tensor)


def test_tiles_lie_one_after_the_other() -> None:
    tensor = np.arange(64 * 64, dtype=np.int32).reshape(64, 64)
    packed = pack(tensor, Layout((16, 16), (4, 16)))
    assert np.array_equal(packed[0, 1].reshape(16, 16), tensor[:16, 16:32])


def test_plain_memory_is_the_tensor() -> None:
    tensor = np.arange(6, dtype=np.int8).reshape(2, 3)
    entry = {"shape": (2, 3), "dtype": "int8", "layout": None}
    assert np.array_equal(to_memory(tensor.reshape(1, 2, 3), entry), tensor)
    assert np.array_equal(from_memory(tensor.reshape(-1), entry), tensor)
