"""The dispatcher program: `python -m penstock.services.worker.dispatcher` wakes workers and reaps lost leases.

Any number may run at once. It needs no state of its own and outlives outages of Postgres and Redis, trying
again at growing, bounded intervals.
"""

from __future__ import annotations

import logging
import random
import signal
import sys
import threading
import time
from types import FrameType

import psycopg

from penstock.compiler.errors import PenstockError
from penstock.db import Database
from penstock.db.database import is_transient
from penstock.db.repositories.queues import CHANNEL
from penstock.services.settings import SettingError, Settings
from penstock.services.webhooks.sending import WebhookSender
from penstock.services.worker.compatible import SchemaWatch, check_compatible
from penstock.services.worker.health import DISPATCHER
from penstock.services.worker.logs import configure_logging
from penstock.services.worker.publish import BROKER_ERRORS, Publisher
from penstock.services.worker.reaper import reap_expired
from penstock.services.worker.steady import SteadyClock
from penstock.services.worker.sweep import sweep_everything

log = logging.getLogger(__name__)

CLOCK_FILE = "clock.json"
"""In the data folder: what dispatchers saw of the machine's clock."""
_LONGEST_PAUSE = 5.0
_SWEEP_SECONDS, _FIRST_SWEEP_SECONDS = 600.0, 15.0
_LOOK_SECONDS = 0.5
_LEAST_PAUSE = 0.02
"""Between two looks: many steps that are queued one after the other wake the workers once."""


class Dispatcher:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._database = Database(settings.require_database_url(), application=DISPATCHER, pool_size=2)
        self._publisher = Publisher(self._database, settings)
        self._schema = SchemaWatch(self._database)
        self._listener: psycopg.Connection | None = None
        self._reap_at = 0.0
        self._clock = SteadyClock(kept=settings.home / CLOCK_FILE)
        self._sweep_at = time.monotonic() + max(_FIRST_SWEEP_SECONDS, _SWEEP_SECONDS - self._clock.unseen())
        self._webhooks = WebhookSender(settings)
        self.stopping = threading.Event()

    def run(self) -> None:
        """Until it is told to stop, or the service is brought up to a version that this one does not know."""
        self._webhooks.start()
        try:
            self._go_on()
        finally:
            self._webhooks.stop()
            self._close_listener()
            self._publisher.reset()
            self._database.close()

    def _go_on(self) -> None:
        pause = 0.1
        while not self.stopping.is_set():
            try:
                self._turn()
                self._wait_for_work()
                pause = 0.1
            except BROKER_ERRORS as error:
                pause = self._recover("the broker", error, pause)
            except Exception as error:
                if not is_transient(error) and not isinstance(error, psycopg.OperationalError):
                    raise
                pause = self._recover("the database", error, pause)

    def _turn(self) -> None:
        self._schema.check(patience=0.0)  # outages are dealt with by who called
        now = time.monotonic()
        if now >= self._reap_at:
            self._reap_at = now + self._settings.reaper_seconds * random.uniform(0.8, 1.2)
            reap_expired(self._database, self._settings)
        if now >= self._sweep_at:
            self._sweep_at = now + _SWEEP_SECONDS
            sweep_everything(self._settings, self._database, steady_seconds=self._clock.seconds())
        self._publisher.wake()

    def _wait_for_work(self) -> None:
        """Until a transaction queues steps, or a short while: what becomes due later sends no notice."""
        if self._listener is None:
            url = self._database.url.replace("postgresql+psycopg://", "postgresql://", 1)
            self._listener = psycopg.connect(url, autocommit=True, connect_timeout=5)
            self._listener.execute(f"LISTEN {CHANNEL}".encode())
            return  # what was written before LISTEN is looked at first
        self.stopping.wait(_LEAST_PAUSE)
        for _ in self._listener.notifies(timeout=_LOOK_SECONDS, stop_after=1):
            pass

    def _recover(self, what: str, error: BaseException, pause: float) -> float:
        log.warning("%s cannot be reached, next try in %.1f s: %s", what, pause, str(error).splitlines()[0])
        self._publisher.reset()
        self._close_listener()
        self.stopping.wait(pause)
        return min(pause * 2, _LONGEST_PAUSE)

    def _close_listener(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()


def main() -> int:
    configure_logging()
    try:
        settings = Settings.from_environment()
        dispatcher = Dispatcher(settings)
        check_compatible(settings)
    except (SettingError, PenstockError) as error:
        log.error("%s", error)
        return 2

    def stop(number: int, frame: FrameType | None) -> None:
        dispatcher.stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    try:
        dispatcher.run()
    except PenstockError as error:
        log.error("nothing is dispatched any more: %s", error)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
