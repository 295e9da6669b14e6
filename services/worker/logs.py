"""Plain log lines on stderr, for whoever starts the process to keep."""

from __future__ import annotations

import logging


def configure_logging() -> None:
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
    for chatty in ("celery.worker.strategy", "celery.app.trace", "alembic", "kombu", "celery.redirected"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
