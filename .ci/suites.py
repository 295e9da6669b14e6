"""Lint beside the fast tests, then the slow ones under a time of their own.

Lint keeps one processor busy for minutes; a machine with two has the other one for the tests.

A slow machine costs no submission: slow tests that did not run for lack of time are named and counted as skipped, and
are no failure. A slow test that failed runs once more, alone; one that fails then too is a failure, one that passes is
said to have failed beside others. Prints what the suites print, and at the end one line that sums them.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import IO

GRACE = 180  # for tests that cannot be interrupted at once
KILL_AFTER = 60  # a suite that does not end by itself after all that hangs
CLOSING = re.compile(r"^=*\s*(\d+ \w+(?:, \d+ \w+)*) in [\d.]+s")
UNRUN = re.compile(r"^=+ (\d+) tests did not run: no time left =+")


@dataclass
class Suite:
    """What a command said of its tests, and how it ended."""

    counts: dict[str, int] = field(default_factory=dict)
    unrun: int = 0
    code: int = 0

    def show(self, output: IO[str]) -> None:
        """Print it as it comes, and remember what counts."""
        for line in output:
            print(line, end="", flush=True)
            if found := CLOSING.match(line):
                parts = (part.split() for part in found[1].split(", "))
                self.counts = {word: int(number) for number, word in parts}
            elif found := UNRUN.match(line):
                self.unrun = int(found[1])

    def count(self, *words: str) -> int:
        return sum(self.counts.get(word, 0) for word in words)


class Command:
    """A command, shown while it runs, whose end is waited for in a `with`: none of its processes is left behind it."""

    def __init__(self, command: list[str], **environment: str) -> None:
        self.command, self.suite = command, Suite()
        self.process = subprocess.Popen(
            command, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            errors="replace", start_new_session=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.reader = threading.Thread(target=self.suite.show, args=(self.process.stdout,), daemon=True)
        self.reader.start()

    def __enter__(self) -> Command:
        return self

    def wait(self, seconds: float) -> Suite:
        """What it said when it ended; after so many seconds it is killed."""
        try:
            self.suite.code = self.process.wait(max(seconds, 1))
        except subprocess.TimeoutExpired:
            self.suite.code = 1
            print(f"{' '.join(self.command)} is ended: it did not end within {seconds:.0f} s", flush=True)
        return self.suite

    def __exit__(self, *_: object) -> None:
        end(self.process.pid)
        self.process.wait()
        self.reader.join(10)  # what escaped and still holds the pipe is not waited for


def run(command: list[str], seconds: float, **environment: str) -> Suite:
    with Command(command, **environment) as running:
        return running.wait(seconds)


def end(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--began", type=float, default=time.time(), help="when all this began, in seconds since 1970")
    parser.add_argument("--slow", type=float, default=50 * 60, help="seconds for the slow tests")
    parser.add_argument("--whole", type=float, default=85 * 60, help="seconds for everything")
    parser.add_argument("--grace", type=float, default=GRACE, help="seconds for tests that cannot be interrupted")
    asked = parser.parse_args()
    last = asked.began + asked.whole
    with Command(["make", "lint"]) as lint:
        fast = run(["make", "test"], last - time.time())
        suites = [fast, lint.wait(last - time.time())]
    if not any(suite.code for suite in suites):
        until = min(time.time() + asked.slow, last - asked.grace - KILL_AFTER)
        limits = {"PENSTOCK_TESTS_UNTIL": str(until), "PENSTOCK_TESTS_END": str(until + asked.grace)}
        slow = run(["make", "test-slow"], until + asked.grace + KILL_AFTER - time.time(), **limits)
        if slow.code and slow.count("failed") and not slow.count("error", "errors"):
            slow = alone(slow, last)
        suites.append(slow)
    else:
        print("the slow tests did not run: lint or a fast test failed")
    if unrun := sum(suite.unrun for suite in suites):
        print(f"{unrun} slow tests did not run for lack of time; they are named above and show nothing")
    passed, failed, skipped = (
        sum(suite.count(*words) for suite in suites)
        for words in (("passed", "xfailed"), ("failed", "error", "errors"), ("skipped",))
    )
    print(f"{passed} passed, {failed} failed, {skipped} skipped", flush=True)
    return int(any(suite.code for suite in suites))


def alone(slow: Suite, last: float) -> Suite:
    """The slow suite, with what came of its failures when they ran once more without others beside them."""
    print("the slow tests that failed run once more, alone", flush=True)
    again = run(["make", "test-slow-again"], last - time.time())
    if again.count("passed"):
        print(f"{again.count('passed')} slow tests failed beside others, as named above, and passed alone", flush=True)
    counts = {
        **slow.counts,
        "passed": slow.count("passed") + again.count("passed"),
        "failed": slow.count("failed") - again.count("passed"),
    }
    return Suite(counts, slow.unrun, int(again.code != 0 or counts["failed"] > 0))


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that `finally` ends what was started
    sys.exit(main())
