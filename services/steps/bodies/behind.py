"""Commands of steps behind the fence: how they are called, what they say where they refuse, and which limit ended one.

What comes back is data that foreign code may have written: whoever asked looks at it.
"""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from penstock import IMPORT_ROOT
from penstock.compiler.errors import PenstockError
from penstock.profiling.tool_runner import Cancellable, ToolCommand, ToolOutcome, ToolResult, clean_environment
from penstock.services.settings import Settings
from penstock.services.steps.context import StepContext
from penstock.services.steps.fence.launch import NO_FENCE
from penstock.services.steps.fence.plan import COMPILER, GB, MODEL, OUT, FenceLimits, fenced
from penstock.services.steps.fence.probe import fence_advice

ERROR = "error.json"
_MOST_ERROR_BYTES = 1 << 16
_MOST_OTHERS, _LONGEST_OTHER = 50, 1000
_MOST_LOG_BYTES = 32 << 20
_CODE = re.compile(r"[a-z][a-z0-9-]{0,60}")
_STAGE = re.compile(r"^importing: ([A-Za-z ]{1,60}); smaller: (.{1,200})$", re.MULTILINE)
"""What the front end says as it goes. Foreign code may say it too, and misleads nobody but its own author."""


@dataclass(frozen=True)
class Behind:
    """A call of Python: its arguments, to which the folder for `outputs` is added, and the folder that it reads."""

    name: str
    arguments: Sequence[str]
    outputs: Sequence[str]
    folder: Path | None
    subject: str
    """What it does, in words."""
    limits: FenceLimits
    parts: Sequence[str] = (COMPILER,)
    compiler: str = ""

    def run(self, context: StepContext, watch: Callable[[Cancellable], None] | None = None) -> Path:
        """The folder with what it gave out; or its refusal, or the limit that it met."""
        out = context.folder / f"{self.name}-out"
        out.mkdir()
        result = context.tools.run(self._command(context, out), watch)
        off = context.settings.fence == "off"
        refusal = _refusal(out, f"{self.folder}/" if off else MODEL + "/")
        if result.outcome is ToolOutcome.EXIT and refusal is not None:
            raise refusal
        if not result.ok:
            raise self._failure(result)
        (out / ERROR).unlink(missing_ok=True)  # a success has none, unless foreign code wrote it
        return out

    def _command(self, context: StepContext, out: Path) -> ToolCommand:
        """Without a fence only where whoever runs the service said so."""
        if context.settings.fence == "off":
            argv = (sys.executable, *self.arguments, str(out))
        else:
            stage = context.folder / f"{self.name}-fence"
            stage.mkdir()
            argv = fenced(
                (*self.arguments, OUT), stage=stage, out=out, outputs=(ERROR, *self.outputs), model=self.folder,
                hidden=(context.settings.home,), limits=self.limits, parts=self.parts, compiler=self.compiler,
            )  # fmt: skip
        return ToolCommand(
            argv=argv, folder=context.folder, logs=logs_of(context, self.name),
            env=clean_environment(PYTHONPATH=str(IMPORT_ROOT), HOME=str(context.folder), PYTHONHASHSEED="0"),
            timeout=self.limits.seconds, tree_memory_limit=self.limits.memory_bytes,
            tree_cpu_limit=self.limits.cpu_seconds, log_limit=_MOST_LOG_BYTES, plain_text=True,
        )  # fmt: skip

    def _failure(self, result: ToolResult) -> PenstockError:
        """The end of one that said nothing, as the limit that it met."""
        if result.exit_code == NO_FENCE:
            return _no_fence(self.subject, result.tail.strip()[-500:])
        stage, smaller = (_STAGE.findall(result.tail) or [("", "make the model smaller")])[-1]
        computed = result.exit_code == 128 + signal.SIGXCPU  # which nothing but the limit of its own sends it
        ended = f"computed too long and was stopped after {result.seconds:.1f} s" if computed else result.describe()
        what = f"{self.subject} {ended}" + (f", at the stage '{stage}'" if stage else "")
        if computed or result.outcome is ToolOutcome.TIMEOUT:
            return PenstockError(
                code="import-time", what=what,
                limit=f"it may compute for {self.limits.cpu_seconds} s, and take {self.limits.seconds:.0f} s beside "
                "what it waits for a processor",
                hint=f"{smaller}; or have the administrator raise PENSTOCK_IMPORT_SECONDS",
            )  # fmt: skip
        if result.outcome is ToolOutcome.OUT_OF_MEMORY or result.exit_code == 128 + signal.SIGKILL:
            return PenstockError(
                code="import-memory", what=what, limit=f"it may hold {self.limits.memory_bytes / GB:g} GB",
                hint=f"{smaller}; or have the administrator raise PENSTOCK_IMPORT_MEMORY_GB",
            )  # fmt: skip
        return result.error(self.subject, "try it with the command line to see more")


class SeveralMistakes(PenstockError):
    """What a check found that looked on after the first mistake: the others are recorded with it."""

    def __init__(self, others: Sequence[str], **fields: str) -> None:
        super().__init__(**fields)
        self.lines = tuple(others)

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "others": list(self.lines)}


def logs_of(context: StepContext, name: str) -> Path:
    """Where a command's output goes while it runs."""
    return context.folder / f"logs-{name}"


def limits_of(settings: Settings, times: int = 1) -> FenceLimits:
    """What one import may use up; `times` as long."""
    memory = int(settings.import_memory_gb * GB)
    return FenceLimits(
        cpu_seconds=times * settings.import_seconds, memory_bytes=memory, out_bytes=memory // 2, tmp_bytes=memory // 8
    )


def _refusal(out: Path, source: str) -> PenstockError | None:
    """What the front end says of the model, with our own paths taken out. Foreign code may have written it."""
    path = out / ERROR
    if not path.is_file() or path.stat().st_size > _MOST_ERROR_BYTES:
        return None
    try:
        said: Any = json.loads(path.read_text())
    except (ValueError, RecursionError):
        return None
    fields = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    code = fields.get("code")
    known = {name: _readable(fields.get(name, ""), source) for name in ("what", "where", "limit", "hint")}
    known["code"] = code if isinstance(code, str) and _CODE.fullmatch(code) else "import-failed"
    others = fields.get("others")
    if isinstance(others, list) and others:
        lines = [_readable(one, source)[:_LONGEST_OTHER] for one in cast("list[object]", others)[:_MOST_OTHERS]]
        return SeveralMistakes(lines, **known)
    return PenstockError(**known)


def _readable(value: object, source: str) -> str:
    """A text for people: no control characters, and no longer than anybody reads."""
    text = str(value)[:4000].replace(source, "")
    return "".join(letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _no_fence(subject: str, problem: str) -> PenstockError:
    return PenstockError(
        code="no-fence", what=f"this machine cannot fence in {subject}, so nothing is done",
        limit=problem, hint=fence_advice(),
    )  # fmt: skip
