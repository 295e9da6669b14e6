"""Tensors that lie in a file beside an ONNX file, as exporters write large models.

The name comes from a file whose author is not trusted: it must be a plain name, of a file in the same folder that is
no link, and no more is read of it than the tensor is large.
"""

# protobuf's messages come with partial types
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import errno
import math
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

import onnx
from onnx import TensorProto

from penstock.compiler.errors import PenstockError

_NO_BYTES_OF_THEIR_OWN = (TensorProto.STRING, TensorProto.UNDEFINED)


def with_external_data(tensors: Iterable[TensorProto], model: Path, most_elements: int, most_bytes: int) -> None:
    """Put the numbers of those that lie elsewhere into them, in place."""
    read = 0
    for tensor in tensors:
        if tensor.data_location == TensorProto.EXTERNAL or tensor.external_data:
            _fill(tensor, model, most_elements)
            read += len(tensor.raw_data)
            if read > most_bytes:
                raise _refused(tensor, model, "makes the model too large", f"at most {most_bytes} bytes")


def _fill(tensor: TensorProto, model: Path, most_elements: int) -> None:
    told = {entry.key: entry.value for entry in tensor.external_data}
    name, elements = told.get("location", ""), math.prod(tensor.dims)
    if not name or name in (".", "..") or any(mark in name for mark in "/\\\0"):
        raise _refused(tensor, model, f"lies in {name!r}", "data lies in the model's own folder, by a plain name")
    if any(size < 0 for size in tensor.dims) or elements > most_elements:
        return  # refused with all others that are too large
    offset, length = told.get("offset", "0"), told.get("length")
    bits = _bits(tensor)
    if bits is None or not offset.isdecimal() or (length is not None and not length.isdecimal()):
        raise _refused(tensor, model, f"is described wrongly in {name!r}", "offset and length are whole numbers")
    size = -(-elements * bits // 8)
    try:
        with _opened(model.parent / name) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _refused(tensor, model, f"lies in {name!r}, which is no file", "links are not followed")
            if (length is not None and int(length) != size) or int(offset) + size > status.st_size:
                raise _refused(
                    tensor, model, f"needs {size} bytes from byte {offset} on of {name!r}, which has {status.st_size}",
                    "the file beside the model is whole",
                )  # fmt: skip
            file.seek(int(offset))
            data = file.read(size)
    except OSError as error:
        reasons = {
            errno.ENOENT: "which is not there",
            errno.ELOOP: "which is no file",
            errno.EISDIR: "which is no file",
        }
        reason = reasons.get(error.errno or 0, f"which cannot be read: {error.strerror}")
        raise _refused(tensor, model, f"lies in {name!r}, {reason}", "a file beside the model, no link") from error
    tensor.raw_data = data
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]


def _opened(path: Path) -> BinaryIO:
    """What is looked at is what is read: a link in its place is not followed, and a pipe is not waited for."""
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK))


def _bits(tensor: TensorProto) -> int | None:
    if tensor.data_type in _NO_BYTES_OF_THEIR_OWN or tensor.data_type not in TensorProto.DataType.values():
        return None
    kind = TensorProto.DataType.Name(tensor.data_type)
    narrow = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}
    return narrow.get(kind) or 8 * int(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)


def _refused(tensor: TensorProto, model: Path, what: str, limit: str) -> PenstockError:
    return PenstockError(
        code="onnx-external-data", what=f"{tensor.name or 'a constant'!r} {what}", where=str(model), limit=limit,
        hint="put the file beside it, or store it whole: onnx.save_model(model, path, save_as_external_data=False)",
    )  # fmt: skip
