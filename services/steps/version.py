"""The version that results depend on: a digest of the code that makes them.

A release number would not do: on a developer's machine the compiler changes without one, and a result of
the old compiler must not pass for one of the new.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import metadata
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
_FOLDERS = ("compiler", "dse", "profiling", "services/jobs", "services/steps")
_SEARCHED = ("compiler", "dse", "profiling")
_TABLES = ("compiler/schedule/operators", "compiler/platforms/data", "dse/evaluation/energy.toml")
_WORDS = {"penstock": "Penstock was version", "code": "its code was", "tables": "the tables of operators were"}
_SUFFIXES = (".py", ".toml", ".json", ".j2", ".h", ".cpp", ".tcl", ".cfg", ".html", ".css", ".js")


@cache
def code_version() -> str:
    """The same for the same sources, wherever they are installed."""
    return _digest(_FOLDERS)


@cache
def evaluation_version() -> str:
    """What a trial's figures depend on beside its setting: `penstock=… code=… tables=…`, in one line.

    The tables are those of operators, platforms and energies; they may change while the code does not.
    """
    return f"penstock={metadata.version('penstock')} code={_digest(_SEARCHED)} tables={_digest(_TABLES)}"


def changed_since(version: str) -> tuple[str, ...]:
    """What is another one now than when a trial was evaluated, in words; an old record may not say."""
    then, now = _parts(version), _parts(evaluation_version())
    return tuple(
        f"{_WORDS[name]} {then.get(name) or 'not recorded'}, now {now[name]}"
        for name in now
        if then.get(name) != now[name]
    )


def _parts(version: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in version.split())
    return {name: value for name, _, value in pairs}


def _digest(places: tuple[str, ...]) -> str:
    digest = hashlib.sha256()
    for place in places:
        found = sorted((_ROOT / place).rglob("*")) if (_ROOT / place).is_dir() else [_ROOT / place]
        for path in found:
            if path.suffix in _SUFFIXES and "__pycache__" not in path.parts:
                digest.update(path.relative_to(_ROOT).as_posix().encode() + b"\0")
                digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]
