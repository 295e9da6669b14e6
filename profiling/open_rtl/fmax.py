"""The clock that a core reaches on an ECP5, by place and route with nextpnr.

A core has more pins than a chip, so it is placed with a ring of registers around it: one pin shifts values into all
inputs, one shows the exclusive or of all outputs. The ring has no path longer than one gate.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from penstock.compiler.backend.rtl.design import RtlDesign, RtlPort
from penstock.compiler.evidence import Evidence
from penstock.compiler.platforms import Platform
from penstock.profiling.cache import CacheStore, content_key, runs_folder
from penstock.profiling.open_rtl.failures import failed
from penstock.profiling.open_rtl.shape import structural_key
from penstock.profiling.open_rtl.tools import find_nextpnr_ecp5, find_yosys
from penstock.profiling.protocol import ProfilingError
from penstock.profiling.tool_runner import ToolCommand, ToolResult, ToolRunner, clean_environment
from penstock.profiling.work_folder import private_folder

REVISION = 1
_PART = re.compile(r"LFE5U(?P<link>M5G|M)?-(?P<size>\d+)F-(?P<speed>\d)(?P<package>[A-Z]+)(?P<pins>\d+)C?I?$")
_PACKAGES = {"BG": "CABGA", "MG": "CSFBGA", "TG": "TQFP"}


@dataclass(frozen=True)
class Device:
    """What nextpnr calls a chip: `--85k --package CABGA381 --speed 6`."""

    size: str
    package: str
    speed: int

    @property
    def options(self) -> tuple[str, ...]:
        return (f"--{self.size}", "--package", self.package, "--speed", str(self.speed))


@dataclass(frozen=True)
class Fmax:
    mhz: float
    device: Device
    seconds: float
    cached: bool = False
    evidence: Evidence = "open-rtl"


def device_of(platform: Platform) -> Device:
    """The chip of a platform, from its part's name."""
    match = _PART.match(platform.part.upper())
    if match is None or match["package"] not in _PACKAGES:
        raise ProfilingError(
            "bad-request", what=f"no open place and route for {platform.part}", where=platform.name,
            limit="clocks are measured on ECP5 only", hint="choose an ECP5 platform, or do without its clock",
        )  # fmt: skip
    link = {"M": "um-", "M5G": "um5g-"}.get(match["link"] or "", "")
    return Device(f"{link}{match['size']}k", _PACKAGES[match["package"]] + match["pins"], int(match["speed"]))


def measure_fmax(
    design: RtlDesign, device: Device, *, target_mhz: float = 100.0, tools: ToolRunner | None = None,
    timeout: float = 3600.0,
) -> Fmax:  # fmt: skip
    """Synthesise, place and route the core in its ring. Kept by structural shape, as areas are."""
    yosys, nextpnr = find_yosys(), find_nextpnr_ecp5()
    runner = tools or ToolRunner()
    key = content_key(
        "fmax", REVISION, structural_key(design), device.options, target_mhz, yosys.version, nextpnr.version
    )
    store = CacheStore("clocks", keep=20_000)
    with store.making(key):
        known = store.read(key)
        if isinstance(known, dict):
            return Fmax(known["mhz"], device, known["seconds"], cached=True)
        with private_folder(runs_folder()) as folder:
            design.write(folder)
            (folder / "ring.sv").write_text(ring(design))
            reads = [f"read_verilog -sv -defer {name}" for name in (*design.files, "ring.sv")]
            script = [*reads, "synth_ecp5 -top penstock_ring -json netlist.json"]
            (folder / "synth.ys").write_text("\n".join(script) + "\n")
            env = clean_environment(**yosys.env)
            argv = (*yosys.argv, "-q", "-s", "synth.ys")
            first = runner.run(ToolCommand(argv, folder, folder / "logs", env, timeout=timeout))
            _needs(folder / "netlist.json", "yosys", first)
            argv = (
                *nextpnr.argv, *device.options, "--json", "netlist.json", "--report", "report.json", "--freq",
                f"{target_mhz:g}", "--timing-allow-fail", "--quiet", "--seed", "1", "--lpf-allow-unconstrained",
            )  # fmt: skip
            env = clean_environment(**nextpnr.env)
            second = runner.run(ToolCommand(argv, folder, folder / "logs", env, timeout=timeout))
            _needs(folder / "report.json", "nextpnr-ecp5", second)
            mhz = _achieved((folder / "report.json").read_text())
        seconds = first.seconds + second.seconds
        store.write(key, {"mhz": mhz, "seconds": seconds})
    return Fmax(mhz, device, seconds)


def _needs(file: Path, tool: str, result: ToolResult) -> None:
    if not file.is_file():
        if not result.ok:
            raise failed(tool, result, "see the end of its log; the design may be too large for the device")
        raise ProfilingError(
            "report-missing", what=f"{tool} wrote no {file.name}", where=tool, hint="see the end of its log",
            log_tail=result.tail,
        )  # fmt: skip


def _achieved(report: str) -> float:
    """The slowest clock of the report."""
    try:
        return min(float(clock["achieved"]) for clock in json.loads(report)["fmax"].values())
    except (ValueError, KeyError, TypeError) as error:
        raise ProfilingError(
            "report-unreadable", what="nextpnr's report names no clock", where="nextpnr-ecp5",
            hint="a core without registers has no clock; else use the version of constraints.txt",
        ) from error  # fmt: skip


def ring(design: RtlDesign) -> str:
    """The core with a shift register before its inputs and a folded one behind its outputs."""
    inputs, outputs = [("rst", 1), ("start", 1)], [("done", 1)]
    for port in design.ports:
        for name, width, way in _signals(port):
            (inputs if way == "input" else outputs).append((f"{port.name}_{name}", width))
    lines = ["module penstock_ring (input wire clk, input wire d, output reg q);"]
    count = sum(width for _, width in inputs)
    lines += [f"  reg [{count - 1}:0] chain;", "  always @(posedge clk) chain <= {chain, d};"]
    pins, position = [".clk(clk)"], 0
    for name, width in inputs:
        pins.append(f".{name}(chain[{position + width - 1}:{position}])")
        position += width
    total = sum(width for _, width in outputs)
    lines += [f"  wire [{total - 1}:0] results;", f"  reg [{total - 1}:0] held, folded;"]
    position = 0
    for name, width in outputs:
        pins.append(f".{name}(results[{position + width - 1}:{position}])")
        position += width
    lines += [
        "  always @(posedge clk) begin",
        "    held <= results;",
        f"    folded <= held ^ {{folded[{max(total - 2, 0)}:0], 1'b0}};",
        f"    q <= folded[{total - 1}];",
        "  end",
        f"  {design.top} core ({', '.join(pins)});",
        "endmodule",
    ]
    return "\n".join(lines) + "\n"


def _signals(port: RtlPort) -> tuple[tuple[str, int, str], ...]:
    """Name, bits and direction of each signal of a port."""
    match port.kind:
        case "stream_in":
            return (("tdata", port.width, "input"), ("tvalid", 1, "input"), ("tready", 1, "output"))
        case "stream_out":
            return (("tdata", port.width, "output"), ("tvalid", 1, "output"), ("tready", 1, "input"))
        case "memory_read":
            return (("re", 1, "output"), ("addr", port.address_bits, "output"), ("rdata", port.width, "input"))
        case "memory_write":
            return (("we", 1, "output"), ("addr", port.address_bits, "output"), ("wdata", port.width, "output"))
