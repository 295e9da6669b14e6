"""How a user names a model.

`file.py:function`, `file.py?name=value` for a task program or a Triton kernel,
`zoo:name?key=value`, `file.onnx?dim=size`, `file.mlir`, or a model of a library:
`hf:gpt2?n_layer=2`, `timm:mixer_s32_224?img_size=32`, `torchvision:resnet18`, `torch.nn:LSTM?input_size=8`.
With `#path.of.layers` behind it the layers there share one accelerator; with `#program.py` those that a task program
says that it implements. PyTorch modules take `weights=` (a file of
safetensors, or a folder of them) and `prefix=`: `file.py:function?weights=model.safetensors`. These and ONNX files
take `calibration=` (a file of typical inputs): `file.onnx?batch=1&calibration=inputs.npz`.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qsl

from penstock.compiler.errors import PenstockError

_HINT = (
    "write file.py:function (e.g. examples/digits_mlp.py:model), file.py of a task program, "
    "zoo:name?key=value (e.g. zoo:mlp?hidden=64), "
    "file.onnx, file.mlir, or a model of a library: hf:gpt2?n_layer=2, timm:NAME, torchvision:NAME, "
    "torch.nn:LSTM?input_size=8&hidden_size=16"
)

LIBRARIES = {"hf": "transformers", "timm": "timm", "torchvision": "torchvision", "torch.nn": "torch"}
"""Whose models can be named: what stands before the colon, and the Python package that it means."""


_FROM_CPU_INDEX = "from PyTorch's CPU index, or torchvision brings CUDA along"
TASKS = "tasks:"
"""Before a file that must be a task program, so that nothing of it is ever executed."""
_ASKED = re.compile(r"\.py:\w+\?")
_INSTALL = {
    "transformers": "pip install 'penstock[models]'",
    "timm": f"pip install timm torchvision, {_FROM_CPU_INDEX}",
    "torchvision": f"pip install torchvision, {_FROM_CPU_INDEX}",
}
WEIGHTS = ("weights", "prefix")
"""Options of every PyTorch module: a safetensors file or a folder of them, and what stands before its names there."""
CALIBRATION = "calibration"
"""Option of every model that PyTorch runs: a file with typical inputs, .npz or .npy."""
BESIDE = (*WEIGHTS, CALIBRATION)
LAYERS = re.compile(r"(\w+(\.\w+)*)?", re.ASCII)
"""A module's path, or nothing."""
PROGRAM = re.compile(r"[^#?]*\.py(:\w+)?(\?[^#]*)?")
"""A task program behind a model: its file, which program of it, and what its constants are."""
MODEL_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,99}"
"""How a library may call a model."""


def _query(options: Sequence[tuple[str, object]]) -> str:
    text = "&".join(f"{key}={value}" for key, value in options)
    return f"?{text}" if text else ""


@dataclass(frozen=True)
class FileReference:
    """`options` are those in `BESIDE`; lengths that each call says are the function's own parameters."""

    path: Path
    function: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        stem = self.path.stem
        return stem if self.function == "model" else f"{stem}.{self.function}"

    def __str__(self) -> str:
        return f"{self.path}:{self.function}{_query(self.options)}"


@dataclass(frozen=True)
class TaskReference:
    """A task program, which is read and never executed. `options` set constants of the file."""

    path: Path
    program: str = ""
    options: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        stem = self.path.stem
        return stem if self.program in ("", stem) else f"{stem}.{self.program}"

    def __str__(self) -> str:
        return f"{self.path}" + (f":{self.program}" if self.program else "") + _query(self.options)


@dataclass(frozen=True)
class ZooReference:
    name: str
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"zoo:{self.name}{_query(self.options)}"


@dataclass(frozen=True)
class LibraryReference:
    """A model of an installed library, built from its name and options."""

    library: str
    model: str
    options: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        part = dict(self.options).get("part", "")
        return f"{self.model}.{part}" if part else self.model

    def __str__(self) -> str:
        return f"{self.library}:{self.model}{_query(self.options)}"


@dataclass(frozen=True)
class OnnxReference:
    """`dims` gives sizes to dims that the file leaves open: model.onnx?batch=1."""

    path: Path
    dims: tuple[tuple[str, int], ...] = ()
    calibration: str = ""

    @property
    def name(self) -> str:
        return self.path.stem

    def __str__(self) -> str:
        typical = ((CALIBRATION, self.calibration),) if self.calibration else ()
        return f"{self.path}{_query((*self.dims, *typical))}"


@dataclass(frozen=True)
class LinalgReference:
    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True)
class LayersReference:
    """A model of which layers of one form share an accelerator: `MODEL#path.of.layers`, or `MODEL#` to find them."""

    model: FileReference | ZooReference | LibraryReference
    path: str

    @property
    def name(self) -> str:
        return self.model.name

    def __str__(self) -> str:
        return f"{self.model}#{self.path}"


@dataclass(frozen=True)
class ImplementedReference:
    """A model of which a task program computes some layers: `MODEL#program.py?P=4`."""

    model: FileReference | ZooReference | LibraryReference
    program: TaskReference

    @property
    def name(self) -> str:
        return self.model.name

    def __str__(self) -> str:
        return f"{self.model}#{self.program}"


WholeReference = FileReference | LibraryReference | OnnxReference | ZooReference
"""Models that PyTorch runs, all of each."""

ModelReference = (
    FileReference
    | ImplementedReference
    | LayersReference
    | LibraryReference
    | LinalgReference
    | OnnxReference
    | TaskReference
    | ZooReference
)


def around(reference: ModelReference) -> ModelReference:
    """The whole model, of a reference that says of some of its layers how they are computed."""
    return reference.model if isinstance(reference, ImplementedReference | LayersReference) else reference


def without_calibration(reference: WholeReference) -> tuple[WholeReference, str]:
    """The same model without typical inputs, and the file that these are in."""
    if isinstance(reference, OnnxReference):
        return replace(reference, calibration=""), reference.calibration
    options = tuple(one for one in reference.options if one[0] != CALIBRATION)
    return replace(reference, options=options), dict(reference.options).get(CALIBRATION, "")


def check_file(path: Path) -> None:
    """Refuses a model file that is not there."""
    if not path.is_file():
        kind = "is a folder" if path.is_dir() else "does not exist"
        raise PenstockError(code="model-file", what=f"the file {kind}", where=str(path), hint="check the path")


def check_installed(reference: LibraryReference) -> None:
    """Refuses a model whose library is not there; imports nothing."""
    package = LIBRARIES[reference.library]
    if importlib.util.find_spec(package) is None:
        raise PenstockError(
            code="model-library-missing", what=f"it needs the package {package}, which is not installed",
            where=str(reference), hint=_INSTALL.get(package, f"pip install {package}"),
        )  # fmt: skip


def parse_reference(text: str) -> ModelReference:
    """Takes a reference apart without touching the file system."""
    whole, mark, path = text.rpartition("#")
    if mark and PROGRAM.fullmatch(path):
        return ImplementedReference(_with_layers(whole, text), _task_reference(path))
    if mark and LAYERS.fullmatch(path):
        return LayersReference(_with_layers(whole, text), path)
    if text.startswith("zoo:"):
        return _zoo_reference(text)
    library, colon, rest = text.partition(":")
    if colon and library in LIBRARIES:
        return _library_reference(library, rest, text)
    file, mark, query = text.rpartition(".onnx?") if ".onnx?" in text else (text, "", "")
    if mark:
        options = _options(query, text)
        sizes = tuple(one for one in options if one[0] != CALIBRATION)
        return OnnxReference(Path(file + ".onnx"), _sizes(sizes, text), dict(options).get(CALIBRATION, ""))
    if text.endswith(".onnx"):
        return OnnxReference(Path(text))
    if text.endswith(".mlir"):
        return LinalgReference(Path(text))
    if (python := _python_with_files(text)) is not None:
        return python
    if text.startswith(TASKS) or ".py?" in text or text.endswith(".py") or _ASKED.search(text):
        return _task_reference(text)
    path, colon, function = text.rpartition(":")
    if not colon or not path.endswith(".py") or not function.isidentifier():
        raise PenstockError(code="model-reference", what="not a model reference", where=text, hint=_HINT)
    return FileReference(Path(path), function)


def with_sizes(reference: ModelReference, sizes: Mapping[str, int]) -> ModelReference:
    """The same model where these of its sizes are others: what `--dim` says a range of."""
    if isinstance(reference, LayersReference):
        sized = with_sizes(reference.model, sizes)
        assert isinstance(sized, FileReference | LibraryReference | ZooReference)
        return replace(reference, model=sized)
    if not isinstance(reference, FileReference | ZooReference | LibraryReference | OnnxReference):
        programs = isinstance(reference, ImplementedReference)
        raise PenstockError(
            code="bad-length", what="this model takes no lengths", where=str(reference),
            limit="lengths are for PyTorch and ONNX models",
            hint="leave out --dim" + (", or # and what follows it" if programs else ""),
        )  # fmt: skip
    given = reference.dims if isinstance(reference, OnnxReference) else reference.options
    if both := next((name for name, _ in given if name in sizes), None):
        raise PenstockError(
            code="bad-length", what=f"{both!r} is one number in the model and a range in --dim", where=str(reference),
            hint="leave one of the two out",
        )  # fmt: skip
    if isinstance(reference, OnnxReference):
        return replace(reference, dims=(*reference.dims, *sizes.items()))
    return replace(reference, options=(*reference.options, *((name, str(size)) for name, size in sizes.items())))


def _with_layers(whole: str, text: str) -> FileReference | ZooReference | LibraryReference:
    model = parse_reference(whole)
    if isinstance(model, FileReference | ZooReference | LibraryReference):
        return model
    raise PenstockError(
        code="model-reference", what="only a PyTorch module has layers that can share an accelerator", where=text,
        limit="file.py:function, zoo: and models of libraries", hint="leave # and what follows it out",
    )  # fmt: skip


def _python_with_files(text: str) -> FileReference | None:
    """`file.py:function?weights=FILE&calibration=FILE`; other options are constants of a task program."""
    place, _, query = text.partition("?")
    path, colon, function = place.rpartition(":")
    named = bool(colon) and path.endswith(".py") and function.isidentifier() and not text.startswith(TASKS)
    options = _options(query, text) if named and query else ()
    if not {"weights", CALIBRATION} & set(dict(options)) or any(key not in BESIDE for key, _ in options):
        return None
    return FileReference(Path(path), function, options)


def _task_reference(text: str) -> TaskReference:
    """`file.py`, `file.py?M=64`, `tasks:file.py:program?M=64`."""
    place, mark, query = text.removeprefix(TASKS).partition("?")
    options = _options(query, text) if mark and query else ()
    path, colon, program = place.rpartition(":") if not place.endswith(".py") else (place, "", "")
    if not path.endswith(".py") or (colon and not program.isidentifier()):
        raise PenstockError(code="model-reference", what="not a model reference", where=text, hint=_HINT)
    return TaskReference(Path(path), program, options)


def _zoo_reference(text: str) -> ZooReference:
    name, mark, query = text.removeprefix("zoo:").partition("?")
    return ZooReference(name, _options(query, text) if mark and query else ())


def _library_reference(library: str, rest: str, text: str) -> LibraryReference:
    model, mark, query = rest.partition("?")
    if not re.fullmatch(MODEL_PATTERN, model):
        raise PenstockError(
            code="model-reference", what=f"{model!r} is no name of a model", where=text,
            limit="letters, digits, '.', '_' and '-'", hint=_HINT,
        )  # fmt: skip
    return LibraryReference(library, model, _options(query, text) if mark and query else ())


def _sizes(options: Sequence[tuple[str, str]], text: str) -> tuple[tuple[str, int], ...]:
    """Sizes of dims; at most nine digits, which is more than any limit."""
    for name, value in options:
        if not value.isdecimal() or not 0 < len(value) < 10:
            raise PenstockError(
                code="model-reference", what=f"{value!r} is no size for the dim {name!r}", where=text,
                hint="write a whole number: model.onnx?batch=1",
            )  # fmt: skip
    return tuple((name, int(value)) for name, value in options)


def _options(query: str, text: str) -> tuple[tuple[str, str], ...]:
    try:
        options = parse_qsl(query, keep_blank_values=True, strict_parsing=True)
    except ValueError:
        raise PenstockError(
            code="model-reference", what=f"cannot read the options {query!r}", where=text, hint=_HINT
        ) from None
    keys = [key for key, _ in options]
    repeated = sorted({key for key in keys if keys.count(key) > 1})
    if repeated:
        raise PenstockError(
            code="model-reference",
            what=f"option {repeated[0]!r} is given twice",
            where=text,
            hint="give it once",
        )
    return tuple(options)
