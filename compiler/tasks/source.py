"""The text of a task program: parsed by Python's own parser, never executed; errors point at the place in it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from penstock.compiler.errors import PenstockError

CODE = "bad-task-program"
MOST_BYTES = 1 << 18
_DEEPEST = 128
MOST_NODES = 40_000
MODULE = "penstock.tasks"


class TaskError(PenstockError):
    """What is wrong with a task program, at a place of its text."""


@dataclass(frozen=True)
class ProgramText:
    """A file's name, as errors say it, and what is in it."""

    name: str
    text: str

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def parse(self) -> ast.Module:
        if len(self.text.encode()) > MOST_BYTES:
            raise PenstockError(
                code=CODE, what="the program is too long", where=self.name, limit=f"at most {MOST_BYTES} bytes",
                hint="keep tables out of it, and let loops and grids repeat",
            )  # fmt: skip
        try:
            tree = ast.parse(self.text)
        except SyntaxError as error:
            raise self._at(error.lineno or 1, error.offset or 1, f"this is not Python: {error.msg}", "", "") from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise PenstockError(
                code=CODE, what=f"this cannot be read as Python: {error}", where=self.name,
                hint="nest less deeply, and leave out null bytes",
            ) from None  # fmt: skip
        self._check_depth(tree)
        if sum(1 for _ in ast.walk(tree)) > MOST_NODES:
            raise PenstockError(
                code=CODE, what="the program is too long", where=self.name, limit=f"at most {MOST_NODES} words",
                hint="let loops and grids repeat",
            )  # fmt: skip
        return tree

    def _check_depth(self, tree: ast.AST) -> None:
        """Whoever walks the tree goes down once a level."""
        left: list[tuple[ast.AST, ast.AST, int]] = [(tree, tree, 0)]
        while left:
            node, placed, depth = left.pop()
            placed = node if hasattr(node, "lineno") else placed
            if depth > _DEEPEST:
                raise self.error(
                    placed, "expressions or conditions are nested too deeply",
                    "give parts of them names, add lists up with sum(), or loop", f"at most {_DEEPEST} levels",
                )  # fmt: skip
            left += [(one, placed, depth + 1) for one in ast.iter_child_nodes(node)]

    def error(self, node: ast.AST, what: str, hint: str = "", limit: str = "") -> TaskError:
        """The error at a place of the tree."""
        return self._at(getattr(node, "lineno", 1), getattr(node, "col_offset", 0) + 1, what, limit, hint)

    def line_of(self, node: ast.AST) -> str:
        return f"{self.name}:{getattr(node, 'lineno', 1)}"

    def _at(self, line: int, column: int, what: str, limit: str, hint: str) -> TaskError:
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        said = TaskError(
            code=CODE, what=what, where=f"{self.name}:{line}:{column}",
            limit=limit or f"the line is `{text.strip()[:160]}`", hint=hint,
        )  # fmt: skip
        number = f"{line} | "
        said.excerpt = f"{number}{text}\n{' ' * (len(number) + column - 1)}^"
        return said


def is_task_source(text: str) -> bool:
    """Whether a Python file says that it is a task program: it imports the language."""
    return any(isinstance(node, ast.ImportFrom) and node.module == MODULE for node in _statements(text, MODULE))


def kernels_in(text: str) -> list[str]:
    """The Triton kernels of a Python file."""
    return [node.name for node in _statements(text, "triton") if isinstance(node, ast.FunctionDef) and is_jit(node)]


def is_jit(node: ast.FunctionDef) -> bool:
    return any(
        dotted(one.func if isinstance(one, ast.Call) else one) in ("triton.jit", "jit") for one in node.decorator_list
    )


def dotted(node: ast.expr | None) -> str:
    """`a.b.c` as it is written; nothing of any other expression."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _statements(text: str, word: str) -> list[ast.stmt]:
    """What a file has at its top level; nothing of what is no Python, or lacks the word."""
    if word not in text or len(text) > MOST_BYTES:
        return []
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
