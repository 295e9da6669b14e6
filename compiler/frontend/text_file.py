"""A file of MLIR from an author who is not trusted: read and parsed, or refused in one line that says where."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from penstock.compiler.errors import PenstockError
from penstock.compiler.reference import check_file

MOST_BYTES = 64 << 20
_STRINGS = re.compile(r'//[^\n]*|"[^"\\\n\v\f]*(?:\\(?:["nt\\]|[0-9A-Fa-f]{2})[^"\\\n\v\f]*)*"|"')
"""Comments, strings, and a quotation mark at which neither of both is whole."""


@dataclass(frozen=True)
class TextFile:
    """What a file says, and how it is refused: the code, what such a file may hold, and what to do."""

    path: str
    text: str
    code: str
    limit: str
    hint: str

    @staticmethod
    def read(path: Path, code: str, limit: str, hint: str) -> TextFile:
        where = str(path)
        check_file(path)
        empty = TextFile(where, "", code, limit, hint)
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise empty.refused(f"the file has {size} bytes", code="model-file", limit=f"at most {MOST_BYTES}")
        try:
            text = path.read_bytes().decode()
        except UnicodeDecodeError as error:
            raise empty.refused(f"the file is not text (byte {error.start})", code="model-file") from error
        return TextFile(where, text, code, limit, hint)

    def parse(self, context: Context) -> ModuleOp:
        """The module, verified."""
        # xDSL's lexer takes a time exponential in the length of a string that nothing ends
        for found in _STRINGS.finditer(self.text):
            if found.group() == '"':
                raise self.refused("cannot be read: nothing ends the string", found.start())
        try:
            module = Parser(context, self.text).parse_module()
            module.verify()
        except ParseError as error:
            what = str(error).strip().splitlines()[-1].strip()
            raise self.refused(f"cannot be read: {what}", error.span.start) from error
        except VerifyException as error:
            what = " ".join(str(error).split())[-300:]
            raise self.refused(f"an operation is not valid: {what}") from error
        except RecursionError as error:
            raise self.refused("it is nested too deeply") from error
        except Exception as error:
            # a parser that stumbles over hostile text has met bad input, whatever it raises
            what = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            raise self.refused(f"cannot be read: {what}") from error
        return module

    def refused(
        self, what: str, at: int | None = None, *, code: str | None = None, limit: str | None = None,
        hint: str | None = None,
    ) -> PenstockError:  # fmt: skip
        where = self.path
        if at is not None:
            line = self.text.count("\n", 0, at) + 1
            where += f":{line}:{at - self.text.rfind(chr(10), 0, at)}"
        return PenstockError(
            code=code or self.code, what=what, where=where, limit=self.limit if limit is None else limit,
            hint=self.hint if hint is None else hint,
        )  # fmt: skip
