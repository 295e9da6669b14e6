"""The checks of health of docker-compose.yml: a dispatcher that hangs, or is gone, is told from one that works."""

from __future__ import annotations

import signal
import sys

import pytest

from penstock.services.worker import health
from tests.fixtures.service import Service
from tests.fixtures.waiting import wait_until


def test_a_dispatcher_is_healthy_while_it_looks_for_work(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in service.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "argv", ["health"])
    assert health.main() == 0, "of a worker: database and broker answer"
    monkeypatch.setattr(sys, "argv", ["health", "dispatcher"])
    assert health.main() == 1, "there is none"
    process = service.dispatcher()
    wait_until(lambda: health.main() == 0)
    process.send_signal(signal.SIGSTOP)
    try:
        monkeypatch.setattr(health, "LONGEST_QUIET_SECONDS", 1.0)
        wait_until(lambda: health.main() == 1)
    finally:
        process.send_signal(signal.SIGCONT)
    monkeypatch.setattr(health, "LONGEST_QUIET_SECONDS", 60.0)
    wait_until(lambda: health.main() == 0)
    service.kill(process)
    wait_until(lambda: health.main() == 1)
