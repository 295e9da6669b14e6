"""Commands against a real service: fixtures are those of the API's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import httpx
import pytest

from penstock.dse.search import second
from penstock.services.cli import main
from tests.api.conftest import client, make_client, seeder, settings

__all__ = ["client", "make_client", "run", "seeder", "settings"]


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


Run = Callable[..., Ended]


@pytest.fixture(autouse=True, scope="session")
def _searches_by_one_process() -> Iterator[None]:
    """Other tests keep the other processors busy; tests/dse/test_second.py has what a second process is for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(second, "processors", lambda: 1)
        yield


@pytest.fixture
def run(client: httpx.Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs `penstock …` in this process against the test's service."""
    monkeypatch.setenv("PENSTOCK_URL", str(client.base_url))
    monkeypatch.delenv("PENSTOCK_TOKEN", raising=False)
    capsys.readouterr()

    def command(*arguments: str) -> Ended:
        code = main.run([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Ended(code, printed.out, printed.err)

    return command
