"""The reader of Dockerfiles and its COPY, on files of other shapes than ours too; nothing is built here."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

from tests.images.context import copy_in, seen_by_builds
from tests.images.dockerfile import DockerfileError, expanded, read_stages
from tests.images.fresh_root import RELEASES

ROOT = Path(__file__).resolve().parents[2]
TWO_STAGES = """\
# syntax=docker/dockerfile:1
ARG RELEASE=bookworm
FROM python:3.11-slim-${RELEASE} AS made
RUN apt-get update \\
    # a comment between
    && apt-get install -y \\
       g++
ENV A=1 B="two words" C=$A
FROM made
COPY --from=made /usr/bin/a /usr/bin/b /opt/
ENTRYPOINT ["python", "-m"]
CMD ["penstock.services.worker"]
"""


def test_stages_lines_and_variables(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(TWO_STAGES)
    made, last = read_stages(tmp_path / "Dockerfile")
    assert (made.base, made.name, last.base, last.name) == ("python:3.11-slim-bookworm", "made", "made", "1")
    run, env = made.instructions
    assert run.command() == ["/bin/sh", "-c", "apt-get update && apt-get install -y g++"]
    assert (run.line, env.line) == (4, 8)
    assert env.pairs({"A": "0"}) == {"A": "1", "B": "two words", "C": "0"}, "a line does not see its own variables"
    assert last.instructions[1].command() == ["python", "-m"]


@pytest.mark.parametrize(
    ("text", "known", "wanted"),
    [
        ("$A/${A}", {"A": "x"}, "x/x"),
        ("${A:-else}", {}, "else"),
        ("${A:+--index $A}", {"A": "u"}, "--index u"),
        ("${A:+--index}", {}, ""),
        ("$A", {}, ""),
    ],
)
def test_variables(text: str, known: dict[str, str], wanted: str) -> None:
    assert expanded(text, known) == wanted


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("RUN true\n", "before FROM"),
        ("FROM a\nVOLUME /x\n", "VOLUME is not carried out"),
        ("FROM a\nRUN true \\\n", "ends in a backslash"),
        ("# nothing\n", "no FROM"),
        ("FROM --platform=x a\n", "is not read here"),
    ],
)
def test_what_is_not_understood_is_an_error(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(text)
    with pytest.raises(DockerfileError, match=said):
        read_stages(tmp_path / "Dockerfile")


@pytest.mark.parametrize("name", ["api", "worker"])
def test_ours_are_read_and_name_a_release_of_debian(name: str) -> None:
    """So that the image of next year is made of the same parts, and a fresh root can be made of packages."""
    (stage,) = read_stages(ROOT / f"Dockerfile.{name}")
    python, release = stage.base.removeprefix("python:").split("-slim-")
    assert RELEASES[release] == python


def test_copies_leave_out_what_is_ignored(tmp_path: Path) -> None:
    origin, root = tmp_path / "origin", tmp_path / "root"
    for path in ("a/x.py", "a/__pycache__/x.pyc", "a/b/y.py", "secrets/key", "one.md", "two.md"):
        file = origin / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(path)
    (origin / ".dockerignore").write_text("**\n# kept:\n!a\n!*.md\n**/__pycache__\n")
    seen = seen_by_builds(origin)
    assert not seen(PurePosixPath("secrets/key"))
    root.mkdir()
    copy_in(["a"], "code", origin, root, "/srv", seen)
    copy_in(["one.md", "two.md"], "./", origin, root, "/srv", seen)
    assert sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()) == [
        "srv/code/b/y.py", "srv/code/x.py", "srv/one.md", "srv/two.md",
    ]  # fmt: skip
    with pytest.raises(DockerfileError, match="kept back"):
        copy_in(["secrets"], "s", origin, root, "/", seen)
    with pytest.raises(DockerfileError, match="must end in a slash"):
        copy_in(["one.md", "two.md"], "both", origin, root, "/", seen)
