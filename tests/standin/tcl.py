"""A strict subset of Tcl, enough for HLS scripts: what it does not know it refuses as Tcl does, and never guesses."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

Command = Callable[[list[str]], str]


class TclError(Exception):
    """An error that a script meets; `trace` is filled in on its way out, as Tcl's errorInfo is."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message
        self.trace = ""


class TclExit(Exception):
    """The script's `exit`."""

    def __init__(self, code: int) -> None:
        super().__init__(str(code))
        self.code = code


class Interpreter:
    """Runs scripts; the owner adds commands of its own to `commands`."""

    def __init__(self, out: Callable[[str], None]) -> None:
        self.out = out
        self.variables: dict[str, str] = {}
        self.script = ""
        self.commands: dict[str, Command] = {
            "set": self._set, "if": self._if, "foreach": self._foreach, "switch": self._switch, "catch": self._catch,
            "puts": self._puts, "error": self._error, "exit": self._exit, "info": self._info, "file": self._file,
            "source": lambda a: self.source(_only(a, "source")), "list": lambda a: " ".join(map(_quoted, a)),
        }  # fmt: skip

    def source(self, path: str) -> str:
        before, self.script = self.script, path
        try:
            with open(path, encoding="utf-8") as file:
                return self.run(file.read())
        finally:
            self.script = before

    def run(self, text: str) -> str:
        """Run a script; returns what its last command returned."""
        result = ""
        for start, words in self._commands(text):
            name, *arguments = words
            command = self.commands.get(name)
            try:
                if command is None:
                    raise TclError(f'invalid command name "{name}"')
                result = command(arguments)
            except TclError as error:
                if not error.trace:
                    error.trace = f'    while executing\n"{start}"'
                raise
        return result

    # Parsing: a script is commands, a command is words; words are substituted as they are read.

    def _commands(self, text: str):
        at = 0
        while at < len(text):
            if text[at] in " \t\r\n;":
                at += 1
            elif text[at] == "#":
                while at < len(text) and text[at] != "\n":
                    at += 2 if text[at] == "\\" else 1
            else:
                start, words = at, []
                while at < len(text) and text[at] not in "\n;":
                    if text[at] in " \t\r":
                        at += 1
                    elif text.startswith("\\\n", at):
                        at += 2
                    else:
                        word, at = self._word(text, at)
                        words.append(word)
                yield text[start:at].strip(), words

    def _word(self, text: str, at: int) -> tuple[str, int]:
        if text[at] == "{":
            end = _closing(text, at, "{", "}")
            self._after(text, end + 1, "close-brace")
            return text[at + 1 : end].replace("\\\n", " "), end + 1
        quoted = text[at] == '"'
        at += quoted
        parts: list[str] = []
        while at < len(text):
            char = text[at]
            if quoted and char == '"':
                self._after(text, at + 1, "close-quote")
                return "".join(parts), at + 1
            if not quoted and char in " \t\r\n;":
                break
            if char == "$":
                value, at = self._variable(text, at)
                parts.append(value)
            elif char == "[":
                end = _closing(text, at, "[", "]")
                parts.append(self.run(text[at + 1 : end]))
                at = end + 1
            elif char == "\\":
                parts.append({"n": "\n", "t": "\t", "\n": " "}.get(text[at + 1 : at + 2], text[at + 1 : at + 2]))
                at += 2
            else:
                parts.append(char)
                at += 1
        if quoted:
            raise TclError('missing "')
        return "".join(parts), at

    @staticmethod
    def _after(text: str, at: int, what: str) -> None:
        if at < len(text) and text[at] not in " \t\r\n;]":
            raise TclError(f"extra characters after {what}")

    def _variable(self, text: str, at: int) -> tuple[str, int]:
        if text.startswith("${", at):
            end = text.index("}", at)
            return self.read(text[at + 2 : end]), end + 1
        end = at + 1
        while end < len(text) and (text[end].isalnum() or text[end] in "_:"):
            end += 1
        if end < len(text) and text[end] == "(":
            end = text.index(")", end) + 1
        if end == at + 1:
            return "$", end
        return self.read(text[at + 1 : end]), end

    def read(self, name: str) -> str:
        if not self.exists(name):
            raise TclError(f'can\'t read "{name}": no such variable')
        key = _env(name)
        return os.environ[key] if key is not None else self.variables[name.removeprefix("::")]

    def exists(self, name: str) -> bool:
        key = _env(name)
        return key in os.environ if key is not None else name.removeprefix("::") in self.variables

    # Commands of the language itself.

    def _set(self, a: list[str]) -> str:
        if len(a) == 2:
            self.variables[a[0].removeprefix("::")] = a[1]
        elif len(a) != 1:
            raise TclError('wrong # args: should be "set varName ?newValue?"')
        return self.read(a[0])

    def _truth(self, text: str) -> bool:
        value = self._word('"' + text.strip().replace('"', '\\"') + '"', 0)[0].strip()
        negated = value.startswith("!")
        word = value.lstrip("! ").lower()
        if word not in ("0", "1", "true", "false", "yes", "no", "on", "off"):
            raise TclError(f'expected boolean value but got "{value}"')
        return (word in ("1", "true", "yes", "on")) != negated

    def _if(self, a: list[str]) -> str:
        a = [word for word in a if word != "then"]
        while True:
            if self._truth(a[0]):
                return self.run(a[1])
            if len(a) > 2 and a[2] == "elseif":
                a = a[3:]
            elif len(a) > 3 and a[2] == "else":
                return self.run(a[3])
            elif len(a) == 2:
                return ""
            else:
                raise TclError("wrong # args: no script following the condition")

    def _foreach(self, a: list[str]) -> str:
        if len(a) != 3:
            raise TclError('wrong # args: should be "foreach varList list ?varList list ...? command"')
        for item in split(a[1]):
            self.variables[a[0]] = item
            self.run(a[2])
        return ""

    def _switch(self, a: list[str]) -> str:
        while a and a[0].startswith("-"):
            option = a.pop(0)
            if option == "--":
                break
            if option not in ("-exact",):
                raise TclError(f'bad option "{option}": must be -exact, -glob, -indexvar, -matchvar, -nocase, or --')
        cases = split(a[1]) if len(a) == 2 else a[1:]
        for pattern, body in zip(cases[::2], cases[1::2], strict=True):
            if pattern in (a[0], "default"):
                return self.run(body)
        return ""

    def _catch(self, a: list[str]) -> str:
        try:
            result = self.run(a[0])
        except TclError as error:
            if len(a) > 1:
                self.variables[a[1]] = error.message
            return "1"
        if len(a) > 1:
            self.variables[a[1]] = result
        return "0"

    def _puts(self, a: list[str]) -> str:
        self.out(a[-1])
        return ""

    def _error(self, a: list[str]) -> str:
        raise TclError(a[0])

    def _exit(self, a: list[str]) -> str:
        raise TclExit(int(a[0]) if a else 0)

    def _info(self, a: list[str]) -> str:
        if a[0] == "exists":
            return "1" if self.exists(a[1]) else "0"
        if a == ["script"]:
            return self.script
        raise TclError(f'unknown or ambiguous subcommand "{a[0]}"')

    def _file(self, a: list[str]) -> str:
        actions: dict[str, Callable[..., Any]] = {
            "dirname": lambda path: os.path.dirname(path) or ".",
            "normalize": lambda path: os.path.normpath(os.path.abspath(path)),
            "tail": os.path.basename,
            "join": os.path.join,
            "exists": lambda path: "1" if os.path.exists(path) else "0",
        }
        if a[0] not in actions:
            raise TclError(f'unknown or ambiguous subcommand "{a[0]}"')
        return str(actions[a[0]](*a[1:]))


def split(text: str) -> list[str]:
    """A Tcl list as its items."""
    reader, items, at = Interpreter(print), [], 0
    while at < len(text):
        if text[at] in " \t\r\n":
            at += 1
        elif text[at] == "{":
            end = _closing(text, at, "{", "}")
            items.append(text[at + 1 : end])
            at = end + 1
        elif text[at] == '"':
            word, at = reader._word(text, at)
            items.append(word)
        else:
            end = at
            while end < len(text) and text[end] not in " \t\r\n":
                end += 1
            items.append(text[at:end])
            at = end
    return items


def _closing(text: str, at: int, opening: str, closing: str) -> int:
    depth, here = 0, at
    while here < len(text):
        if text[here] == "\\":
            here += 1
        elif text[here] == opening:
            depth += 1
        elif text[here] == closing:
            depth -= 1
            if depth == 0:
                return here
        here += 1
    raise TclError("missing close-brace" if closing == "}" else "missing close-bracket")


def _env(name: str) -> str | None:
    plain = name.removeprefix("::")
    return plain[4:-1] if plain.startswith("env(") and plain.endswith(")") else None


def _only(a: list[str], name: str) -> str:
    if len(a) != 1:
        raise TclError(f'wrong # args: should be "{name} argument"')
    return a[0]


def _quoted(word: str) -> str:
    return "{" + word + "}" if not word or any(c in word for c in " \t\n;") else word
