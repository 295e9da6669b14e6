"""Rules for every test: no socket leaves this machine, and CI draws the same random examples every time."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
from typing import Any

import pytest
from hypothesis import settings

from penstock.compiler.collecting import seldom_collected, set_aside
from penstock.profiling import store

pytest_plugins = [
    "tests.fixtures.emitted_memories",
    "tests.fixtures.servers",
    "tests.fixtures.service",
    "tests.fixtures.time_left",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    """How long the tests go on that could go on for ever."""
    parser.addoption("--rounds", type=int, default=3, help="rounds of faults by lot (tests/worker/test_many_faults.py)")
    parser.addoption("--trials", type=int, default=200, help="trials of the large run beside them")
    parser.addoption("--submissions", type=int, default=6, help="of one model (tests/worker/test_same_answer.py)")
    parser.addoption("--images", action="store_true", help="build the Dockerfiles (tests/images/test_images.py)")
    parser.addoption("--seed", type=int, default=0, help="what those rounds are drawn from")


def pytest_configure(config: pytest.Config) -> None:
    """Garbage is looked for as seldom as while a command runs."""
    stack = contextlib.ExitStack()
    stack.enter_context(seldom_collected())
    config.add_cleanup(stack.close)


def pytest_collection_finish() -> None:
    """The tests' modules, and all that they import, are there until the end."""
    set_aside()


# Where a red run stops people, the same examples come every time; at a desk new ones are looked for. How long one takes
# says how busy the machine is.
settings.register_profile("desk", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


@pytest.fixture(autouse=True, scope="session")
def _measurements_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What stand-ins answer is not to be believed after the tests."""
    folder = tmp_path_factory.mktemp("kept")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "kept_folder", lambda: folder)
        yield


_real_connect = socket.socket.connect
_real_connect_ex = socket.socket.connect_ex


def _is_local(family: int, address: Any) -> bool:
    if family == socket.AF_UNIX:
        return True
    host = address[0] if isinstance(address, tuple) else ""
    if host in ("localhost", ""):
        return True
    try:
        return ipaddress.ip_address(host.split("%")[0]).is_loopback
    except ValueError:
        return False


def _refuse_remote(connection: socket.socket, address: Any) -> None:
    if not _is_local(connection.family, address):
        raise RuntimeError(f"a test tried to reach {address!r}: tests use loopback and unix sockets only")


@pytest.fixture(autouse=True, scope="session")
def _loopback_only() -> Any:
    def connect(self: socket.socket, address: Any) -> None:
        _refuse_remote(self, address)
        _real_connect(self, address)

    def connect_ex(self: socket.socket, address: Any) -> int:
        _refuse_remote(self, address)
        return _real_connect_ex(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", connect)
        patch.setattr(socket.socket, "connect_ex", connect_ex)
        yield
