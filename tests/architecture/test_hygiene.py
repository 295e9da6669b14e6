"""The repository stays readable: short files, a page for each folder, nothing left for later."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_A_PAGE = {
    "compiler/runtime/penstock_runtime": "its files are shipped in packages; its page is compiler/runtime/README.md",
}
# Capitals stand for a name that the reader chooses.
PYTHON_FILE = re.compile(r"`([a-z0-9_./-]+\.py)`")
LONGEST_FILE = 400
# Spelled in pieces, so that this file does not contain what it forbids.
LEFT_FOR_LATER = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|X" + r"XX)\b")
MACHINE_PATHS = re.compile(r"(?<![\w.})])/(?:ro" + r"ot|ho" + r"me)/\w")
LOCAL_ADDRESSES = ("127.0.0.1", "localhost", "0.0.0.0", "[::1]")


def tracked(*patterns: str) -> list[Path]:
    """Files that git knows, or would take, without those that it ignores."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    paths = [ROOT / line for line in listing.stdout.splitlines() if "/vendor/" not in line]
    return [path for path in paths if path.is_file()]


def test_python_files_are_short() -> None:
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in tracked("*.py")}
    long = {name: count for name, count in lengths.items() if count > LONGEST_FILE}
    assert not long, f"over {LONGEST_FILE} lines: {long}"


def test_python_modules_say_what_they_are() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in tracked("*.py")
        if path.read_text().strip() and not path.read_text().lstrip().startswith(('"""', 'r"""'))
    ]
    assert not silent, f"no docstring at the top: {silent}"


def test_every_folder_of_python_files_has_its_page() -> None:
    folders = {path.parent.relative_to(ROOT).as_posix() for path in tracked("*.py")} | {"docs"}
    missing = sorted(one for one in folders - set(WITHOUT_A_PAGE) if not (ROOT / one / "README.md").is_file())
    assert not missing, f"no README.md: {missing}"
    assert set(WITHOUT_A_PAGE) <= folders, "an exception for a folder that is gone"


def not_there(page: Path, files: set[Path]) -> list[str]:
    """Python files that a page names, as seen from its folder or one above it, or by name alone from above them."""
    folders, below = page.parents, {file.name for file in files if file.is_relative_to(page.parent)}
    named = PYTHON_FILE.findall(page.read_text())
    return [name for name in named if name not in below
            and not any(Path(os.path.normpath(folder / name)) in files for folder in folders)]  # fmt: skip


def test_pages_name_python_files_that_are_there() -> None:
    files, pages = set(tracked("*.py")), tracked("README.md", "**/README.md")
    wrong = {str(page.relative_to(ROOT)): names for page in pages if (names := not_there(page, files))}
    assert not wrong, f"gone, or moved: {wrong}"


def test_a_table_of_a_folders_files_has_them_all() -> None:
    """A page whose first table is one of files lists its folder: a file that it lacks was forgotten."""
    missing: dict[str, list[str]] = {}
    files = tracked("*.py")
    for page in tracked("README.md", "**/README.md"):
        beside = {file.name for file in files if file.parent == page.parent} - {"__init__.py", "__main__.py"}
        text = page.read_text()
        first = re.search(r"^\| (\w+) \|", text, re.M)
        if first and first[1] == "file" and (gone := sorted(name for name in beside if name not in text)):
            missing[str(page.relative_to(ROOT))] = gone
    assert not missing


def test_a_page_that_names_what_is_gone_is_found(tmp_path: Path) -> None:
    page = tmp_path / "house" / "README.md"
    page.parent.mkdir()
    files = {tmp_path / name for name in ("house/here.py", "house/room/below.py", "other/far.py")}
    page.write_text("`here.py`, `below.py`, `house/here.py`, `other/far.py`, `../other/far.py`, `NAME.py`, `a.toml`\n")
    assert not_there(page, files) == []
    page.write_text("`here.py`, `far.py`, `moved.py`, `room/gone.py`, `other/here.py`\n")
    assert not_there(page, files) == ["far.py", "moved.py", "room/gone.py", "other/here.py"]


def test_nothing_is_left_for_later() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked("*.py", "*.md", "*.toml", "*.yml", "*.html", "*.h", "*.js", "Makefile")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if LEFT_FOR_LATER.search(line)
    ]
    assert not found, "\n".join(found)


def test_no_path_of_someones_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in tracked("*.py", "*.md", "*.toml", "*.txt", "*.yml", "Makefile", "Dockerfile*", ".ci/*")
        if (match := MACHINE_PATHS.search(path.read_text()))
    ]
    assert not found, "\n".join(found)


def test_constraints_are_exact_and_name_no_host() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert "torch==2.13.0" in pins
    assert all(re.fullmatch(r"[\w.\-]+==[\w.!]+", pin) for pin in pins), pins


def test_every_dependency_says_why_it_is_there() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    names = {re.split(r"[\[<>=!; ]", one)[0] for one in wanted} - {"penstock"}
    rows = [line.split("|")[1] for line in (ROOT / "docs/dependencies.md").read_text().splitlines() if line[:1] == "|"]
    told = {name.strip() for row in rows for name in row.split(",")}
    assert not names - told, f"not in docs/dependencies.md: {sorted(names - told)}"
    assert told - names == {"package", "---"}, "the page names what is not installed"


def test_pages_link_to_what_is_there() -> None:
    link = re.compile(r"\]\(([^)#\s]+)")
    pages = {page: link.findall(page.read_text()) for page in tracked("*.md")}
    gone = [f"{page.relative_to(ROOT)}: {to}" for page, found in pages.items() for to in found
            if "://" not in to and not (page.parent / to).exists()]  # fmt: skip
    assert not gone, "\n".join(gone)
