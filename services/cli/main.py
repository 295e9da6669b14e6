"""The `penstock` command: a table of subcommands whose modules are imported only when they run.

`penstock --help` so needs neither torch nor a database driver, and a part that is not installed is one
line of advice instead of a traceback.
"""

from __future__ import annotations

import contextlib
import difflib
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from penstock.compiler.collecting import seldom_collected
from penstock.compiler.errors import PenstockError
from penstock.services.cli.exit_codes import FAILED, INTERRUPTED, OK, USAGE
from penstock.services.settings import SettingError


@dataclass(frozen=True)
class Command:
    """Where a subcommand lives: a function with typer annotations, named as the command with _ for -."""

    module: str
    summary: str


COMMANDS: dict[str, Command] = {
    "compile": Command("penstock.services.cli.compile", "compile a model to a verified accelerator, here and now"),
    "check": Command("penstock.services.cli.check", "say in seconds whether a model compiles, and why not"),
    "explore": Command("penstock.services.cli.explore", "search for good designs of a model, here and now"),
    "space": Command("penstock.services.cli.space", "what a search may decide of a model, as JSON for programs"),
    "evaluate": Command("penstock.services.cli.space", "what single settings of that space cost"),
    "analyse": Command("penstock.services.cli.analyse", "say what an HLS C++ kernel's cycles are, and what limits it"),
    "report": Command("penstock.services.cli.report", "say what the reports of a tool's folder say, and what is odd"),
    "simulate": Command("penstock.services.cli.networks", "simulate a network of processes from a JSON file"),
    "size-fifos": Command("penstock.services.cli.networks", "the FIFO depths that such a network needs, as pragmas"),
    "import-hls": Command("penstock.services.cli.import_hls", "make such a network of a Vitis HLS solution"),
    "mesh": Command("penstock.services.cli.mesh", "plan a Triton kernel onto an array of cores, and simulate it"),
    "array": Command("penstock.services.cli.array", "an array of cores as hardware, and programs for it"),
    "up": Command("penstock.services.cli.up", "start the whole service on this machine"),
    "submit": Command("penstock.services.cli.runs", "hand a model to the service; prints the run"),
    "watch": Command("penstock.services.cli.runs", "follow a run until it ends"),
    "runs": Command("penstock.services.cli.runs", "list runs, the newest first"),
    "fetch": Command("penstock.services.cli.runs", "download what a run made"),
    "limits": Command("penstock.services.cli.runs", "hold the design that a run chose against limits"),
    "cancel": Command("penstock.services.cli.runs", "stop a run"),
    "pause": Command("penstock.services.cli.searches", "start no further trial of a run"),
    "resume": Command("penstock.services.cli.searches", "let a paused run go on"),
    "extend": Command("penstock.services.cli.searches", "add trials to a run, also after its end"),
    "replay": Command("penstock.services.cli.searches", "evaluate a trial again and compare"),
    "pin": Command("penstock.services.cli.keeping", "keep a run: it is neither deleted nor collected"),
    "unpin": Command("penstock.services.cli.keeping", "keep a run no longer"),
    "delete": Command("penstock.services.cli.keeping", "delete runs and models"),
    "gc": Command("penstock.services.cli.keeping", "remove old runs and files that nobody needs"),
    "workers": Command("penstock.services.cli.workers", "list workers, and have some end their work"),
    "webhook": Command("penstock.services.cli.webhook", "have others told of the ends of runs"),
    "login": Command("penstock.services.cli.token", "print a link that signs a browser in, once"),
    "token": Command("penstock.services.cli.token", "make, list, revoke and rotate tokens of a service"),
    "backup": Command("penstock.services.cli.backup", "write a backup of a service while it works"),
    "restore": Command("penstock.services.cli.backup", "make a service of a backup"),
    "bench": Command("penstock.services.cli.bench", "run a benchmark and print its figures"),
    "doctor": Command("penstock.services.cli.doctor", "check what this machine has and lacks"),
    "demo": Command("penstock.services.cli.demo", "take an example from PyTorch to a package, on a private service"),
}  # fmt: skip

# Which extra brings a missing package; the first that matches.
EXTRAS = {
    "compiler": ("torch", "torch_mlir", "xdsl", "numpy", "networkx", "optuna"),
    "api": ("fastapi", "uvicorn", "sqlalchemy", "alembic", "psycopg", "celery", "redis", "jinja2"),
    "examples": ("sklearn",),
}


def app() -> None:
    """The entry point: every error is one line on stderr and a documented exit code."""
    try:
        code = run(sys.argv[1:])
        print(end="", flush=True)  # which a standard output that is closed ignores
    except BrokenPipeError:
        code = _unread()
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command line and say how it ended. PENSTOCK_DEBUG=1 shows the traceback of any error."""
    first = arguments[0] if arguments else "--help"
    if first in ("--help", "-h", "help"):
        print(help_text())
        return OK if arguments else USAGE
    if first in ("--version", "-V"):
        print(f"penstock {_own_version()}")
        return OK
    if first.startswith("-"):
        return _say(f"no such option {first} before the command; see penstock --help", USAGE)
    if first not in COMMANDS:
        near = difflib.get_close_matches(first, COMMANDS, 1)
        advice = f"did you mean {near[0]}?" if near else "see penstock --help"
        return _say(f"no such command {first!r}; {advice}", USAGE)
    return _guarded(first, arguments[1:])


def help_text() -> str:
    rows = "\n".join(f"  {name:<12}{command.summary}" for name, command in COMMANDS.items())
    return (
        "Usage: penstock COMMAND [OPTIONS]\n\n"
        "Takes a model written in PyTorch to a streaming accelerator on an FPGA.\n\n"
        f"Commands:\n{rows}\n\n"
        "penstock COMMAND --help explains a command. Exit codes: 0 ok, 1 failed, 2 usage,\n"
        "3 constraints unmet, 4 cancelled, 5 timeout, 6 service error, 130 interrupted."
    )


def _guarded(name: str, arguments: list[str]) -> int:
    try:
        with seldom_collected():
            return _execute(name, arguments)
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except BrokenPipeError:
        return _unread()
    except ModuleNotFoundError as error:
        return _report(error, _missing_part(error), FAILED)
    except SettingError as error:
        return _say(str(error), USAGE)
    except Exception as error:  # noqa: BLE001 - the last resort: people get a line, debuggers the rest
        return _report(error, _one_line(error), getattr(error, "exit_code", FAILED))


def _unread() -> int:
    """The reader (`| head`) has what it wanted; keep the interpreter from complaining at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OK


def _execute(name: str, arguments: list[str]) -> int:
    # before numpy is imported: a search solves systems so small that threads cost several times what they bring
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    function: Callable[..., Any] = getattr(import_module(COMMANDS[name].module), name.replace("-", "_"))
    import typer

    single = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    single.command(name)(function)
    try:
        result = single(arguments, prog_name=f"penstock {name}", standalone_mode=False)
    except typer.Exit as stop:
        return stop.exit_code
    except typer.Abort:
        return _say("interrupted", INTERRUPTED)
    except Exception as error:
        # Typer's usage errors have no public class of their own; this method is what they share.
        explain = getattr(error, "format_message", None)
        if explain is None:
            raise
        text = " ".join(str(explain()).split()).rstrip(".")
        return _say(f"{text}; see penstock {name} --help", USAGE)
    if result == INTERRUPTED:  # how typer answers a KeyboardInterrupt
        return _say("interrupted", INTERRUPTED)
    return result if isinstance(result, int) else OK


def _one_line(error: Exception) -> str:
    if isinstance(error, PenstockError):
        return error.one_line()
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        less = "close other programs, or let layers share one accelerator (MODEL#blocks), which holds one of them"
        return f"this machine's memory is not enough{f': {text}' if text else ''} - {less}"
    if type(error).__module__.startswith(("penstock.services.", "penstock.db.", "penstock.web.")):
        return text
    return f"internal error: {type(error).__name__}: {text} - set PENSTOCK_DEBUG=1 to see where"


def _missing_part(error: ModuleNotFoundError) -> str:
    missing = (error.name or "").split(".")[0]
    extra = next((name for name, packages in EXTRAS.items() if missing in packages), None)
    if extra is None:
        return f"the Python module {error.name} is missing - install penstock again"
    return f"this command needs {missing}, which is not installed - pip install 'penstock[{extra}]'"


def _own_version() -> str:
    try:
        return version("penstock")
    except PackageNotFoundError:
        return "(not installed)"


def _report(error: Exception, line: str, code: Any) -> int:
    if os.environ.get("PENSTOCK_DEBUG"):
        traceback.print_exception(error)
    if isinstance(error, PenstockError) and error.excerpt:
        with contextlib.suppress(OSError):
            print(error.excerpt, file=sys.stderr)
    return _say(line, code if isinstance(code, int) else FAILED)


def _say(line: str, code: int) -> int:
    with contextlib.suppress(OSError):
        print(f"penstock: {line}", file=sys.stderr)
    return code


if __name__ == "__main__":
    app()
