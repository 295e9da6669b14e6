"""What a user calls a model, as something that can be sent: a file, a model of the zoo, or one of a library."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qsl

from penstock.compiler.reference import LIBRARIES
from penstock.compiler.tasks.source import is_task_source
from penstock.services.client.errors import UsageError

_ZOO_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True)
class ModelSource:
    """A file, `zoo:name?key=value`, or a model of a library by its reference."""

    path: Path | None = None
    entry: str = ""
    zoo: str = ""
    arguments: Mapping[str, str | int | float | bool] | None = None
    reference: str = ""

    @staticmethod
    def parse(text: str) -> ModelSource:
        if text.startswith("zoo:"):
            name, _, query = text.removeprefix("zoo:").partition("?")
            if not _ZOO_NAME.fullmatch(name):
                raise UsageError(f"'{text}' names no model: write zoo:NAME or zoo:NAME?key=value")
            pairs = parse_qsl(query, keep_blank_values=True)
            return ModelSource(zoo=name, arguments={key: _literal(value) for key, value in pairs})
        if text.partition(":")[0] in LIBRARIES and ":" in text:
            return ModelSource(reference=text)  # the service reads it
        file, _, entry = text.rpartition(":") if ".py:" in text else (text, "", "")
        path = Path(file)
        if path.suffix not in (".py", ".onnx", ".mlir"):
            raise UsageError(
                f"'{text}' is no model: write file.py:function, file.onnx, file.mlir, zoo:NAME?key=value "
                f"or a model of a library ({', '.join(f'{name}:NAME' for name in LIBRARIES)})"
            )
        if path.suffix == ".py" and not entry and not _is_task_program(path):
            raise UsageError(f"'{text}' lacks its entry function: write {text}:FUNCTION")
        if not path.is_file():
            raise UsageError(f"there is no file {path}")
        return ModelSource(path=path, entry=entry)


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
        return is_task_source(path.read_text())
    except (OSError, UnicodeDecodeError):
        return False
