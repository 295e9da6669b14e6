"""The API's log: one JSON object a line on stderr, tracebacks as text and without the values of variables."""

from __future__ import annotations

import sys
from typing import TextIO

import structlog


def get_logger(stream: TextIO | None = None) -> structlog.typing.FilteringBoundLogger:
    """A logger of its own, so that importing the application changes nobody else's logging."""
    return structlog.wrap_logger(
        structlog.PrintLogger(stream or sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(20),
    )
