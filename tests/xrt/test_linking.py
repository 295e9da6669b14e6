"""What docs/host.md says of several compute units is what the linker's stand-in takes, and what the host then finds."""

from __future__ import annotations

import re
from pathlib import Path

from penstock.profiling.tool_runner import ToolRunner
from penstock.profiling.vitis.build import BuildJob, build_bitstream
from tests.standin.install import Installation
from tests.vitis.standins import TOP, emitted, tools_of

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "host.md"


def with_two_units(text: str) -> str:
    """As the page says: both in `nk`, and every line of the one again for the other, with banks of its own."""
    one, two = f"{TOP}_1", f"{TOP}_2"
    assert f"nk={TOP}:2:{one}.{two}" in DOCUMENT.read_text()
    assert f"nk={TOP}:2:{one}" in text  # and the file itself says so too
    text = text.replace(f"\nnk={TOP}:1:{one}", f"\nnk={TOP}:2:{one}.{two}")
    ports = len(re.findall(rf"^sp={one}\.", text, re.M))
    again = re.sub(r"HBM\[(\d+)\]", lambda bank: f"HBM[{int(bank[1]) + ports}]", text)
    copies = {line: line.replace(one, two) for line in again.splitlines() if re.match(rf"(sp={one}\.|freqHz=)", line)}
    lines: list[str] = []
    for old, new in zip(text.splitlines(), again.splitlines(), strict=True):
        lines += [old, copies[new]] if new in copies else [old]
    return "\n".join(lines) + "\n"


def test_two_units_link(tmp_path: Path) -> None:
    design = emitted(tmp_path / "design")
    path = design / "link" / "connectivity.cfg"
    path.write_text(with_two_units(path.read_text()))
    assert len(re.findall(rf"^sp={TOP}_2\.", path.read_text(), re.M)) == 2
    installation = Installation(tmp_path / "tools", "2023.2")
    job = BuildJob(design, TOP, tmp_path / "store")
    made = build_bitstream(
        job, tools_of(installation), ToolRunner(), tmp_path / "results", environment=installation.environment
    )
    assert made.xclbin.is_file()
