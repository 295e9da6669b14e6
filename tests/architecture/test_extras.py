"""Each extra brings all that its processes import, also what a library of ours imports and does not ask for."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
_IMPORT = """
import importlib, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

absent = set(sys.argv[2].split(","))
sys.meta_path.insert(0, Refuse())
importlib.import_module(sys.argv[1])
"""


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _brought_by(requirements: list[str]) -> set[str]:
    """Every distribution that pip would install for these, of those that are installed here."""
    found: set[tuple[str, str]] = set()
    left = [Requirement(text) for text in requirements]
    while left:
        wanted = left.pop()
        for extra in ("", *wanted.extras):
            if (_plain(wanted.name), extra) in found:
                continue
            found.add((_plain(wanted.name), extra))
            try:
                asked = metadata.requires(wanted.name) or []
            except metadata.PackageNotFoundError:
                continue
            more = [Requirement(text) for text in asked]
            left += [one for one in more if one.marker is None or one.marker.evaluate({"extra": extra})]
    return {name for name, _ in found}


@pytest.mark.parametrize("module", ["penstock.services.worker.dispatcher", "penstock.services.supervisor.migrate"])
def test_the_apis_extra_is_enough_for_its_image(module: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    brought = _brought_by([*project["dependencies"], *project["optional-dependencies"]["api"]])
    absent = {
        name
        for name, owners in metadata.packages_distributions().items()
        if not {_plain(owner) for owner in owners} & (brought | {"penstock"})
    }
    assert "torch" in absent
    answer = subprocess.run([sys.executable, "-c", _IMPORT, module, ",".join(absent)], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
