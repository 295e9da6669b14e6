"""`inject` after the tasks: bodies written by hand, as a program says them."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from typing import Literal

from penstock.compiler.dialects.injected import BodyLanguage, Injected, Stalls
from penstock.compiler.errors import nearest
from penstock.compiler.tasks.expressions import Expressions
from penstock.compiler.tasks.source import ProgramText
from penstock.compiler.tasks.values import Builtin, TaskDef, TaskInjection

LANGUAGES: Mapping[BodyLanguage, tuple[Literal["module", "function"], Stalls]] = {
    "systemverilog": ("module", "holds"),
    "cpp": ("function", "stops"),
}
"""What each calls what does the work, and how it stands still: as the hardware of its route does."""
AREA = ("lut", "ff", "dsp", "bram")
_NUMBERS = ("ii", "depth", *AREA)
_KNOWN = (*LANGUAGES, "module", "function", "reads", "writes", "stalls", *_NUMBERS)
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,60}")
_MOST_NUMBER = 1 << 20
_MOST_BODIES = 8
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_CONTROL = re.compile(r"[^\n\t -~\u00a0-\U0010ffff]")
_MODULE = re.compile(r"\b(?:module|macromodule)\s+(?:automatic\s+|static\s+)?(\w+)")
_OURS = re.compile(
    r"(?:task|body|penstock|fp32|int|ecp5|xilinx|table|rom)_\w*|V[kl]\w*|(?i:mult18\w*)|significand_product|DP16KD|top"
)
_HARMLESS = frozenset({"clog2", "signed", "unsigned", "bits", "countones", "onehot", "onehot0"})
_OUTSIDE = re.compile(r"\$\s*(?P<task>\w*)|`\s*(?P<directive>\w*)|\b(?:import|export|bind|config|program)\b|[\\\"]")
_DIRECTIVES = frozenset({"default_nettype"})


def named_task(source: ProgramText, tasks: Sequence[TaskDef], node: ast.expr) -> str:
    """A task that stands above, by its name."""
    known = [task.name for task in tasks]
    if not isinstance(node, ast.Name) or node.id not in known:
        named = node.id if isinstance(node, ast.Name) else ast.unparse(node)[:40]
        hint = nearest(named, known, "write the schedule after the tasks, with their names")
        raise source.error(node, f"there is no task {named!r} above", hint)
    return node.id


class Injections:
    """The bodies that a program gives its tasks."""

    def __init__(self, source: ProgramText, expressions: Expressions, tasks: list[TaskDef]) -> None:
        self.source, self.expressions, self.tasks = source, expressions, tasks
        self.found: list[TaskInjection] = []

    def says(self, call: ast.Call) -> bool:
        """Whether a line is such a call, which is noted."""
        word = call.func.id if isinstance(call.func, ast.Name) else ""
        if word != "inject" or self.expressions.names.get(word) != Builtin(word):
            return False
        if len(call.args) != 2:
            raise self.source.error(
                call, "inject takes a task and a name for the body", 'write inject(dot, "fast", systemverilog=...)'
            )
        given = self._keywords(call)
        task = named_task(self.source, self.tasks, call.args[0])
        name = self._text(call.args[1], "the name of a body")
        if not _NAME.fullmatch(name) or any(one.body.name == name and one.task == task for one in self.found):
            raise self.source.error(call.args[1], f"{name[:60]!r} cannot be the name of this body", "letters, digits "
                                    "and underscores, once a task")  # fmt: skip
        if len(self.found) == _MOST_BODIES:
            raise self.source.error(call, "too many bodies", limit=f"at most {_MOST_BODIES} in a program")
        self.found.append(TaskInjection(task, self._body(call, name, given), call))
        return True

    def _keywords(self, call: ast.Call) -> dict[str, ast.expr]:
        given: dict[str, ast.expr] = {}
        for one in call.keywords:
            if one.arg not in _KNOWN:
                raise self.source.error(
                    one.value, f"{one.arg} is no part of a contract", nearest(one.arg or "", _KNOWN, "leave it out"),
                    ", ".join(_KNOWN),
                )  # fmt: skip
            given[one.arg] = one.value
        return given

    def _body(self, call: ast.Call, name: str, given: Mapping[str, ast.expr]) -> Injected:
        languages: list[BodyLanguage] = [one for one in LANGUAGES if one in given]
        if len(languages) != 1:
            raise self.source.error(
                call, "a body is written in one language", 'give systemverilog=TEXT, module="..." or cpp=TEXT, '
                'function="..."',
            )  # fmt: skip
        language = languages[0]
        word, stalls = LANGUAGES[language]
        if missing := [one for one in (word, "reads", "writes", "ii", "depth") if one not in given]:
            raise self.source.error(call, f"the contract does not say {missing[0]}", f"write {missing[0]}=...")
        other = next(one for one, _ in LANGUAGES.values() if one != word)
        if other in given:
            raise self.source.error(given[other], f"{language} has no {other}", f"write {word}=...")
        symbol = self._text(given[word], f"the {word}'s name")
        if not _NAME.fullmatch(symbol):
            raise self.source.error(given[word], f"{symbol[:60]!r} is no name of a {word}")
        said = self._text(given["stalls"], "how it stands still") if "stalls" in given else stalls
        if said != stalls:
            raise self.source.error(
                given["stalls"], f"a body in {language} cannot promise stalls={said[:20]!r}",
                f'write stalls="{stalls}", and let the body do so',
                "holds: while its output is not taken nothing moves, while input is missing what is inside goes on; "
                "stops: nothing moves in either case",
            )  # fmt: skip
        numbers = {key: self._number(given[key], key) for key in _NUMBERS if key in given}
        text = self._text(given[language], "the body's text")
        if "\n" not in text:
            raise self.source.error(
                given[language], "the body's text is one line", "write it as a text of several lines; a file beside "
                "the program is named right here, not by a constant",
            )  # fmt: skip
        if language == "systemverilog":
            self._fence(given[language], text, symbol)
        lut, ff, dsp, bram = (numbers.get(key, 0) for key in AREA)
        reads, writes = self._tokens(given["reads"], "reads"), self._tokens(given["writes"], "writes")
        return Injected(
            name, language, text, symbol, reads, writes, numbers["ii"], numbers["depth"], stalls, lut, ff, dsp, bram
        )  # fmt: skip

    def _number(self, node: ast.expr, key: str) -> int:
        found, least = self.expressions.number(node, key), 0 if key in AREA else 1
        if not least <= found <= _MOST_NUMBER:
            raise self.source.error(node, f"{key} is {found}", limit=f"from {least} to {_MOST_NUMBER}")
        return found

    def _tokens(self, node: ast.expr, side: str) -> tuple[tuple[str, int], ...]:
        if not isinstance(node, ast.Dict) or not node.keys:
            raise self.source.error(node, f"{side} says tokens by stream", f'write {side}={{"a": 16}}')
        found: dict[str, int] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            name = self._text(key, "a stream's name") if key is not None else ""
            if not name or name in found:
                raise self.source.error(node, f"{side} names each stream once")
            found[name] = self.expressions.number(value, f"tokens of {name}")
        return tuple(found.items())

    def _text(self, node: ast.expr, what: str) -> str:
        found = self.expressions.value(node)
        if not isinstance(found, str):
            raise self.source.error(node, f"{what} is a text", "write it in quotes, or name a constant that is one")
        return found

    def _fence(self, node: ast.expr, text: str, symbol: str) -> None:
        """What reaches outside of the simulated hardware is refused before any tool reads it."""
        if found := _CONTROL.search(text):
            raise self.source.error(node, f"the SystemVerilog has the character {found[0]!r}", "leave it out")
        text = _COMMENT.sub(" ", text)
        for found in _OUTSIDE.finditer(text):
            if found["task"] in _HARMLESS or found["directive"] in _DIRECTIVES:
                continue
            raise self.source.error(
                node, f"the SystemVerilog says {found[0].strip()!r}",
                "leave it out: a body has its pins and nothing else",
                "no system tasks but " + ", ".join(f"${one}" for one in sorted(_HARMLESS))
                + "; no strings, DPI, directives or escaped names",
            )  # fmt: skip
        modules = _MODULE.findall(text)
        if symbol not in modules:
            raise self.source.error(
                node, f"the text has no module {symbol}", nearest(symbol, modules, "name the module that is the body")
            )
        if taken := [name for name in modules if _OURS.fullmatch(name)]:
            raise self.source.error(node, f"a module cannot be called {taken[0]}", "give it another name")
