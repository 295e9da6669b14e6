"""A wheel, built from what the images copy, installed into an empty environment and used there, away from the checkout.

What is installed besides it comes from the environment that the tests run in; of this checkout nothing does.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from penstock.services.supervisor.folders import open_folder
from tests.architecture.test_hygiene import ROOT
from tests.supervisor.stacks import Caller, get, remove, up

FOLDERS = ("compiler", "db", "dse", "examples", "profiling", "services", "web")


def tracked(*patterns: str) -> list[str]:
    listing = subprocess.run(["git", "ls-files", "--", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return listing.stdout.splitlines()


def copied_by(dockerfile: str) -> list[str]:
    """What an image takes from the checkout, as git knows it."""
    lines = re.findall(r"^COPY (.+) \S+$", (ROOT / dockerfile).read_text(), re.M)
    return tracked(*(word for line in lines for word in line.split()))


def test_both_images_copy_the_same_and_docker_may_see_it() -> None:
    taken = copied_by("Dockerfile.worker")
    assert copied_by("Dockerfile.api") == taken
    seen = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert {name.partition("/")[0] for name in taken} == seen


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in copied_by("Dockerfile.worker"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, source / name, follow_symlinks=False)
    build = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"
    answer = subprocess.run([sys.executable, "-c", build, out], cwd=source, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    (made,) = out.iterdir()
    return made


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of an environment that has the wheel and, below it, what else is installed here."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False, symlinks=True)
    program = folder / "bin" / "python"
    install = ["-m", "pip", "--python", program, "install", "-q", "--no-deps", "--no-index", wheel]
    subprocess.run([sys.executable, *install], check=True, capture_output=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    # a line of a .pth file is a folder and no more: no editable installation in it takes effect
    below = [part for part in sys.path if part.endswith("site-packages")]
    (packages / "below.pth").write_text("".join(f"{part}\n" for part in below))
    return program


@pytest.fixture(autouse=True)
def _no_path_of_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)


def penstock(python: Path, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [python.with_name("penstock"), *arguments]
    return subprocess.run(command, cwd=folder, env=os.environ | environment, capture_output=True, text=True)


@pytest.mark.slow
def test_it_holds_every_file_once_and_takes_one_name(wheel: Path) -> None:
    names = [name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name]
    assert len(names) == len(set(names))
    # the links of the package are those folders
    own = [name for name in tracked("penstock") if not (ROOT / name).is_symlink()]
    inside = [f"penstock/{name}" for name in tracked(*FOLDERS)] + own
    assert sorted(names) == sorted(inside)


@pytest.mark.slow
def test_commands_work_from_another_folder(python: Path, tmp_path: Path) -> None:
    where = "import penstock; print(penstock.__file__)"
    found = subprocess.run([python, "-c", where], cwd=tmp_path, capture_output=True, text=True).stdout
    assert Path(found.strip()).is_relative_to(python.parents[1])

    doctor = penstock(python, tmp_path, "doctor")
    assert doctor.returncode == 0, doctor.stdout + doctor.stderr
    compiled = penstock(python, tmp_path, "compile", "zoo:mlp", "-o", "out")
    assert compiled.returncode == 0, compiled.stderr
    assert "C++         equals the interpreter" in compiled.stdout
    explored = penstock(python, tmp_path, "explore", "zoo:mlp", "--trials", "2")
    assert explored.returncode == 0, explored.stderr
    bench = penstock(python, tmp_path, "bench")
    assert bench.returncode == 2
    assert "the benchmarks are not installed with penstock - run it from a checkout" in bench.stderr


@pytest.mark.slow
def test_the_demo_finds_its_model(python: Path, tmp_path: Path) -> None:
    example = "from penstock.services.cli.demo import EXAMPLE; print(EXAMPLE)"
    found = subprocess.run([python, "-c", example], cwd=tmp_path, capture_output=True, text=True).stdout.strip()
    assert Path(found.partition(":")[0]).is_relative_to(python.parents[1])
    compiled = penstock(python, tmp_path, "compile", found, "--quantize", "w8a8", "-o", "out")
    assert compiled.returncode == 0, compiled.stderr


@pytest.mark.slow
def test_it_serves(python: Path, tmp_path: Path) -> None:
    home = open_folder("penstock-wheel-")
    caller = Caller(str(python), folder=tmp_path)
    try:
        with up(caller, home / "home", PENSTOCK_STEP_MODULES="penstock.services.steps.bodies") as running:
            assert get(f"{running.url}/v1/health")["workers_alive"] >= 1
            asked = ("submit", "zoo:mlp", "--trials", "2", "--wait", "--url", running.url)
            submitted = penstock(python, tmp_path, *asked, PENSTOCK_HOME=str(home / "home"))
            assert submitted.returncode == 0, submitted.stderr
            assert running.stop()[0] == 0
    finally:
        remove(home)
