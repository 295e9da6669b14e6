"""The services of docker-compose.yml, started in images with servers of a test's own.

Commands, settings and checks of health are those of the file. What the file gives to an engine (volumes, names of
hosts, restarts) is replaced: the servers are reached by sockets, the store is a folder, the port is a free one.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import yaml

from penstock.services.supervisor.folders import open_folder
from penstock.services.supervisor.postgres import EmbeddedPostgres
from penstock.services.supervisor.redis import EmbeddedRedis
from tests.fixtures.waiting import wait_until
from tests.images.dockerfile import expanded
from tests.images.fresh_root import Seen

ROOT = Path(__file__).resolve().parents[2]
UID = 10001
"""Of the user `penstock` in both images."""


class Startable(Protocol):
    command: list[str]

    def start(
        self, command: list[str], environment: dict[str, str] | None = None, see: Seen | None = None, log: Any = None
    ) -> subprocess.Popen[bytes]: ...

    def run(self, command: list[str], environment: dict[str, str] | None = None, see: Seen | None = None) -> str: ...


@dataclass
class Lab:
    images: dict[str, Startable]
    logs: Path
    see: Seen
    told: dict[str, str]
    """What deploy/secrets.env would say, and the free port."""
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict[str, "subprocess.Popen[bytes]"])
    services: dict[str, dict[str, Any]] = field(
        default_factory=lambda: yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
    )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.told['PENSTOCK_API_PORT']}"

    def ours(self) -> list[str]:
        return [name for name, service in self.services.items() if service["image"] in self.images]

    def run(self, service: str, command: list[str], **more: str) -> str:
        """As `docker-compose run --rm SERVICE COMMAND`."""
        return self._image(service).run(command, self._environment(service) | more, self.see)

    def start(self, service: str) -> None:
        image = self._image(service)
        command = [str(part) for part in self.services[service].get("command", [])] or image.command
        with (self.logs / f"{service}.log").open("wb") as log:
            self.running[service] = image.start(command, self._environment(service), self.see, log)

    def wait_for(self, service: str) -> None:
        """Until it is healthy by the file's own check."""
        kind, *check = [str(part) for part in self.services[service]["healthcheck"]["test"]]
        assert kind == "CMD"
        check = [part.replace(":8750", f":{self.told['PENSTOCK_API_PORT']}") for part in check]

        def healthy() -> bool:
            assert self.running[service].poll() is None, f"{service} has ended\n{self.explain()}"
            with contextlib.suppress(AssertionError):
                self.run(service, check)
                return True
            return False

        wait_until(healthy, lambda: None, self.explain, pause=1)

    def assert_running(self) -> None:
        ended = [name for name, process in self.running.items() if process.poll() is not None]
        assert not ended, f"{ended} have ended\n{self.explain()}"

    def explain(self) -> str:
        return "\n".join(f"--- {log.name}\n{log.read_text()[-3000:]}" for log in sorted(self.logs.iterdir()))

    def end(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()

    def _image(self, service: str) -> Startable:
        return self.images[self.services[service]["image"]]

    def _environment(self, service: str) -> dict[str, str]:
        named = self.services[service].get("environment", {})
        return {name: expanded(str(value), {}) for name, value in named.items()} | self.told


@contextlib.contextmanager
def open_lab(images: dict[str, Startable], folder: Path, port: int) -> Iterator[Lab]:
    servers = open_folder()
    postgres = EmbeddedPostgres(servers / "pg", servers / "p")
    redis = EmbeddedRedis(servers / "redis", servers / "r")
    store, logs = folder / "store", folder / "logs"
    store.mkdir()
    logs.mkdir()
    os.chown(store, UID, UID)
    lab: Lab | None = None
    try:
        postgres.start()
        redis.start()
        for path in [*(servers / "p").iterdir(), *(servers / "r").iterdir()]:
            path.chmod(0o777)
        for path in (servers / "p", servers / "r"):
            path.chmod(0o755)
        told = {
            "PENSTOCK_DATABASE_URL": postgres.url,
            "PENSTOCK_REDIS_URL": redis.url,
            "PENSTOCK_API_HOST": "127.0.0.1",
            "PENSTOCK_API_PORT": str(port),
        }
        see = {"/var/lib/penstock": store, str(servers / "p"): servers / "p", str(servers / "r"): servers / "r"}
        lab = Lab(images, logs, see, told)
        yield lab
    finally:
        if lab is not None:
            lab.end()
        redis.stop()
        postgres.stop()


def printed(text: str) -> Any:
    """The JSON document among what a command printed."""
    return json.loads(text[text.index("{") :])
