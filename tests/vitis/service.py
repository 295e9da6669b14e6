"""The whole service on embedded defaults, on a machine whose Vitis is the stand-in, as a lab would start it.

It is asked by REST and by its pages. Which release is installed, and what goes wrong in it, may change while it runs.
"""

from __future__ import annotations

import contextlib
import json
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from penstock.services.supervisor.folders import open_folder
from tests.fixtures.waiting import wait_until
from tests.standin.install import Installation
from tests.supervisor.stacks import Up, myself, remove, up

OVER = ("succeeded", "failed", "cancelled")
Document = dict[str, Any]


@dataclass
class Lab:
    """A running service. `tools` is what PENSTOCK_VITIS names: a link to the installation of the day."""

    up: Up
    tools: Path
    token: str
    installed: dict[str, Installation] = field(default_factory=dict[str, Installation])
    sizes: int = 12

    def install(self, release: str, behaviour: Mapping[str, object] | None = None) -> Installation:
        """Have this release, which behaves so, from now on."""
        if release not in self.installed:
            self.installed[release] = Installation(self.tools.parent / release, release)
        installation = self.installed[release]
        installation.behave(behaviour or {})
        self.tools.unlink(missing_ok=True)
        self.tools.symlink_to(installation.root, target_is_directory=True)
        return installation

    def submit(self, *, fresh: bool = False, **options: object) -> str:
        """A run of a small model; a fresh one no run had before, so that nothing is known of its designs yet."""
        self.sizes += 2 * fresh
        hidden = str(self.sizes if fresh else 12)
        model = self.send("/v1/models", {"zoo": "mlp", "arguments": {"inputs": 8, "hidden": hidden, "outputs": 4}})
        asked = {"platform": "u55c", "trials": 1, "quantize": "w8a8", "evidence": "csynth"} | options
        return str(self.send("/v1/runs", {"model": model["id"], **asked})["id"])

    def wait(self, run: str, until: Callable[[Document], object] = lambda run: run["state"] in OVER) -> Document:
        """The run as the API describes it, once it is over, or once what was asked for is so."""
        found: Document = {}

        def holds() -> object:
            found.update(self.get(f"/v1/runs/{run}"))
            return until(found)

        wait_until(holds, lambda: found.get("last_event_id"), lambda: json.dumps(found, indent=1)[:6000], pause=0.3)
        return found

    def run(self, *, fresh: bool = False, **options: object) -> Document:
        return self.wait(self.submit(fresh=fresh, **options))

    def tools_alive(self) -> list[str]:
        """Command lines of tools that still run."""
        found: list[str] = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                line = " ".join(process.cmdline())
                if str(self.tools.parent) in line and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(line)
        return found

    def page(self, run: Document) -> str:
        """What a person sees of it."""
        return self._open(f"/runs/{run['id']}", None, {"Accept": "text/html"}).decode()

    def get(self, path: str) -> Document:
        return json.loads(self._open(path, None, {}))

    def artifact(self, run: Document, ending: str) -> bytes:
        items = self.get(f"/v1/runs/{run['id']}/artifacts?limit=500")["items"]
        [found] = [item for item in items if item["name"].endswith(ending)]
        return self._open(f"/v1/artifacts/{found['id']}", None, {})

    def send(self, path: str, document: Mapping[str, object] | None = None) -> Document:
        body = b"" if document is None else json.dumps(document).encode()
        return json.loads(self._open(path, body, {"Content-Type": "application/json"}) or b"{}")

    def _open(self, path: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
        known = {"Authorization": f"Bearer {self.token}"} | dict(headers)
        asked = urllib.request.Request(self.up.url + path, data=body, headers=known)
        with urllib.request.urlopen(asked, timeout=600) as answer:
            return answer.read()


def step_of(run: Document, kind: str) -> Document:
    """The only step of a kind."""
    [found] = [step for step in run["steps"] if step["kind"] == kind]
    return found


@contextmanager
def lab() -> Iterator[Lab]:
    """A stack of its own with short waits; nothing of it is left."""
    home = open_folder("penstock-vitis-")
    tools = home / "tools" / "current"
    tools.parent.mkdir()
    settings = {
        "PENSTOCK_VITIS": str(tools), "PLATFORM_REPO_PATHS": str(tools / "platforms"),
        "XILINX_XRT": str(tools / "xrt"), "XILINXD_LICENSE_FILE": "2100@licences.example.org",
        "PENSTOCK_STEP_MODULES": "penstock.services.steps.bodies", "PENSTOCK_LICENCE_SECONDS": "2",
        "PENSTOCK_TOOL_HOURS": str(80 / 3600), "PENSTOCK_TOOL_MEMORY_GB": "0.25", "PENSTOCK_TOOL_DISK_GB": "0.0625",
    }  # fmt: skip
    try:
        with up(myself(), home / "home", **settings) as running:
            yield Lab(running, tools, (home / "home" / "token").read_text().strip())
    finally:
        remove(home)
