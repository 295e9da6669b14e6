"""A source to its syntax tree: the bounded process is started here, and its errors become ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.compiler.errors import Mistakes, PenstockError
from penstock.compiler.hls_in.fence import WHOLE_HEADERS, Sources, read_sources, shipped
from penstock.compiler.hls_in.syntax import Tree

_SECONDS = 60
_MEMORY = 3 << 30
_MOST_SAID = 300
"""Letters of one mistake that are shown."""
_ROOT = "/penstock-source"
_HEADERS = "/penstock-headers"
_ARGUMENTS = (
    "-x", "c++", "-std=c++14", "-nostdinc", "-nostdinc++", f"-isystem{_HEADERS}", "-D__SYNTHESIS__=1",
    "-D__HLS_SYN__=1",
    "-Wno-everything", "-ftemplate-depth=128", "-fbracket-depth=512", "-fconstexpr-steps=200000",
    "-ferror-limit=50", "-fno-spell-checking",
)  # fmt: skip


@dataclass(frozen=True)
class Unit:
    """What a source declares: nested lists, [kind, [file, line, column], ...]; parse_process.py writes them."""

    sources: Sources
    declarations: list[Tree]
    macros: dict[str, str] = field(default_factory=dict[str, str])
    """What macros without arguments stand for."""


def parse(path: Path) -> Unit:
    sources = read_sources(path)
    files = {str(Path(_ROOT) / file.relative_to(sources.folder)): text for file, text in sources.texts.items()}
    headers = {f"{_HEADERS}/{name}": text for name, text in shipped().items()}
    whole = [f"{_HEADERS}/{path.name}" for path in sorted(WHOLE_HEADERS.glob("*.h"))]
    main = str(Path(_ROOT) / sources.main.relative_to(sources.folder))
    request = {
        "main": main, "own": [*files, *whole], "texts": files | headers, "arguments": _ARGUMENTS,
        "seconds": _SECONDS, "memory": _MEMORY,
    }  # fmt: skip
    answer = _run(request, path.name)
    mistakes = Mistakes()
    for file, line, column, said, own in answer["errors"]:
        with mistakes.noted():
            raise PenstockError(
                code="bad-source", what=_readable(said, own=own), where=f"{shown(file)}:{line}:{column}",
                hint="correct the C++ first: it must compile on its own, with the headers beside it",
            )  # fmt: skip
    mistakes.raise_first()
    return Unit(sources, answer["unit"], answer["macros"])


def _readable(said: str, *, own: bool) -> str:
    """A mistake on one line that does nothing to a terminal or to the order of letters. What `#error` says are a
    source's own words: nobody shall take them for ours."""
    plain = " ".join("".join(c if c.isprintable() else " " if c.isspace() else "\ufffd" for c in said).split())
    short = plain if len(plain) <= _MOST_SAID else plain[:_MOST_SAID] + " …"
    return '#error in the source, which says "{}"'.format(short.replace('"', "'")) if own else short


def shown(file: str) -> str:
    """A file as the user named it: relative to the source's folder."""
    return file.removeprefix(_ROOT + "/")


def _run(request: dict[str, Any], name: str) -> dict[str, Any]:
    program = Path(__file__).with_name("parse_process.py")
    environment = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": os.pathsep.join(sys.path)}
    try:
        done = subprocess.run(
            [sys.executable, "-P", str(program)], input=json.dumps(request), capture_output=True, text=True,
            timeout=2 * _SECONDS, env=environment, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise _exceeded(name, f"reading takes longer than {2 * _SECONDS} s") from None
    if done.returncode or not done.stdout:
        if "No module named 'clang'" in done.stderr:
            raise PenstockError(
                code="missing-part", what="reading C++ needs libclang", hint="pip install 'penstock[compiler]'"
            )  # fmt: skip
        raise _exceeded(name, "the C++ front end gave up")
    return json.loads(done.stdout)


def _exceeded(name: str, what: str) -> PenstockError:
    return PenstockError(
        code="source-too-large", what=what, where=f"{name}:1:1",
        limit=f"{_SECONDS} s of processor time and {_MEMORY >> 30} GiB of memory",
        hint="unfold fewer macros and templates, or split the kernel",
    )  # fmt: skip
