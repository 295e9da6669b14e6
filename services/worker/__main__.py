"""The worker program: `python -m penstock.services.worker` takes steps from the queues of PENSTOCK_QUEUES.

TERM ends it softly: within PENSTOCK_STOP_SECONDS its tools are killed and its steps are back in the queue.
USR1 drains it: its steps come to their end, it takes no others, and then it ends; so does the order of an administrator
that its sign of life fetches. After KILL the leases of its steps run out and other workers take them.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import sys

from celery import signals
from celery.worker import state

from penstock.compiler.collecting import seldom_collected, set_aside
from penstock.compiler.errors import PenstockError
from penstock.services.settings import SettingError, Settings
from penstock.services.steps import registry
from penstock.services.store import StoreError
from penstock.services.worker import shutdown
from penstock.services.worker.app import TASK, make_app
from penstock.services.worker.compatible import check_compatible
from penstock.services.worker.execute import Executor
from penstock.services.worker.logs import configure_logging
from penstock.services.worker.sign_of_life import SignOfLife
from penstock.services.worker.sweep import sweep_work_folders
from penstock.services.worker.witness import notes_of, sweep_notes, tell_of_the_dead

log = logging.getLogger(__name__)
EX_OK = 0


def main() -> int:
    try:
        settings = Settings.from_environment()
        app = make_app(settings)
        settings.require_database_url()
    except SettingError as error:
        print(f"penstock worker: {error}", file=sys.stderr)  # noqa: T201
        return 2
    configure_logging()
    registry.load(settings.step_modules)  # before the pool forks, so that its children start warm
    try:
        check_compatible(settings)  # after what takes seconds to load: the service may be migrating meanwhile
    except (PenstockError, StoreError) as error:
        print(f"penstock worker: {error}", file=sys.stderr)  # noqa: T201
        return 2
    sweep_work_folders(settings)
    sweep_notes(settings)
    executors: dict[int, Executor] = {}

    @app.task(name=TASK)
    def work() -> None:
        executor = executors.get(os.getpid())
        if executor is None:  # the first step of this pool child: connections do not cross a fork
            executor = executors[os.getpid()] = Executor(settings)
        executor.work()

    signals.worker_process_init.connect(lambda **_: tell_of_the_dead(settings), weak=False)
    signals.worker_shutting_down.connect(lambda **_: shutdown.announce(), weak=False)
    signals.setup_logging.connect(lambda **_: None, weak=False)  # ours stays
    log.info("queues %s, %d at once", ", ".join(settings.queues), settings.concurrency)
    worker = app.Worker(
        pool="prefork", concurrency=settings.concurrency, queues=list(settings.queues), loglevel="WARNING",
        hostname=f"penstock-{os.getpid()}@{socket.gethostname()}",
        without_gossip=True, without_mingle=True, without_heartbeat=True, quiet=True,
    )  # fmt: skip

    def drain(*_: object) -> None:
        log.info("drains: no further step is begun")
        shutdown.drain()
        state.should_stop = EX_OK  # what is running comes to its end; nothing is told to stop

    sign = SignOfLife(settings.require_redis_url(), worker.hostname, settings.queues, settings.concurrency, drain)
    signals.worker_ready.connect(lambda **_: sign.start(), weak=False)  # after the pool has forked
    signals.worker_ready.connect(lambda **_: signal.signal(signal.SIGUSR1, drain), weak=False)  # Celery has its own
    set_aside()
    with seldom_collected():
        worker.start()
    sign.stop()
    shutil.rmtree(notes_of(settings, os.getpid()), ignore_errors=True)
    return int(worker.exitcode or 0)


if __name__ == "__main__":
    sys.exit(main())
