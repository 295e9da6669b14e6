"""What a user calls a model, as something that can be sent: a file, a model of the zoo, or one of a library."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qsl, urlencode

from penstock.compiler.errors import PenstockError
from penstock.compiler.hls_in.fence import KERNELS, read_sources
from penstock.compiler.reference import CALIBRATION, LIBRARIES, PROGRAM
from penstock.compiler.tasks.source import is_task_source, kernels_in
from penstock.services.client.errors import UsageError

_INDEX = ".safetensors.index.json"
_KERNEL = re.compile(r"\.(?:cpp|cc|cxx|c):[A-Za-z_]\w*\Z", re.IGNORECASE)
_ZOO_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class ModelSource:
    """A file, `zoo:name?key=value`, or a model of a library by its reference; `weights` are files sent along,
    typical inputs among them.

    A kernel in C++ has its files as `sources`, by the names that its includes give them, and its top as `entry`.

    `options` are constants of a task program or sizes of an ONNX file's open dims, as P=8&Q=8. `program` is a task
    program for layers of the model.
    """

    path: Path | None = None
    entry: str = ""
    options: str = ""
    zoo: str = ""
    arguments: Mapping[str, str | int | float | bool] | None = None
    reference: str = ""
    weights: tuple[Path, ...] = ()
    program: Path | None = None
    sources: tuple[tuple[str, Path], ...] = ()

    @staticmethod
    def parse(text: str, top: str = "") -> ModelSource:
        """`top` is of a kernel in C++, where it is not written behind the file as kernel.cpp:TOP."""
        file, _, entry = text.rpartition(":") if _KERNEL.search(text) else (text, "", "")
        if file.lower().endswith(KERNELS):
            return _kernel(Path(file), top or entry)
        if top:
            raise UsageError(f"'{text}' is no kernel in C++, and has no --top: write its function as file.py:FUNCTION")
        model, mark, program = text.rpartition("#")
        if mark and PROGRAM.fullmatch(program):
            return _with_program(model, program)
        whole, weights = _without_files(text)
        if weights:
            of_file = ".py:" in whole or ".onnx" in whole
            return replace(_file(whole) if of_file else ModelSource(entry=whole), weights=weights)
        if text.startswith("zoo:"):
            name, _, query = text.removeprefix("zoo:").partition("?")
            if not _ZOO_NAME.fullmatch(name.partition("#")[0]):
                raise UsageError(f"'{text}' names no model: write zoo:NAME or zoo:NAME?key=value")
            if "#" in text:
                return ModelSource(reference=text)
            pairs = parse_qsl(query, keep_blank_values=True)
            return ModelSource(zoo=name, arguments={key: _literal(value) for key, value in pairs})
        if text.partition(":")[0] in LIBRARIES and ":" in text:
            return ModelSource(reference=text)  # the service reads it
        return _file(text)


def _with_program(model: str, program: str) -> ModelSource:
    """A task program for layers of a model, which is sent by its files or as its reference."""
    if "#" in model:
        raise UsageError(f"'{model}' names layers, and so does {program}: write one # and what stands behind it")
    path, found = _file(program), ModelSource.parse(model)
    if path.entry:
        raise UsageError(f"'{program}' is one of several programs: send a file with that one alone")
    if found.zoo or found.reference:
        found = ModelSource(entry=model)
    elif found.path is not None and found.path.suffix != ".py":
        raise UsageError(f"'{model}' has no layers for {program}: write file.py:function or a model of a library")
    return replace(found, program=path.path, options=path.options)


def _kernel(main: Path, top: str) -> ModelSource:
    """The source and every header that it includes, as the fence of kernels finds them."""
    if not top:
        raise UsageError(f"'{main}' is a kernel in C++ and has a top function: name it with --top FUNCTION")
    if not main.is_file():
        raise UsageError(f"there is no file {main}")
    try:
        found = read_sources(main)
    except PenstockError as error:
        raise UsageError("\n".join(one.one_line() for one in (error, *error.others))) from None
    files = sorted((file.relative_to(found.folder).as_posix(), file) for file in found.texts)
    return ModelSource(entry=top, sources=tuple(files))


def _file(text: str) -> ModelSource:
    whole, _, options = text.partition("?")
    file, _, entry = whole.rpartition(":") if ".py:" in whole else (whole, "", "")
    path = Path(file)
    if path.suffix not in (".py", ".onnx", ".mlir"):
        raise UsageError(
            f"'{text}' is no model: write file.py:function, file.onnx, file.mlir, kernel.cpp, zoo:NAME?key=value "
            f"or a model of a library ({', '.join(f'{name}:NAME' for name in LIBRARIES)})"
        )
    if path.suffix == ".py" and not entry and not _is_task_program(path):
        raise UsageError(f"'{text}' lacks its entry function: write {file}:FUNCTION")
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    return ModelSource(path=path, entry=entry, options=options)


def _without_files(text: str) -> tuple[str, tuple[Path, ...]]:
    """`hf:gpt2?weights=FOLDER&cache=64#` without its weights and typical inputs, and the files that these are."""
    whole, mark, layers = text.partition("#")
    head, _, query = whole.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    beside = {key: [value for name, value in pairs if name == key] for key in ("weights", CALIBRATION)}
    if not any(beside.values()) or any(len(values) > 1 for values in beside.values()):
        return text, ()
    files = [*_weights(*beside["weights"]), *_typical(*beside[CALIBRATION])]
    rest = urlencode([pair for pair in pairs if pair[0] not in beside])
    return head + (f"?{rest}" if rest else "") + mark + layers, tuple(files)


def _typical(given: str = "") -> list[Path]:
    if given and not Path(given).is_file():
        raise UsageError(f"there is no file {given} of typical inputs")
    return [Path(given)] if given else []


def _weights(given: str = "") -> list[Path]:
    if not given:
        return []
    place = Path(given)
    folder = place if place.is_dir() else place.parent
    if place == folder or place.name.endswith(_INDEX):
        kept = ("config.json", place.name if place != folder else _INDEX, ".safetensors")
        files = sorted(x for x in folder.iterdir() if x.name.endswith(kept) and not x.name.startswith("."))
    else:
        files = [place]
    if not files or not all(x.is_file() for x in files):
        raise UsageError(f"there are no safetensors files at {place}")
    return files


def opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None


def _literal(text: str) -> str | int | float | bool:
    """A value of a zoo reference: numbers and true/false as such, anything else as text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return int(text)
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        return text
    return value if math.isfinite(value) else text  # JSON has no name for the others


def _is_task_program(path: Path) -> bool:
    """Which needs no entry; the service has the last word."""
    try:
        text = path.read_text()
        return is_task_source(text) or bool(kernels_in(text))
    except (OSError, UnicodeDecodeError):
        return False
