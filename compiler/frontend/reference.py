"""How a user names a model: `file.py:function` or `zoo:name?key=value&key=value`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl

from compiler.errors import PenstockError

_HINT = "write file.py:function (e.g. examples/digits_mlp.py:model) or zoo:name?key=value (e.g. zoo:mlp?hidden=64)"


@dataclass(frozen=True)
class FileReference:
    path: Path
    function: str

    @property
    def name(self) -> str:
        stem = self.path.stem
        return stem if self.function == "model" else f"{stem}.{self.function}"

    def __str__(self) -> str:
        return f"{self.path}:{self.function}"


@dataclass(frozen=True)
class ZooReference:
    name: str
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        query = "&".join(f"{key}={value}" for key, value in self.options)
        return f"zoo:{self.name}" + (f"?{query}" if query else "")


ModelReference = FileReference | ZooReference


def parse_reference(text: str) -> ModelReference:
    """Takes a reference apart without touching the file system."""
    if text.startswith("zoo:"):
        return _zoo_reference(text)
    if text.endswith(".onnx"):
        raise PenstockError(
            code="model-reference",
            what="ONNX files cannot be imported yet",
            where=text,
            hint="load the model in PyTorch and " + _HINT,
        )
    path, colon, function = text.rpartition(":")
    if not colon or not path.endswith(".py") or not function.isidentifier():
        raise PenstockError(code="model-reference", what="not a model reference", where=text, hint=_HINT)
    return FileReference(Path(path), function)


def _zoo_reference(text: str) -> ZooReference:
    name, mark, query = text.removeprefix("zoo:").partition("?")
    try:
        options = parse_qsl(query, keep_blank_values=True, strict_parsing=True) if mark and query else []
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
    return ZooReference(name, tuple(options))
