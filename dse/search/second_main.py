"""The second process of a search (`second.py`): it does what it was asked for last, and goes on with what that left.

    python -P -m penstock.dse.search.second_main CONNECTION PARENT

The connection is a file descriptor. It ends when the other end of it is closed, and with its parent.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from collections import deque
from multiprocessing.connection import Connection

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> int:
    descriptor, parent = (int(text) for text in arguments)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is for the search, which ends this one
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        return 0
    with Connection(descriptor) as connection, contextlib.suppress(EOFError, OSError):
        _serve(connection)
    return 0


def _serve(connection: Connection) -> None:
    from penstock.compiler.collecting import seldom_collected
    from penstock.dse.evaluation.evaluate import Evaluator
    from penstock.dse.search.second import AnswerTo, AskedAbout, AskedNext, AskedToCall, ForetoldOf, packed, unpacked
    from penstock.dse.search.worth import foretell

    connection.send_bytes(packed(None))  # its modules are there
    evaluator: Evaluator | None = None
    left: list[tuple[AskedNext | AskedToCall, deque[int]]] = []  # what is done first is the last
    with seldom_collected():
        while True:
            while evaluator is None or not left or connection.poll():
                asked: AskedAbout | AskedNext | AskedToCall = unpacked(connection.recv_bytes())
                if isinstance(asked, AskedAbout):
                    evaluator, left = asked.evaluator(), []
                    continue
                before = left if isinstance(asked, AskedToCall) and asked.first else []
                places = len(asked.changes if isinstance(asked, AskedNext) else asked.calls)
                left = [*before, (asked, deque(range(places)))] if places else before
            now, places_left = left[-1]
            place = places_left.popleft()
            if not places_left:
                left.pop()
            if isinstance(now, AskedNext):
                number, changed = now.changes[place]
                said = foretell(evaluator, {**now.base, **changed}, now.below, in_full=True)
                connection.send_bytes(packed(ForetoldOf(now.number, number, said)))
            else:
                call, arguments = now.calls[place]
                connection.send_bytes(packed(AnswerTo(call, now.function(evaluator, *arguments))))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
