"""A second process that looks at settings while the search looks at others: for machines with two processors.

What a setting comes to follows from the setting alone, so it does not matter who looks at it. The search says what it
will look at soon and goes on with its own; it takes what is answered by the time that it gets there. It waits for long
simulations alone, no longer than to make one takes. So a second process that is late, killed or not there costs no
result, and changes none. It ends with the search's process, however that ends: when their connection does, and at once
where the kernel can do that.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, Pipe
from typing import Any, ClassVar

from penstock.compiler.frontend.context import make_context
from penstock.compiler.program import Program, Signature, read_graph_text
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.space.tiling import Params, Value
from penstock.dse.support.processors import processors

Rank = tuple[float, ...]
_MODULE = "penstock.dse.search.second_main"
_GONE = (OSError, EOFError, pickle.UnpicklingError, zlib.error, AttributeError, ImportError)
"""How a connection answers whose other end has died, perhaps in the middle of an answer, or is of another release."""


@dataclass(frozen=True)
class Foretold:
    """How good a setting may be by its first design, how good it is at best, and how good it is.

    None where that is not known; all of them, where it cannot be laid out. What is timed comes as a whole.
    """

    by_first: Rank | None
    at_best: Rank | None
    timed: Rank | None
    found: Evaluation | None = None


@dataclass(frozen=True)
class AskedAbout:
    """All that an evaluator follows from. A model's weights are no part of it."""

    name: str
    graph: str
    arguments: Mapping[str, Any]

    def evaluator(self) -> Evaluator:
        program = Program(self.name, read_graph_text(self.graph, make_context()), {}, Signature((), ()))
        return Evaluator(program, **self.arguments)


@dataclass(frozen=True)
class AskedNext:
    """Settings to look at in this order, each as what it changes in `base`. A later batch takes an earlier's place."""

    number: int
    base: Params
    changes: tuple[tuple[int, Mapping[str, Value]], ...]
    below: Rank


@dataclass(frozen=True)
class ForetoldOf:
    """`batch` is the latest that was read."""

    batch: int
    setting: int
    said: Foretold


@dataclass(frozen=True)
class AskedToCall:
    """Call a module's function with the evaluator and each of these, instead of what was asked before, or `first`, and
    then go on with that. None is a rest."""

    function: Callable[..., object]
    calls: tuple[tuple[int, tuple[Any, ...]], ...]
    first: bool = False


@dataclass(frozen=True)
class AnswerTo:
    call: int
    value: object


class SecondProcess:
    """Its side of the search. All methods are for one thread."""

    ENOUGH: ClassVar[int] = 8
    """Settings that are to be looked at, so that it does not run out of them before it is asked again."""
    _UNREAD = 2
    """Batches that may lie in the connection: what is more than it holds would have to wait."""

    def __init__(self, process: subprocess.Popen[bytes], connection: Connection) -> None:
        self._process, self._connection = process, connection
        self._alive, self._ready = True, False
        self._evaluator: Evaluator | None = None
        self._job: AskedAbout | None = None
        self._jobs = self._sent = self._read = 0
        self._asked: list[tuple[int, Hashable]] = []
        self._said: dict[tuple[int, Hashable], Foretold] = {}
        self._calls = 0
        self._answers: dict[int, object] = {}

    @staticmethod
    def start() -> SecondProcess | None:
        """None where there is one processor, or no process can be started. It is some time until it has its modules."""
        if processors() < 2:
            return None
        ours, its = Pipe()
        with its:
            command = [sys.executable, "-P", "-m", _MODULE, str(its.fileno()), str(os.getpid())]
            errors = None if os.environ.get("PENSTOCK_DEBUG") else subprocess.DEVNULL
            try:
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
                    pass_fds=(its.fileno(),),
                )  # fmt: skip
            except OSError:
                ours.close()
                return None
        return SecondProcess(process, ours)

    def end(self) -> None:
        """Nothing is left of it; what it said is kept."""
        self._alive = False
        self._connection.close()
        self._process.kill()
        self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    def work_for(self, evaluator: Evaluator) -> None:
        """What it is asked from now on is about this evaluator's settings."""
        if evaluator is self._evaluator:
            return
        self._evaluator = evaluator
        names = ("platform", "clock_mhz", "quantize", "options", "goal")
        arguments = {name: getattr(evaluator, name) for name in names}
        self._job = AskedAbout(evaluator.program.name, evaluator.program.graph_text(), arguments)
        self._jobs += 1
        self._said.clear()

    @property
    def takes_more(self) -> bool:
        """It is at work, and has read what it was asked."""
        return self._at_work() and self._sent - self._read < self._UNREAD

    def look_at(self, settings: Sequence[tuple[Hashable, Params]], base: Params, below: Rank) -> None:
        """Look at these next instead of those before. Those that are better than `below` are looked at closely."""
        changes: list[tuple[int, Mapping[str, Value]]] = []
        for key, params in settings:
            if base.keys() - params.keys():
                continue  # changes can add to a setting, and take nothing from it
            changes.append((len(self._asked), {name: v for name, v in params.items() if base.get(name) != v}))
            self._asked.append((self._jobs, key))
        if changes:
            self._sent += 1
            self._send(AskedNext(self._sent, dict(base), tuple(changes), below))

    def said(self, key: Hashable) -> Foretold | None:
        """What it has said of a setting by now."""
        self._receive()
        return self._said.get((self._jobs, key))

    def call(self, function: Callable[..., object], calls: Sequence[tuple[Any, ...]], *, first: bool = False) -> range:
        """Work these out, in this order, with the evaluator before each. Numbers to ask for the answers by.

        With `first`, what it was asked before comes after them. There are none where it is not at work yet, or no more.
        """
        if not self._at_work():
            return range(0)
        numbers = range(self._calls, self._calls + len(calls))
        self._calls += len(calls)
        self._send(AskedToCall(function, tuple(zip(numbers, calls, strict=True)), first))
        return numbers

    def answer(self, number: int) -> object:
        """None where there is none by now."""
        self._receive()
        return self._answers.get(number)

    def awaited(self, number: int, seconds: float) -> object:
        """None where there is none so many seconds later either: for what takes longer anew than to wait for."""
        until = time.monotonic() + seconds
        while (found := self.answer(number)) is None and self._alive and (left := until - time.monotonic()) > 0:
            self._connection.poll(left)
        return found

    def rest(self) -> None:
        """What it was to look at is not wanted any more."""
        if self._at_work():
            self._send(AskedToCall(_nothing, ()))

    def _at_work(self) -> bool:
        self._receive()
        if self._alive and self._ready and self._job is not None:
            self._send(self._job)
            self._job = None
        return self._alive and self._ready

    def _send(self, what: AskedAbout | AskedNext | AskedToCall) -> None:
        try:
            self._connection.send_bytes(packed(what))
        except _GONE:
            self._alive = False

    def _receive(self) -> None:
        try:
            while self._alive and self._connection.poll():
                answer: ForetoldOf | AnswerTo | None = unpacked(self._connection.recv_bytes())
                if answer is None:
                    self._ready = True
                    continue
                if isinstance(answer, AnswerTo):
                    self._answers[answer.call] = answer.value
                    continue
                self._read = max(self._read, answer.batch)
                self._said[self._asked[answer.setting]] = answer.said
        except _GONE:
            self._alive = False


def packed(what: object) -> bytes:
    """Small enough for a connection to hold a few: whoever sends more than that has to wait for the other end."""
    return zlib.compress(pickle.dumps(what), 1)


def unpacked(text: bytes) -> Any:
    return pickle.loads(zlib.decompress(text))


def _nothing() -> None:
    """What is called of it when it rests."""


@contextmanager
def second_process(wanted: bool) -> Generator[SecondProcess | None]:
    """One that ends with this, where it is wanted and there is a processor for it."""
    second = SecondProcess.start() if wanted else None
    try:
        yield second
    finally:
        if second is not None:
            second.end()
