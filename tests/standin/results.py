"""The files that steps leave: reports of the design that was given, in the layout of the release, and kernels."""

from __future__ import annotations

import gzip
import json
import os
import re
import zipfile
from typing import Any

from tests.standin import report_text, report_xml
from tests.standin.analysis import Module, modules_of
from tests.standin.generations import Style, style_of
from tests.standin.report_xml import Synthesis

RECORDED_TOP, RECORDED_PART, RECORDED_RELEASE = "forward", "xcu280-fsvh2892-2L-e", "2023.2"
FRAMES = 2  # transactions of a co-simulation
RTL_OVERHEAD = 1.1  # what the RTL takes longer than csynth says


def synthesise(source: str, text: str, top: str, part: str, period: float, release: str, slow: dict[str, int]):
    """The design in the C++, as a release would report it."""
    style = style_of(release)
    modules = report_xml.split(modules_of(text, top, slow), style)
    return Synthesis(style, part, period, source, modules)


def write_synthesis(folder: str, design: Synthesis, layout: str, *, damaged: bool) -> None:
    """`syn/report`. Layouts: "xml", all modules in csynth.xml; "scattered", a file for each; "text", no XML at all."""
    os.makedirs(folder, exist_ok=True)
    files = {f"{module.name}_csynth.rpt": report_text.module_report(design, module) for module in design.modules}
    files["csynth.rpt"] = report_text.summary_report(design)
    if layout != "text":
        files["csynth.xml"] = report_xml.csynth_xml(design, with_modules=layout == "xml")
        files |= {f"{module.name}_csynth.xml": report_xml.module_xml(design, module) for module in design.modules}
    if damaged:
        name = "csynth.xml" if "csynth.xml" in files else f"{design.top.name}_csynth.rpt"
        files[name] = files[name][: len(files[name]) // 2]
    for name, text in files.items():
        _write(os.path.join(folder, name), text)


def write_recording(folder: str, recording: str, design: Synthesis) -> None:
    """A packed csynth.xml of another design under this one's names."""
    os.makedirs(folder, exist_ok=True)
    with gzip.open(recording, "rt") as file:
        text = file.read()
    text = re.sub(rf">{RECORDED_TOP}<", f">{design.top.name}<", text).replace(RECORDED_PART, design.part)
    text = text.replace(f"<Version>{RECORDED_RELEASE}", f"<Version>{design.style.release}")
    text = text.replace("<TargetClockPeriod>3.33<", f"<TargetClockPeriod>{design.period:g}<")
    _write(os.path.join(folder, "csynth.xml"), text)


def write_simulation(folder: str, style: Style, top: Module, *, passed: bool) -> None:
    """The report, and beside it the one from before the simulation, which always says that it failed."""
    os.makedirs(folder, exist_ok=True)
    latency, interval = int(top.latency * RTL_OVERHEAD), int(top.interval * RTL_OVERHEAD)

    def report(*, ran: bool, passed: bool) -> str:
        return report_text.cosim_report(style, latency, interval if FRAMES > 1 else None, ran=ran, passed=passed)

    _write(os.path.join(folder, "_cosim.rpt"), report(ran=False, passed=False))
    _write(os.path.join(folder, f"{top.name}_cosim.rpt"), report(ran=passed, passed=passed))


def write_implementation(folder: str, design: Synthesis, *, met: bool) -> None:
    os.makedirs(os.path.join(folder, "verilog"), exist_ok=True)
    for name, text in report_text.export_reports(design, design.period * (0.9 if met else 1.2)).items():
        _write(os.path.join(folder, "verilog", name), text)


def write_kernel(path: str, top: str, sources: list[str]) -> None:
    """A .xo that says which kernel it holds and which memory ports its sources declare."""
    ports: set[str] = set()
    for source in sources:
        with open(source, encoding="utf-8") as file:
            ports |= set(
                re.findall(r"#pragma HLS INTERFACE m_axi\b.*?\bbundle\s*=\s*(\w+)", file.read(), re.IGNORECASE)
            )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("kernel.json", json.dumps({"kernel": top, "ports": sorted(f"m_axi_{port}" for port in ports)}))


def read_kernel(path: str) -> dict[str, Any]:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("kernel.json"))


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
