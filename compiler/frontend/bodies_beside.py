"""Bodies of tasks that lie in files beside a program, read into its text: what is kept and sent is one text then."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from penstock.compiler.tasks.injections import LANGUAGES
from penstock.compiler.tasks.source import MOST_BYTES, ProgramText

_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,80}")


def with_bodies_beside(path: Path, text: str) -> str:
    """The text with the content of files for their names."""
    source = ProgramText(path.name, text)
    named = list(_named(source.parse())) if "inject" in text else []
    if not named:
        return text
    lines = [line.encode() for line in text.split("\n")]
    for node, name in sorted(named, key=lambda one: (one[0].lineno, one[0].col_offset), reverse=True):
        beside = path.parent / name
        if not _FILE.fullmatch(name) or not beside.is_file():
            raise source.error(
                node, f"there is no file {name[:80]!r} beside the program",
                "a service takes one file: write the body as a text of several lines in the program itself",
                "a plain name of a file in the same folder",
            )  # fmt: skip
        if beside.stat().st_size > MOST_BYTES:
            raise source.error(node, f"{name} is too long", limit=f"at most {MOST_BYTES} bytes")
        try:
            body = beside.read_bytes().decode().replace("\r\n", "\n").expandtabs()
        except UnicodeDecodeError:
            raise source.error(node, f"{name} is no text", "save it as UTF-8") from None
        assert node.end_col_offset is not None
        line = lines[node.lineno - 1]
        lines[node.lineno - 1] = line[: node.col_offset] + repr(f"{body}\n").encode() + line[node.end_col_offset :]
    return b"\n".join(lines).decode()


def _named(tree: ast.Module) -> Iterator[tuple[ast.Constant, str]]:
    """Bodies that are texts of one line, which no body is."""
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id != "inject":
            continue
        for one in call.keywords:
            match one.value:
                case ast.Constant(value=str(name)) if one.arg in LANGUAGES and "\n" not in name:
                    if one.value.lineno == one.value.end_lineno:
                        yield one.value, name
                case _:
                    pass
