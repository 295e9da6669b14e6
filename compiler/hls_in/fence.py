"""What a source may include: files of its own folder and the shipped headers, written out as such. Nothing else.

Includes are looked at before the compiler sees them, in every file that can be reached, so no file outside is ever
opened. An include whose name is computed, or that hides behind an odd spelling, is refused rather than guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from penstock.compiler.errors import Mistakes, PenstockError

HEADERS = Path(__file__).parent / "include"
MOST_BYTES = 4 << 20
MOST_FILES = 64

_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|//[^\n]*|/\*.*?\*/', re.DOTALL)
_DIRECTIVE = re.compile(r"^[ \t]*(?:#|%:|\?\?=)[ \t]*(include_next|include|import|embed)\b[ \t]*([^\n]*)", re.MULTILINE)
_NAME = re.compile(r'(?:"([^"\n]+)"|<([^>\n]+)>)[ \t]*')


@dataclass(frozen=True)
class Sources:
    """The submitted files by path, their text, and the one to be compiled."""

    main: Path
    folder: Path
    texts: dict[Path, str]


def shipped() -> dict[str, str]:
    """The headers that come with Penstock by name: declarations of Vitis' own and the few of C++ that kernels use."""
    own = {path.name: path.read_text() for path in HEADERS.glob("*.h")}
    bare = {"algorithm": "algorithm.h", "utility": "utility.h"}
    bare |= {"c" + name.removesuffix(".h"): name for name in own if not name.startswith(("ap_", "hls_", "alg", "util"))}
    return own | {name: f"#pragma once\n#include <{target}>\n" for name, target in bare.items()}


def without_comments(text: str) -> str:
    """The text with comments blanked; every other character keeps its line and column."""

    def blank(match: re.Match[str]) -> str:
        found = match[0]
        return found if found[0] in "\"'" else re.sub(r"[^\n]", " ", found)

    return _COMMENT.sub(blank, text)


def spliced(text: str) -> str:
    """Lines that a backslash continues as one line, followed by as many empty ones."""
    lines: list[str] = []
    joined: list[str] = []
    for line in text.split("\n"):
        if line.endswith("\\"):
            joined.append(line[:-1])
            continue
        lines += ["".join([*joined, line]), *[""] * len(joined)]
        joined = []
    return "\n".join([*lines, *joined])


def read_sources(main: Path) -> Sources:
    """All files that the source needs; one error for each that it may not have."""
    main = main.resolve()
    folder = main.parent
    texts: dict[Path, str] = {}
    waiting = [main]
    mistakes = Mistakes()
    while waiting:
        path = waiting.pop()
        if path in texts:
            continue
        if len(texts) == MOST_FILES:
            raise _refusal(path.name, f"more than {MOST_FILES} files", "submit the kernel without its test bench")
        texts[path] = text = _text(path)
        code = without_comments(spliced(text))
        for match in _DIRECTIVE.finditer(code):
            with mistakes.noted():
                line = code.count("\n", 0, match.start()) + 1
                found = _included(match, path, folder, f"{path.name}:{line}:1")
                if found is not None:
                    waiting.append(found)
        if "__has_include" in code or "__has_embed" in code:
            with mistakes.noted():
                line = code[: code.index("__has_")].count("\n") + 1
                raise _refusal(f"{path.name}:{line}:1", "__has_include asks about files", "include the header or not")
    mistakes.raise_first()
    return Sources(main, folder, texts)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise _refusal(
                path.name, f"a file of more than {MOST_BYTES >> 20} MiB", "put tables into separate memories"
            )
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise PenstockError(
            code="bad-source", what=f"the file cannot be read: {error}", where=path.name,
            hint="give a C++ source in UTF-8",
        ) from None  # fmt: skip


def _included(match: re.Match[str], path: Path, folder: Path, where: str) -> Path | None:
    name = _NAME.fullmatch(match[2].rstrip())
    if match[1] != "include" or name is None:
        raise _refusal(
            where, f"#{match[1]} {match[2].strip()[:60]} names no file", "write #include with the file's name"
        )
    asked = name[1] or name[2]
    if asked in shipped():
        return None
    target = (path.parent / asked).resolve()
    if Path(asked).is_absolute() or not target.is_relative_to(folder):
        raise _refusal(
            where, f"include of {asked!r}, which lies outside the source's folder", "copy it into the folder"
        )
    if not target.is_file():
        known = ", ".join(sorted(name for name in shipped() if name.startswith(("ap_", "hls_"))))
        raise _refusal(where, f"there is no header {asked!r}", f"put it beside the source; known of Vitis: {known}")
    return target


def _refusal(where: str, what: str, hint: str) -> PenstockError:
    return PenstockError(code="bad-source", what=what, where=where, hint=hint)
