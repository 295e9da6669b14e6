"""A Dockerfile as data: stages and their instructions, words and variables as the format has them.

Only what can be carried out is accepted: an instruction that nobody here knows is an error, never passed over.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

CARRIED_OUT = {"RUN", "COPY", "ENV", "WORKDIR", "USER", "ENTRYPOINT", "CMD", "HEALTHCHECK", "ARG", "EXPOSE", "LABEL"}
SHELL = ("/bin/sh", "-c")
_VARIABLE = re.compile(r"\$(?:\{(\w+)(?::([-+])([^}]*))?\}|(\w+))")


class DockerfileError(ValueError):
    """What stands there, and where."""


@dataclass(frozen=True)
class Instruction:
    line: int
    name: str
    rest: str

    def command(self) -> list[str]:
        """Of RUN, CMD and ENTRYPOINT: a JSON list as it stands, else a line for the shell."""
        return list(json.loads(self.rest)) if self.rest.startswith("[") else [*SHELL, self.rest]

    def pairs(self, known: dict[str, str]) -> dict[str, str]:
        """Of ENV and ARG: NAME=VALUE, with what is known by then."""
        found: dict[str, str] = {}
        for word in shlex.split(self.rest):
            name, separator, value = word.partition("=")
            if separator or self.name == "ARG":
                found[name] = expanded(value, known)
            else:
                raise DockerfileError(f"line {self.line}: {self.name} {word!r} has no value: write NAME=VALUE")
        return found


@dataclass
class Stage:
    base: str
    name: str
    instructions: list[Instruction] = field(default_factory=list[Instruction])


def read_stages(file: Path) -> list[Stage]:
    stages: list[Stage] = []
    before: dict[str, str] = {}
    for instruction in _instructions(file.read_text()):
        if instruction.name == "FROM":
            words = expanded(instruction.rest, before).split()
            named = len(words) == 3 and words[1].upper() == "AS"
            if len(words) != 1 and not named:
                raise DockerfileError(f"{file.name}:{instruction.line}: FROM {instruction.rest!r} is not read here")
            stages.append(Stage(words[0], words[2] if named else str(len(stages))))
        elif instruction.name not in CARRIED_OUT:
            raise DockerfileError(f"{file.name}:{instruction.line}: {instruction.name} is not carried out here")
        elif stages:
            stages[-1].instructions.append(instruction)
        elif instruction.name == "ARG":
            before |= instruction.pairs(before)
        else:
            raise DockerfileError(f"{file.name}:{instruction.line}: {instruction.name} before FROM")
    if not stages:
        raise DockerfileError(f"{file.name}: no FROM")
    return stages


def _instructions(text: str) -> list[Instruction]:
    """One for each line, where a backslash joins lines, and comments between them are left out."""
    found: list[Instruction] = []
    open_line, parts = 0, list[str]()
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("#") or (not stripped and not parts):
            continue
        open_line = open_line if parts else number
        parts.append(stripped.removesuffix("\\").rstrip())
        if not stripped.endswith("\\"):
            name, _, rest = " ".join(parts).partition(" ")
            found.append(Instruction(open_line, name.upper(), rest.strip()))
            parts = []
    if parts:
        raise DockerfileError(f"line {open_line}: it ends in a backslash, and so does the file")
    return found


def expanded(text: str, known: dict[str, str]) -> str:
    """$NAME, ${NAME}, ${NAME:-else} and ${NAME:+instead}."""

    def value(found: re.Match[str]) -> str:
        name, kind, word, plain = found.groups()
        there = known.get(name or plain, "")
        if kind == "-":
            return there or expanded(word, known)
        if kind == "+":
            return expanded(word, known) if there else ""
        return there

    return _VARIABLE.sub(value, text)
