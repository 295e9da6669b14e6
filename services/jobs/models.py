"""Taking models in: a file goes to the content store by its hash, a model of the zoo is just named."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from penstock.compiler.hls_in.fence import KERNELS
from penstock.compiler.reference import CALIBRATION, ZooReference
from penstock.db import Transaction
from penstock.db.schema.ids import is_id
from penstock.db.schema.records import Model
from penstock.services.jobs.kernels import HEADERS, is_kernel
from penstock.services.jobs.refused import RefusedError
from penstock.services.jobs.sources import (
    check_entry,
    check_linalg,
    check_onnx,
    check_python,
    check_sources,
    file_options,
    has_bodies,
    is_task_program,
    named_reference,
    options_text,
    source_name,
    weighted_reference,
    zoo_names,
    zoo_source,
)
from penstock.services.run_options import LONGEST_NAME
from penstock.services.step_kinds import KERNEL
from penstock.services.store import ContentStore, TooLargeError

WEIGHTS_FOLDER, PROGRAM_FOLDER, TYPICAL_FOLDER = "weights", "program", "typical"
BODIES = "bodies"
"""What is said of a model that may bring text in other languages, to be built and run."""
_CHUNK = 1 << 20
_MEANING = re.compile(r"[:?#&%]")
_WITH_OPTIONS = ("tasks", "onnx")
TYPICAL = (".npz", ".npy")
"""How the name of a file of typical inputs ends, which lies in its folder as `inputs`."""
_WEIGHTS = (".safetensors", ".safetensors.index.json", "config.json")
"""How the names of files end that weights may come in; config.json says the sizes of a model of transformers."""


@dataclass(frozen=True)
class Intake:
    """What the service takes in: where it keeps files, and how large they may be."""

    store: ContentStore
    home: Path
    allow_python: bool
    most_source_bytes: int
    most_model_bytes: int
    low_disk_bytes: int
    allow_bodies: bool = False
    """Whether text in other languages is taken, which is built and run outside of the fence."""

    def check_disk(self) -> None:
        """Refuses new content before the disk is full: running work needs what is left."""
        free = shutil.disk_usage(self.home).free
        if free < self.low_disk_bytes:
            raise RefusedError(
                "storage-full",
                "the service takes nothing new until there is room on its disk",
                limit=f"{free} bytes are free, {self.low_disk_bytes} are needed",
                hint="have the operator free some space; finished work is safe",
            )

    def keep(self, file: BinaryIO, name: str) -> tuple[str, int]:
        """The content's hash and size."""
        file.seek(0)
        self.check_disk()
        try:
            stored = self.store.put_chunks(iter(lambda: file.read(_CHUNK), b""), limit=self.most_model_bytes)
        except TooLargeError as error:
            raise RefusedError("too-large", f"{name} is too large: {error}", where="field file") from None
        return stored.sha256, stored.size

    def keep_sources(self, files: Mapping[str, bytes]) -> tuple[str, int]:
        """As one tree, under their names."""
        self.check_disk()
        with tempfile.TemporaryDirectory(dir=self.home, prefix="sources-") as folder:
            for name, content in files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            stored = self.store.put_tree(Path(folder))
        return stored.sha256, stored.size

    def keep_parts(self, files: Mapping[str, BinaryIO], program: str = "") -> tuple[str, int]:
        """As one tree: the model's own file at the top, a task program, typical inputs and all others in folders."""
        self.check_disk()
        with tempfile.TemporaryDirectory(dir=self.home, prefix="weights-") as folder:
            left = self.most_model_bytes
            for name, file in files.items():
                path = Path(folder, _place(name, program))
                path.parent.mkdir(exist_ok=True)
                file.seek(0)
                with path.open("wb") as kept:
                    shutil.copyfileobj(file, kept, _CHUNK)
                left -= path.stat().st_size
                if left < 0:
                    what = f"the files together have more than {self.most_model_bytes} bytes"
                    raise RefusedError("too-large", what, where="field file")
            stored = self.store.put_tree(Path(folder))
        return stored.sha256, stored.size


def _place(name: str, program: str) -> str:
    """Where a file of a model lies beside the others."""
    if name.endswith(TYPICAL):
        return f"{TYPICAL_FOLDER}/inputs{Path(name).suffix}"
    if name == program:
        return f"{PROGRAM_FOLDER}/{name}"
    return name if name.endswith((".py", ".onnx")) else f"{WEIGHTS_FOLDER}/{name}"


@dataclass(frozen=True)
class NewModel:
    """A model that may be taken in: what the database is to say of it."""

    name: str
    kind: str
    source: str
    details: Mapping[str, Any]
    sha256: str | None = None
    size: int | None = None

    @property
    def identity(self) -> list[str]:
        """What makes two submissions the same."""
        return [self.source, self.name, *([] if self.sha256 is None else [self.sha256])]

    def create(self, tx: Transaction, owner: str | None) -> Model:
        return tx.models.create(
            name=self.name, kind=self.kind, source=self.source, details=dict(self.details), sha256=self.sha256,
            size=self.size, owner=owner,
        )  # fmt: skip


def zoo_model(zoo: str, arguments: Mapping[str, str | int | float | bool], name: str) -> NewModel:
    source = zoo_source(zoo, arguments)
    return NewModel(name or zoo, "zoo", source, {"zoo": zoo, "options": dict(arguments)})


def named_model(text: str, name: str) -> NewModel:
    reference, whole = named_reference(text)
    if isinstance(reference, ZooReference):
        return NewModel(
            name or reference.name, "zoo", whole, {"zoo": reference.name, "options": dict(reference.options)}
        )
    details = {"library": reference.library, "model": reference.model, "options": dict(reference.options)}
    return NewModel(name or reference.name, "library", whole, details)


def model_file(intake: Intake, file: BinaryIO, file_name: str, entry: str, name: str, options: str = "") -> NewModel:
    """Looks at a file, keeps its content, and says what it is."""
    shown = _printable(file_name)
    kind, source, details = _described(intake, file, shown, entry)
    if given := file_options(options, takes=kind in _WITH_OPTIONS):
        _check_sizes(kind, given)
        source, details = source + options_text(given), {**details, "options": given}
    sha256, size = intake.keep(file, shown)
    return NewModel(name or _model_name(shown, entry), kind, source, details, sha256, size)


def model_of_files(
    intake: Intake, files: Sequence[tuple[str, BinaryIO]], entry: str, name: str, options: str = ""
) -> NewModel:
    """A model by its reference, or in one Python or ONNX file among these, with what comes along.

    That is weights in safetensors files, a file of typical inputs, or a task program for some of its layers, whose
    constants are `options`.
    """
    shown = {_printable(given): file for given, file in files}
    if len(shown) < len(files):
        raise _odd_files("two files have one name", "")
    sources = {given: _source(intake, file, given) for given, file in shown.items() if given.endswith(".py")}
    programs = [given for given, text in sources.items() if is_task_program(text, given, entry)]
    program, python = "".join(programs[:1]), [given for given in sources if given not in programs]
    weights = any(given.endswith(".safetensors") for given in shown)
    typical, onnx = ([x for x in shown if x.endswith(ends)] for ends in (TYPICAL, ".onnx"))
    most = max(map(len, (typical, programs, [*python, *onnx])))
    if most > 1 or not (program or weights or typical) or (onnx and (program or weights)):
        raise _odd_files(
            "one Python file with the model at most, or an ONNX file; beside the one safetensors files or a task "
            "program for its layers, beside either one file of typical inputs",
            ", ".join(sorted(shown))[:200],
        )
    known = (*_WEIGHTS, ".py", ".onnx", *TYPICAL)
    if odd := next((x for x in sorted(shown) if not x.endswith(known) or x.startswith(".")), None):
        raise _odd_files(f"'{odd}' is none of these", ", ".join(known))
    if onnx:
        kind, source, details = _described(intake, shown[onnx[0]], onnx[0], entry)
        name = name or _model_name(onnx[0], "")
    elif python:
        _check_source(intake, sources[python[0]], python[0], entry)
        kind, source, details = "python", f"{python[0]}:{entry}", {"file": python[0], "function": entry}
        name = name or _model_name(python[0], entry)
    else:
        reference, source = weighted_reference(entry)
        kind = "zoo" if isinstance(reference, ZooReference) else "library"
        details, name = {"reference": source}, name or reference.name
    said: dict[str, Any] = {**details, "weights": True} if weights else dict(details)
    if typical:
        said["calibration"] = Path(_place(typical[0], program)).name
    given = file_options(options, takes=bool(program or onnx))
    _check_sizes(kind, given)
    if onnx:
        source, said = source + options_text(given), {**said, "options": given}
    if program:
        _check_program(sources[program], program, entry)
        said |= {"program": program, "options": given}
        source += f"#{program}{options_text(given)}"
    sha256, size = intake.keep_parts(shown, program)
    return NewModel(name, kind, source, said, sha256, size)


def _check_sizes(kind: str, options: Mapping[str, Any]) -> None:
    """Of an ONNX file options are sizes; typical inputs would be a file of the worker's machine."""
    if kind == "onnx" and CALIBRATION in options:
        raise RefusedError(
            "file-options-invalid", "typical inputs are sent beside their model", where="field options",
            hint="-F file=@model.onnx -F file=@inputs.npz",
        )  # fmt: skip


def _check_program(source: bytes, file: str, entry: str) -> None:
    """A task program that stands for layers of a model: it says itself which, and brings no bodies."""
    if "#" in entry:
        raise RefusedError(
            "entry-not-found", f"'{entry[:80]}' names layers, and {file} stands for layers too", where="field entry",
            hint="leave out # and what follows it: @implements in the task program names the layers",
        )  # fmt: skip
    if has_bodies(source, file):
        raise RefusedError(
            "bodies-refused", f"{file} has bodies in SystemVerilog or C++ (inject), beside a model", where="field file",
            limit="a task program that is sent alone", hint="leave the bodies out, or compile it yourself",
        )  # fmt: skip


def kernel_model(intake: Intake, files: Sequence[tuple[str, BinaryIO]], top: str, name: str) -> NewModel:
    """A kernel in HLS C++: the source with its top function, and the headers that it includes, beside it or below."""
    shown = {source_name(given): file for given, file in files}
    if len(shown) < len(files):
        raise _odd_sources("two files have one name", "")
    if odd := next((x for x in sorted(shown) if not x.lower().endswith((*KERNELS, *HEADERS))), None):
        raise _odd_sources(f"'{odd}' is none of these", ", ".join((*KERNELS, *HEADERS)))
    main = [given for given in shown if is_kernel(given)]
    if len(main) != 1:
        raise _odd_sources(f"there are {len(main)} sources", "one of " + ", ".join(KERNELS) + ", and headers")
    if not top:
        raise RefusedError(
            "entry-missing", f"{main[0]} needs the name of its top function", where="field entry",
            hint="send it as the form field `entry`; on the command line: --top FUNCTION",
        )  # fmt: skip
    check_entry(top)
    sources = {given: _source(intake, file, given) for given, file in shown.items()}
    check_sources(sources, intake.most_source_bytes)
    sha256, size = intake.keep_sources(sources)
    details = {"file": main[0], "function": top, "files": sorted(sources)}
    return NewModel(
        name or _model_name(main[0].rpartition("/")[2], top), KERNEL, f"{main[0]}:{top}", details, sha256, size
    )


def _odd_sources(what: str, limit: str) -> RefusedError:
    return RefusedError(
        "model-file-unsupported", what, where="field file", limit=limit,
        hint="curl -F file=@kernel.cpp -F file=@sizes.h -F entry=top …; names of headers may have folders",
    )  # fmt: skip


def _odd_files(what: str, limit: str) -> RefusedError:
    return RefusedError(
        "model-file-unsupported", what, where="field file", limit=limit,
        hint="curl -F file=@model.safetensors -F entry='hf:gpt2?cache=64#' …; send shards with their index",
    )  # fmt: skip


def find_model(tx: Transaction, model_id: str, *, where: str, hold: bool = False) -> Model:
    """The model with that id, or the refusal that there is none; with `hold` nobody deletes it meanwhile."""
    find = tx.models.hold if hold else tx.models.get
    model = find(model_id) if is_id(model_id, "mdl") else None
    if model is None:
        raise RefusedError(
            "model-not-found",
            f"there is no model '{model_id[:64]}'",
            where=where,
            hint="submit it first with POST /v1/models",
        )
    return model


def _described(intake: Intake, file: BinaryIO, name: str, entry: str) -> tuple[str, str, dict[str, Any]]:
    """Kind, source and details, by how the name ends; what cannot be such a file is refused."""
    match name.rpartition(".")[2].lower():
        case "py":
            source = _source(intake, file, name)
            if is_task_program(source, name, entry):
                if entry:
                    check_entry(entry)
                bodies = {BODIES: True} if _brings_bodies(intake, source, name) else {}
                return "tasks", f"{name}:{entry}" if entry else name, {"file": name, "function": entry, **bodies}
            _check_source(intake, source, name, entry)
            return "python", f"{name}:{entry}", {"file": name, "function": entry}
        case "onnx":
            check_onnx(file.read(1), name)
            return "onnx", name, {"file": name}
        case "mlir":
            check_linalg(file.read(4096), name)
            return "linalg", name, {"file": name}
        case _:
            raise RefusedError(
                "model-file-unsupported",
                f"'{name}' is neither Python nor ONNX nor linalg text",
                where="field file",
                limit="files that end in .py, .onnx or .mlir, or in .cpp with their top function as entry",
                hint="write a .py file with a function that returns (module, example_inputs), or export to ONNX",
            )


def _source(intake: Intake, file: BinaryIO, name: str) -> bytes:
    source = file.read(intake.most_source_bytes + 1)
    if len(source) > intake.most_source_bytes:
        raise RefusedError(
            "too-large",
            f"{name} is too large for a source file",
            where="field file",
            limit=f"at most {intake.most_source_bytes} bytes",
            hint="keep weights out of the source",
        )
    return source


def _brings_bodies(intake: Intake, source: bytes, name: str) -> bool:
    """Whether it has bodies in other languages, which only somebody who may do everything sends."""
    if not has_bodies(source, name):
        return False
    if not intake.allow_bodies:
        raise RefusedError(
            "bodies-refused" if intake.allow_python else "python-models-refused",
            f"{name} has bodies in SystemVerilog or C++ (inject), which would be built and run, "
            + ("with the rights of this service" if intake.allow_python else "and this service executes nobody's code"),
            where="field file",
            limit="a token of scope admin" if intake.allow_python else "",
            hint="leave the bodies out, or run your own service: `penstock up --allow-python`",
        )
    return True


def _check_source(intake: Intake, source: bytes, name: str, entry: str) -> None:
    if not intake.allow_python:
        raise RefusedError(
            "python-models-refused",
            f"{name} would be executed, and this service executes nobody's code",
            where="field file",
            hint="submit an ONNX file, a task program or a zoo model "
            f"({', '.join(zoo_names()) or 'none are installed'}), or run your own: `penstock up`",
        )
    check_python(source, name, entry)


def _printable(name: str) -> str:
    """The last part of the file's name, printable, and without what means something else in a model's reference."""
    last = name.replace("\\", "/").rpartition("/")[2]
    plain = "".join(_MEANING.sub("_", letter) for letter in last if letter.isprintable())[-LONGEST_NAME:]
    stem, dot, ending = plain.rpartition(".")
    return (stem or "unnamed") + dot + ending.lower() if dot else plain or "unnamed"


def _model_name(file: str, entry: str) -> str:
    stem = file.rpartition(".")[0]
    entry, _, _ = entry.partition("#")
    return stem if entry in ("", "model") else f"{stem}.{entry}"
