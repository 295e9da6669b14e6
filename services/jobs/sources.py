"""Looks at a model file before it is taken in, so that a mistake is told at once and in the user's words.

Only what can be said without running anything of it: whether it is Python that defines the entry function, or bytes
that can be an ONNX model, or text. The import step, in its own process, has the last word.
"""

from __future__ import annotations

import importlib.util
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote_plus

from penstock.compiler.errors import PenstockError, nearest
from penstock.compiler.reference import (
    CALIBRATION,
    LAYERS,
    LIBRARIES,
    WEIGHTS,
    LayersReference,
    LibraryReference,
    ZooReference,
    parse_reference,
)
from penstock.compiler.zoo._declared import declared_options
from penstock.services.jobs import python_names
from penstock.services.jobs.refused import RefusedError
from penstock.services.run_options import LONGEST_NAME, NAME_PATTERN

OPTION_NAME = r"[A-Za-z_][A-Za-z0-9_.:]{0,199}"
"""A constant of a task program, or a dim of an ONNX file, which may be called p2o.DynamicDimension.0, or x.2."""
OPTION_VALUE = r"[A-Za-z0-9_.+\-]{1,200}"
"""A number, a type, the name of a mesh: never a path, for a mesh may be a file's to whoever runs the compiler."""
_WEIGHTS_OPTION = WEIGHTS[0]
_SOURCE_PART = re.compile(r"[A-Za-z0-9_+\-][A-Za-z0-9_.+\-]*")
_LOOK_SECONDS = 60.0
# First bytes of a serialised ModelProto: the tags of its fields, ir_version first in practice.
_ONNX_TAGS = frozenset({0x08, 0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42, 0x72, 0xA2, 0xCA})


def is_task_program(source: bytes, file: str, entry: str = "") -> bool:
    """Whether a Python file is a task program, or `entry` a tile program, which are read and never executed.

    Models may have kernels of their own beside them: with the name of another function it is a model.
    """
    if b"penstock.tasks" not in source and b"triton" not in source:
        return False
    said = _looked_at(source, file)
    kernels: list[str] = said.get("kernels") or []
    return bool(said.get("tasks")) or bool(kernels and (not entry or entry in kernels))


def has_bodies(source: bytes, file: str) -> bool:
    """Whether a task program has bodies in SystemVerilog or C++, which are built and run."""
    return bool(_looked_at(source, file).get("injects"))


def check_entry(entry: str) -> None:
    """Refuses what can be no name of a function."""
    if not re.fullmatch(NAME_PATTERN, entry):
        raise RefusedError(
            "entry-not-found",
            f"'{entry[:80]}' is no name of a function",
            where="field entry",
            hint="use the name of a function that the file defines",
        )


def file_options(text: str, *, takes: bool) -> dict[str, str]:
    """`P=8&Q=8`: constants of a task program, or sizes of an ONNX file's dims; whether this file `takes` any."""
    if not text:
        return {}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True)
    except ValueError:
        raise _no_options(f"'{text[:80]}' cannot be read") from None
    options = dict(pairs)
    if not takes:
        raise _no_options("this file takes no options")
    if len(options) < len(pairs):
        raise _no_options("an option is given twice")
    for key, value in pairs:
        if not re.fullmatch(OPTION_NAME, key) or not re.fullmatch(OPTION_VALUE, value):
            raise _no_options(f"'{key[:80]}' is no option")
    return options


def options_text(options: Mapping[str, str]) -> str:
    """As they stand behind a reference."""
    return "?" + "&".join(f"{quote_plus(key)}={quote_plus(value)}" for key, value in options.items()) if options else ""


def _no_options(what: str) -> RefusedError:
    return RefusedError(
        "file-options-invalid", what, where="field options",
        limit="constants of a task program or a Triton kernel, sizes of an ONNX file's open dims",
        hint="write NAME=VALUE&NAME=VALUE, or leave them out",
    )  # fmt: skip


def layers_apart(entry: str) -> tuple[str, str, str]:
    """`model#blocks` as the function, the mark and the layers that shall share an accelerator."""
    function, mark, layers = entry.partition("#")
    if mark and not LAYERS.fullmatch(layers):
        raise RefusedError(
            "entry-not-found", f"'{layers[:80]}' is no path of layers", where="field entry",
            hint="name a ModuleList behind the function: model#blocks, or model# alone",
        )  # fmt: skip
    return function, mark, layers


def check_python(source: bytes, file: str, entry: str) -> None:
    """Refuses a file that is not Python or does not define the entry function."""
    if not entry:
        raise RefusedError(
            "entry-missing",
            f"{file} needs the name of the function that returns the model",
            where="field entry",
            hint="send it as the form field `entry`; on the command line: file.py:FUNCTION",
        )
    entry, _, _ = layers_apart(entry)
    check_entry(entry)
    said = _looked_at(source, file)
    if "reason" in said:
        line = f", line {said['line']}" if said["line"] else ""
        raise RefusedError(
            "model-file-invalid",
            f"this is not Python: {said['reason']}",
            where=f"{file}{line}",
            hint="run the file with python; what it cannot read, the service cannot either",
        )
    names: list[str] | None = said["names"]
    if names is not None and entry not in names:
        raise RefusedError(
            "entry-not-found",
            f"{file} does not define '{entry}'",
            where="field entry",
            limit=f"it defines: {', '.join(sorted(names)[:20])}" if names else "it defines nothing",
            hint=nearest(entry, names, "name a function at the top level of the file"),
        )


def check_onnx(head: bytes, file: str) -> None:
    """Refuses bytes that cannot begin an ONNX model."""
    if not head or head[0] not in _ONNX_TAGS:
        raise RefusedError(
            "model-file-invalid",
            "these bytes are not an ONNX model",
            where=file,
            hint="export it with torch.onnx.export, or check that the download is whole",
        )


def check_linalg(head: bytes, file: str) -> None:
    """Refuses bytes that cannot begin a text."""
    if not head or b"\0" in head:
        raise RefusedError(
            "model-file-invalid",
            "these bytes are not linalg text" if head else "the file is empty",
            where=file,
            hint="send MLIR as text, with linalg on tensors in one function @main",
        )


def source_name(given: str) -> str:
    """A C++ file's name, with folders below the source's own where an include names them; refused if it leads out."""
    parts = given.replace("\\", "/").split("/")
    if len(given) > LONGEST_NAME or len(parts) > 8 or not all(_SOURCE_PART.fullmatch(part) for part in parts):
        shown = "".join(letter for letter in given[:80] if letter.isprintable())
        raise RefusedError(
            "model-file-unsupported", f"a C++ file cannot be called '{shown}'", where="field file",
            limit="letters, digits, and . _ - + within them; folders behind one another, none hidden and none above",
            hint="name it as its #include does",
        )  # fmt: skip
    return "/".join(parts)


def check_sources(files: Mapping[str, bytes], most_bytes: int) -> None:
    """Refuses C++ sources that are no text, or too much of it; they are read behind the fence, and not here."""
    if sum(map(len, files.values())) > most_bytes:
        raise RefusedError(
            "too-large", "the sources together are too large", where="field file", limit=f"at most {most_bytes} bytes",
            hint="leave the test bench and its data out",
        )  # fmt: skip
    for name, content in files.items():
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            text = "\0"
        if not text.strip() or "\0" in text:
            raise RefusedError(
                "model-file-invalid", "these bytes are not C++" if content.strip() else "the file is empty", where=name,
                limit="text in UTF-8", hint="send the source itself",
            )  # fmt: skip


def zoo_names() -> tuple[str, ...]:
    """The models that Penstock brings along, by the names of their files: importing them would need torch."""
    package = importlib.util.find_spec("penstock.compiler")
    assert package is not None
    assert package.submodule_search_locations is not None
    folder = Path(package.submodule_search_locations[0]) / "zoo"
    return tuple(sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_")))


def zoo_source(zoo: str, arguments: Mapping[str, str | int | float | bool], where: str = "") -> str:
    """The reference as `zoo:name?key=value`, or the refusal of it; `where` it stands, if its parts have no fields."""
    known = zoo_names()
    if zoo not in known:
        raise RefusedError(
            "model-not-found",
            f"the zoo has no model '{zoo}'",
            where=where or "body.zoo",
            limit="it has " + ", ".join(known),
            hint=nearest(zoo, known, "choose one of these"),
        )
    for key, value in arguments.items():
        if not _is_argument(key, value):
            raise RefusedError(
                "zoo-reference-invalid",
                f"'{key[:80]}' is no argument of a zoo model, or has no value that can be one",
                where=where or "body.arguments",
                limit="names as in Python; numbers, and up to 200 printable characters",
                hint="write zoo:NAME?key=value",
            )
    _check_options(zoo, arguments, where or "body.arguments")
    options = "&".join(f"{key}={quote_plus(_text(value))}" for key, value in arguments.items())
    return f"zoo:{zoo}" + (f"?{options}" if options else "")


def _check_options(zoo: str, named: Iterable[str], where: str) -> None:
    """Refuses what the model does not take, before a worker has to say so."""
    known = dict(declared_options(zoo))
    if unknown := [key for key in named if key not in known]:
        raise RefusedError(
            "zoo-reference-invalid",
            f"{zoo} has no option '{unknown[0][:80]}'",
            where=where,
            limit="its options: " + ", ".join(f"{key}={value}" for key, value in known.items()),
            hint=nearest(unknown[0], known, "take one of these"),
        )


def _is_argument(key: str, value: object) -> bool:
    """Weights and typical inputs are sent with their model: a path would be one of the worker's machine."""
    if isinstance(value, float) and not math.isfinite(value):
        return False
    known = key not in (_WEIGHTS_OPTION, CALIBRATION) and re.fullmatch(NAME_PATTERN, key) is not None
    return known and len(str(value)) <= 200 and str(value).isprintable()


def named_reference(text: str) -> tuple[LibraryReference | ZooReference, str]:
    """A model of a library or of the zoo, and its reference with the layers that share an accelerator; or its refusal.

    What the library says comes with the import.
    """
    try:
        whole = parse_reference(text)
    except PenstockError as error:
        raise _no_library_model(error.what, error.hint) from None
    reference = whole.model if isinstance(whole, LayersReference) else whole
    if isinstance(reference, ZooReference):
        zoo_source(reference.name, dict(reference.options), where="body.reference")
        return reference, str(whole)
    if not isinstance(reference, LibraryReference):
        raise _no_library_model(f"'{text[:80]}' names no model of a library or of the zoo", "files are sent")
    for key, value in reference.options:
        if not _is_argument(key, value):
            raise _no_library_model(
                f"'{key[:80]}' is no option of a model that is named",
                "names as in Python; values of up to 200 printable characters; weights are sent as files",
            )
    return reference, str(whole)


def weighted_reference(text: str) -> tuple[LibraryReference | ZooReference, str]:
    """What sent weights are of, by a reference that names no file itself."""
    if not text:
        raise RefusedError(
            "entry-missing", "these files need the model that they are of", where="field entry",
            hint="-F entry='hf:gpt2?cache=64#', or a file.py among the files and its function as entry",
        )  # fmt: skip
    try:
        whole = parse_reference(text)
    except PenstockError as error:
        raise _no_weighted_model(error.what, error.hint) from None
    reference = whole.model if isinstance(whole, LayersReference) else whole
    if not isinstance(reference, LibraryReference | ZooReference):
        raise _no_weighted_model(f"'{text[:80]}' names no model of a library or of the zoo", "hf:gpt2, zoo:gpt2_text")
    if isinstance(reference, ZooReference) and reference.name not in zoo_names():
        raise _no_weighted_model(f"the zoo has no model '{reference.name[:80]}'", ", ".join(zoo_names()))
    for key, value in reference.options:
        if not _is_argument(key, value):
            raise _no_weighted_model(f"'{key[:80]}' is no option beside sent weights", "leave it out")
    if isinstance(reference, ZooReference):
        _check_options(reference.name, (key for key, _ in reference.options if key not in WEIGHTS), "field entry")
    return reference, str(whole)


def _no_weighted_model(what: str, hint: str) -> RefusedError:
    return RefusedError("model-reference-invalid", what, where="field entry", hint=hint)


def _no_library_model(what: str, hint: str) -> RefusedError:
    return RefusedError(
        "model-reference-invalid", what, where="body.reference", limit="libraries: " + ", ".join(LIBRARIES), hint=hint
    )


def _text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _looked_at(source: bytes, file: str) -> dict[str, Any]:
    """What `python_names` says of it, in a process with limits: some small files take minutes to parse."""
    command = [sys.executable, "-I", "-S", python_names.__file__, file]
    try:
        answer = subprocess.run(command, input=source, capture_output=True, timeout=_LOOK_SECONDS, env={})
        return json.loads(answer.stdout)
    except (ValueError, subprocess.TimeoutExpired):
        raise RefusedError(
            "model-file-invalid",
            "it takes too long or too much memory to be read as Python",
            where=file,
            limit=f"{python_names.SECONDS} s and {python_names.BYTES >> 20} MiB",
            hint="keep weights and tables out of the source",
        ) from None
