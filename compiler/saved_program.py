"""Looks at a saved program before anything is made of it: whoever wrote the folder may have meant harm.

Sizes are read from headers first, so that nothing is unpacked that is larger than it says or than it may be. Text goes
into generated code, reports and terminals: it has to be printable.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from numpy.lib import format as npy
from xdsl.context import Context
from xdsl.dialects.builtin import BytesAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.ir import ParametrizedAttribute as Parametrized

from penstock.compiler.errors import PenstockError
from penstock.compiler.program import Program

ARRAYS = (
    "params.npz", "samples.npz", "evaluation.npz", "calibration.npz", "host/arrays.npz", "layers/arrays.npz",
    "states/arrays.npz", "text/arrays.npz",
)  # fmt: skip
TEXTS = ("signature.json", "graph.mlir", "host/graph.json", "layers/graph.json", "states/states.json")
FILES = (*TEXTS, *ARRAYS)
MOST_TEXT_BYTES = 64 << 20
MOST_ARRAYS = 100_000
LONGEST_WORD = 2000
_MOST_HEADER = 4096


def load_checked(folder: Path, context: Context, most_bytes: int) -> Program:
    """The program, or the refusal of what the folder holds."""
    for name in TEXTS:
        path = folder / name
        if path.exists() and path.stat().st_size > MOST_TEXT_BYTES:
            raise _wrong(f"{name} has {path.stat().st_size} bytes", f"at most {MOST_TEXT_BYTES}")
    left = most_bytes
    for name in ARRAYS:
        if (folder / name).exists():
            left -= _check_arrays(folder / name, name, left)
    try:
        for name in TEXTS:
            if name.endswith(".json") and (folder / name).exists():
                _check_words(json.loads((folder / name).read_text()))
        program = Program.load(folder, context)
        _check_graph(program)
    except PenstockError:
        raise
    except (Exception, RecursionError) as error:
        raise _wrong(f"it cannot be read: {type(error).__name__}: {str(error).strip()[:200]}") from error
    return program


def _check_arrays(path: Path, name: str, most_bytes: int) -> int:
    """The bytes that its arrays take in memory. Every size is known before one is unpacked."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            total = sum(entry.file_size for entry in entries)
            if total > most_bytes or len(entries) > MOST_ARRAYS:
                raise _wrong(
                    f"{name} unpacks to {total} bytes in {len(entries)} arrays", f"{most_bytes} bytes are left"
                )
            for entry in entries:
                with archive.open(entry) as file:
                    _check_header(cast(Any, file), entry.file_size, f"{name}/{entry.filename[:80]!r}")
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, NotImplementedError, RuntimeError) as error:
        raise _wrong(f"{name} is no archive of arrays: {type(error).__name__}") from error
    return total


def _check_header(file: Any, size: int, where: str) -> None:
    version = npy.read_magic(file)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read is None:
        raise _wrong(f"{where} has a header of version {version}")
    shape, _, dtype = read(file, max_header_size=_MOST_HEADER)
    if dtype.hasobject or dtype.kind not in "biufUV" or (dtype.kind == "V" and dtype.names):
        raise _wrong(f"{where} holds {dtype}, which is no plain number")
    if math.prod(shape) * dtype.itemsize > size:
        raise _wrong(f"{where} says that it has shape {shape}, for which its {size} bytes are too few")


def _check_graph(program: Program) -> None:
    for op in program.module.walk():
        for given in (op.attributes, op.properties):
            _check_words(given.keys())
            for value in given.values():
                _check_attribute(value)


def _check_attribute(value: Attribute) -> None:
    match value:
        case StringAttr():
            _check_words(value.data)
        case BytesAttr():
            pass  # numbers of a dense attribute; `Program.load` has made text of those that are text
        case Parametrized():
            for part in value.parameters:
                _check_attribute(part)
        case _:
            data: object = getattr(value, "data", None)
            for part in _parts(data):
                if isinstance(part, Attribute):
                    _check_attribute(part)
                else:
                    _check_words(part)


def _parts(data: object) -> Iterable[object]:
    if isinstance(data, dict):
        known = cast("dict[object, object]", data)
        return [*known.keys(), *known.values()]
    if isinstance(data, tuple | list | frozenset | set):
        return cast("Iterable[object]", data)
    return [data]


def _check_words(value: object) -> None:
    """Every text of a document: printable, and no longer than a name or a sentence."""
    if isinstance(value, str):
        if len(value) > LONGEST_WORD or not value.isprintable():
            raise _wrong(f"it holds the text {value[:60]!r}", f"printable, at most {LONGEST_WORD} characters")
    elif isinstance(value, dict):
        for key, part in cast("dict[object, object]", value).items():
            _check_words(key)
            _check_words(part)
    elif isinstance(value, Iterable) and not isinstance(value, bytes):
        for part in cast("Iterable[object]", value):
            _check_words(part)


def _wrong(what: str, limit: str = "") -> PenstockError:
    return PenstockError(
        code="program-invalid", what=f"what the import left is no program: {what}", limit=limit,
        hint="a model that writes the importer's files itself is refused; return the module and leave the rest to it",
    )  # fmt: skip
