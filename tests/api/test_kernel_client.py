"""A C++ kernel sent by the Python client and by the command line, with the headers that it includes."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from penstock.client import Client
from penstock.services.cli.main import run
from penstock.services.client.errors import UsageError
from penstock.services.client.model_source import ModelSource
from penstock.services.settings import Settings
from penstock.services.store import ContentStore

SOURCE = '#include "sizes/n.h"\nvoid top(int a[N]) { for (int i = 0; i < N; i++) a[i] = i; }\n'


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / "sizes").mkdir(parents=True)
    (folder / "sizes" / "n.h").write_text("#define N 4\n")
    (folder / "unused.h").write_text("not sent\n")
    (folder / "k.cpp").write_text(SOURCE)
    return folder / "k.cpp"


def test_a_kernel_is_sent_with_what_it_includes(
    client: httpx.Client, settings: Settings, kernel: Path, tmp_path: Path
) -> None:
    with Client(str(client.base_url)) as service:
        made = service.submit(f"{kernel}:top", trials=5)
        model = service.model(made.model.id)
    assert (model.kind, model.source) == ("kernel", "k.cpp:top")
    assert model.sha256 is not None
    folder = tmp_path / "kept"
    ContentStore(settings.store_folder).extract_tree(model.sha256, folder)
    kept = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}
    assert kept == {"k.cpp": SOURCE, "sizes/n.h": "#define N 4\n"}


def test_the_command_names_the_top(client: httpx.Client, kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = str(client.base_url)
    assert run(["submit", str(kernel), "--top", "top", "--url", url]) == 0
    assert capsys.readouterr().out.startswith("run_")
    assert run(["submit", str(kernel), "--url", url]) == 2
    assert "name it with --top" in capsys.readouterr().err
    assert run(["submit", "zoo:mlp", "--top", "top", "--url", url]) == 2
    assert "is no kernel in C++" in capsys.readouterr().err


@pytest.mark.parametrize("line", ['#include "/etc/passwd"', '#include "../n.h"', '#include "gone.h"'])
def test_what_lies_outside_is_not_even_sent(kernel: Path, line: str) -> None:
    kernel.write_text(f"{line}\nvoid top(int a[4]) {{ a[0] = 1; }}\n")
    with pytest.raises(UsageError, match=r"k\.cpp:1:1"):
        ModelSource.parse(f"{kernel}:top")
