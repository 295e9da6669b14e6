"""Files of arrays from anybody: read as they are, or one error with a sentence, whatever the bytes."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.compiler.array_files import BadArraysError, read_arrays

MOST = 1 << 20


def npy(shape: str, body: bytes = b"", descr: str = "<f4") -> bytes:
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + body


def npz(**files: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in files.items():
            archive.writestr(f"{name}.npy", content)
    return stream.getvalue()


def flagged(content: bytes, local: int, central: int, value: int) -> bytes:
    """An archive whose first file says something else of itself."""
    found = bytearray(content)
    found[found.find(b"PK\x03\x04") + local] = value
    found[found.find(b"PK\x01\x02") + central] = value
    return bytes(found)


GOOD = npz(a=npy("(3,)", bytes(12)), b=npy("(2, 1)", bytes(8)))


def test_what_numpy_wrote_is_read(tmp_path: Path) -> None:
    numbers = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(True), "c": np.zeros((0, 4), np.int64)}
    named: dict[str, Any] = dict(numbers)
    np.savez(tmp_path / "plain.npz", **named)
    np.savez_compressed(tmp_path / "small.npz", **named)
    np.save(tmp_path / "one.npy", np.asfortranarray(numbers["a"]))
    for name in ("plain.npz", "small.npz"):
        found = read_arrays(tmp_path / name, name, MOST)
        assert list(found) == list(numbers)
        for key, values in numbers.items():
            np.testing.assert_array_equal(found[key], values)
            assert found[key].dtype == values.dtype
    np.testing.assert_array_equal(read_arrays(tmp_path / "one.npy", "one", MOST)[""], numbers["a"])


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (npy("(1000000000000,)"), "too few"),
        (npz(x=npy("(1000000000000,)")), "too few"),
        (npy("(-5,)"), "no file of arrays"),
        (npy("('a',)"), "says nothing"),
        (npy("(1,)", bytes(8), "|O"), "no plain number"),
        (b"\x93NUMPY\x01\x00\xd0\x07" + b"(" * 2000, "says nothing"),
        (b"\x93NUMPY\x09\x00\x10\x00" + b" " * 16, "version (9, 0)"),
        (b"", "no file of arrays"),
        (b"PK\x03\x04 torn", "no file of arrays"),
        (npz(x=b"abc"), "no file of arrays"),
        (flagged(GOOD, 6, 8, 1), "encrypted"),
        (flagged(GOOD, 8, 10, zipfile.ZIP_BZIP2), "packed in a way"),
        (flagged(GOOD, 8, 10, 99), "packed in a way"),
        (npz(x=npy("(300000,)", bytes(1_200_000))), "unpacks to"),
        (npy("(300000,)", bytes(1_200_000)), "has 1200"),
    ],
)  # fmt: skip
def test_what_is_none_is_said(tmp_path: Path, content: bytes, what: str) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(BadArraysError) as refused:
        read_arrays(tmp_path / "x", "x", MOST)
    assert what in refused.value.what


def test_a_file_that_cannot_be_opened_says_why(tmp_path: Path) -> None:
    with pytest.raises(BadArraysError, match="No such file"):
        read_arrays(tmp_path / "gone.npz", "gone.npz", MOST)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=6), end=st.integers(0))
def test_any_bytes_are_read_or_refused(tmp_path: Path, changes: list[tuple[int, int]], end: int) -> None:
    content = bytearray(GOOD)
    for place, value in changes:
        content[place] = value
    (tmp_path / "x").write_bytes(bytes(content[: end or None]))
    try:
        found = read_arrays(tmp_path / "x", "x", MOST)
    except BadArraysError:
        return
    assert sum(values.nbytes for values in found.values()) <= MOST
