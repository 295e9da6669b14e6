"""What a pass on linalg is. Several share one working copy: cloned before the first, verified after the last."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.utils.exceptions import VerifyException

from penstock.compiler.errors import PenstockError
from penstock.compiler.program import Program
from penstock.compiler.transforms.editor import Editor
from penstock.compiler.transforms.passes import Level, Pass


@dataclass(frozen=True)
class Rewrite(Pass, ABC):
    """A pass on a program at the linalg level that changes the copy in an editor. Alone, it is its own pipeline."""

    takes: ClassVar[Level] = "linalg"

    @abstractmethod
    def rewrite(self, editor: Editor) -> None: ...

    def run(self, program: Program) -> Program:
        """The changed program, verified; the one given stays as it was."""
        return run_rewrites([self], program)


def run_rewrites(passes: Sequence[Rewrite], program: Program) -> Program:
    """The program after all passes, as if each had been applied alone."""
    editor = Editor(program)
    for step in passes:
        step.rewrite(editor)
        editor.remove_dead()
    try:
        return editor.finish()
    except VerifyException as error:
        raise PenstockError(
            code="invalid-ir", what=f"{_culprit(passes, program)} left invalid IR: {error}", where=program.name
        ) from error


def _culprit(passes: Sequence[Rewrite], program: Program) -> str:
    """The first pass whose result does not verify: only now is it worth verifying after each."""
    editor = Editor(program)
    for step in passes:
        step.rewrite(editor)
        try:
            editor.finish()
        except VerifyException:
            return type(step).__name__
    return "a pass"
