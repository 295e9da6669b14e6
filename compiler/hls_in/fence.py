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
WHOLE_HEADERS = HEADERS / "whole"
"""Those that say what their functions do: they are read as the source is, and can be compiled."""
KERNELS = (".cpp", ".cc", ".cxx", ".c")
"""How the names of sources end."""
MOST_BYTES = 4 << 20
MOST_FILES = 64

_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))|(?P<raw>(?:u8|[uUL])?R\")"
    r"|\"(?:\\.|[^\"\\\n])*(?:\"|(?=\n)|\\?\Z)|'(?:\\.|[^'\\\n])*(?:'|(?=\n)|\\?\Z)"
    r"|\.?[0-9](?:[eEpP][+-]|'?[0-9A-Za-z_]|\.)*|[A-Za-z_]\w*",
    re.DOTALL,
)
"""What may hold quotes or slashes that mean something else: 1'000 is a number, R"(" the begin of a raw string. Each
alternative goes on to its end or to that of the text, so that no text is gone through again and again."""
_ASKS = re.compile(r"__has_include|__has_embed|\bGCC\s+dependency\b|\bclang\s+(?:dependency|include)\b")
_DIRECTIVE = re.compile(r"^[ \t]*(?:#|%:|\?\?=)[ \t]*(include_next|include|import|embed)\b[ \t]*([^\n]*)", re.MULTILINE)
_NAME = re.compile(r'(?:"([^"\n]+)"|<([^>\n]+)>)[ \t]*')


@dataclass(frozen=True)
class Sources:
    """The submitted files by path, their text, and the one to be compiled."""

    main: Path
    folder: Path
    texts: dict[Path, str]


def lay_out(sources: Sources, text: str, folder: Path) -> Path:
    """The same files in another folder, the main one with this text; returns where that is."""
    for file, old in sources.texts.items():
        place = folder / file.relative_to(sources.folder)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text if file == sources.main else old)
    return folder / sources.main.relative_to(sources.folder)


_HOST = dict.fromkeys(("fstream", "map", "sstream", "string", "vector"), "host.h")
OTHERWISE = {
    **{name: f"{name}.h" for name in ("algorithm", "array", "iostream", "tuple", "type_traits", "utility")},
    **_HOST, "utils/x_hls_utils.h": "hls_limits.h",
}  # fmt: skip
"""Headers of C++ that C has none of, and of Vitis, that are here under another name."""


def shipped() -> dict[str, str]:
    """The headers that come with Penstock by name: declarations of Vitis' own and the few of C++ that kernels use."""
    own = {path.name: path.read_text() for path in (*HEADERS.glob("*.h"), *WHOLE_HEADERS.glob("*.h"))}
    others = ("ap_", "hls_", *(name.removesuffix(".h") for name in OTHERWISE.values()))
    bare = OTHERWISE | {"c" + name.removesuffix(".h"): name for name in own if not name.startswith(others)}
    return own | {name: f"#pragma once\n#include <{target}>\n" for name, target in bare.items()}


def without_comments(text: str) -> str:
    """The text with comments blanked; every other character keeps its line and column."""

    return _TOKEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]) if match["comment"] else match[0], text)


def _misleading(text: str) -> tuple[int, str] | None:
    """Where a text is written so that a compiler may see another end of a string or comment than is seen here."""
    if (at := text.find("??/")) >= 0:
        return at, "the trigraph ??/"
    raw = next((match for match in _TOKEN.finditer(text) if match["raw"]), None)
    return (raw.start(), "a raw string") if raw else None


def spliced(text: str) -> str:
    """Lines that a backslash continues as one line, followed by as many empty ones."""
    lines: list[str] = []
    joined: list[str] = []
    for line in text.split("\n"):
        whole = line.rstrip(" \t\v\f\r")  # compilers overlook blanks behind the backslash
        if whole.endswith("\\"):
            joined.append(whole[:-1])
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
        whole = spliced(text)
        code = without_comments(whole)
        if odd := _misleading(whole):
            with mistakes.noted():
                line = whole.count("\n", 0, odd[0]) + 1
                raise _refusal(f"{path.name}:{line}:1", odd[1], "write it as an ordinary string")
        for match in _DIRECTIVE.finditer(code):
            with mistakes.noted():
                line = code.count("\n", 0, match.start()) + 1
                found = _included(match, path, folder, f"{path.name}:{line}:1")
                if found is not None:
                    waiting.append(found)
        for match in _ASKS.finditer(code):
            with mistakes.noted():
                line = code.count("\n", 0, match.start()) + 1
                raise _refusal(f"{path.name}:{line}:1", f"{match[0]} asks about files", "include the header or not")
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
