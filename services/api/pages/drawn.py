"""Pages that many tabs ask for at once are drawn once: a run's page is the same for all until its next event."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

KEPT, FRESH_SECONDS = 32, 1.0


@dataclass
class _Drawn:
    lock: threading.Lock = field(default_factory=threading.Lock)
    html: str = ""
    until: float = 0.0


class DrawnPages:
    """A few pages for a second each. `key` holds all that a page depends on, but for the time and the workers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pages: OrderedDict[object, _Drawn] = OrderedDict()

    def get(self, key: object, draw: Callable[[], str]) -> str:
        """What was drawn just now, else what `draw` makes; who comes meanwhile waits for it."""
        with self._lock:
            page = self._pages.setdefault(key, _Drawn())
            self._pages.move_to_end(key)
            while len(self._pages) > KEPT:
                self._pages.popitem(last=False)
        with page.lock:
            if time.monotonic() >= page.until:
                page.html = draw()
                page.until = time.monotonic() + FRESH_SECONDS
            return page.html
