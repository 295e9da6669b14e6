"""Torch, and libraries on top of it, warn and log about their own internals; what matters arrives as an exception."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Generator


@contextlib.contextmanager
def quiet_torch() -> Generator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.redirect_stderr(io.StringIO()):
                yield
    finally:
        logging.disable(before)
