"""What the stand-in prints and writes: lines as the real tools print them, and recorded reports under the job's names.

The figures of a report are the recording's (tests/data/hls-reports); top, part, clock and release are the job's.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import zipfile
from typing import Any

RECORDED = os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "..", "data", "hls-reports",
    "streamhls__polybench__streamhls__2560_DSPs__opt1__atax",
)  # fmt: skip
RECORDED_TOP, RECORDED_PART, RECORDED_RELEASE = "forward", "xcu280-fsvh2892-2L-e", "2023.2"

BANNER = """
****** {program} v{release} (64-bit)
  **** SW Build {build} on {date}
    ** Copyright 1986-2022 Xilinx, Inc. All Rights Reserved.
"""
BUILDS = {"2021.1": "3247384", "2022.2": "3670227", "2023.2": "4029153", "2024.2": "5239630", "2025.1": "6135595"}
CSYNTH_START = """\
INFO: [HLS 200-10] Analyzing design file '{source}' ...
INFO: [HLS 200-111] Finished Source Code Analysis and Preprocessing: CPU user time: 0.49 seconds. CPU system time: \
0.76 seconds. Elapsed time: 1.63 seconds; current allocated memory: 660.043 MB."""
CSYNTH_LOOPS = """\
INFO: [HLS 200-777] Using interface defaults for 'Vitis' flow target.
INFO: [HLS 200-10] ----------------------------------------------------------------
INFO: [HLS 200-42] -- Implementing module '{top}'
INFO: [SCHED 204-61] Pipelining loop 'loop3_loop4'.
INFO: [HLS 200-1470] Pipelining result : Target II = 1, Final II = 4, Depth = 17, loop 'loop3_loop4'
INFO: [RTGEN 206-100] Finished creating RTL model for '{top}'."""
CSYNTH_END = """\
INFO: [HLS 200-790] **** Loop Constraint Status: All loop constraints were satisfied.
INFO: [HLS 200-789] **** Estimated Fmax: 370.78 MHz"""
# The cause comes first; what follows it is the tool's way of giving up.
SOURCE_ERROR = """\
ERROR: [HLS 214-134] in function '{task}': Pointer to pointer is not supported for variable 'x' ({source}:{line}:17)
ERROR: [HLS 200-1715] Encountered problem during source synthesis"""
FIFO_ERROR = """\
ERROR: [HLS 200-970] Internal stream '{channel}' ({source}:{line}) failed dataflow checking: it must be produced and \
consumed exactly once.
ERROR: [HLS 200-1715] Encountered problem during source synthesis"""
OUT_OF_MEMORY = "ERROR: [HLS 200-103] Unexpected exception occurred: Out of Memory"
XSIM_OUT_OF_MEMORY = "ERROR: Out of memory on request for a fresh 8388608 bytes"
CSIM_START = """\
INFO: [SIM 211-2] *************** CSIM start ***************
INFO: [SIM 211-4] CSIM will launch GCC as the compiler.
   Compiling ../../../../../csim/csim_main.cpp in debug mode
   Generating csim.exe"""
CSIM_END = """\
INFO: [SIM 211-1] CSim done with 0 errors.
INFO: [SIM 211-3] *************** CSIM finish ***************"""
CSIM_MISMATCH = """\
error: output 0 is not what csim/run/out0.bin holds
@E Simulation failed: Function 'main' returns nonzero value '1'.
ERROR: [SIM 211-100] 'csim_design' failed: nonzero return value.
INFO: [SIM 211-3] *************** CSIM finish ***************"""
COSIM_START = """\
INFO: [COSIM 212-47] Using XSIM for RTL simulation.
INFO: [COSIM 212-14] Instrumenting C test bench ...
INFO: [COSIM 212-302] Starting C TB testing ...
INFO: [COSIM 212-333] Generating C post check test bench ...
INFO: [COSIM 212-12] Generating RTL test bench ...
// RTL Simulation : 0 / 1 [n/a] @ "109000\""""
COSIM_PASS = """\
// RTL Simulation : 1 / 1 [n/a] @ "4254731000"
INFO: [COSIM 212-316] Starting C post checking ...
INFO: [COSIM 212-1000] *** C/RTL co-simulation finished: PASS ***
INFO: [COSIM 212-211] II is measurable only when transaction number is greater than 1 in RTL simulation. Otherwise, \
they will be marked as all NA. If user wants to calculate them, please make sure there are at least 2 transactions \
in RTL simulation."""
COSIM_FAIL = """\
INFO: [COSIM 212-316] Starting C post checking ...
error: output 0 is not what csim/run/out0.bin holds
ERROR: [COSIM 212-361] C TB post check failed, nonzero return value '1'.
ERROR: [COSIM 212-4] *** C/RTL co-simulation finished: FAIL ***"""
DEADLOCK = """\
//////////////////////////////////////////////////////////////////////////////
// ERROR!!! DEADLOCK DETECTED at 5145000 ns! SIMULATION WILL BE STOPPED! //
//////////////////////////////////////////////////////////////////////////////
/////////////////////////
// Dependence cycle 1:
// (1): Process: {top}_{top}.{reader}_U0
//      Blocked by empty input FIFO '{top}_{top}.{second}_U' written by process '{top}_{top}.{writer}_U0'
// (2): Process: {top}_{top}.{writer}_U0
//      Blocked by full output FIFO '{top}_{top}.{first}_U' read by process '{top}_{top}.{reader}_U0'
////////////////////////////////////////////////////////////////////////
// Totally 1 cycles detected!
////////////////////////////////////////////////////////////////////////
ERROR: [COSIM 212-303] Aborting co-simulation: Deadlock detected.
ERROR: [COSIM 212-344] Rtl simulation failed.
ERROR: [COSIM 212-4] *** C/RTL co-simulation finished: FAIL ***
ERROR: [HLS 200-742] Deadlock detected in co-simulation"""
LICENCE_MISSING = """\
Attempting to get a license for feature 'Synthesis' and/or device '{device}'
WARNING: [Common 17-348] Failed to get the license for feature 'Synthesis' and/or device '{device}'. Explanation: The \
license feature Synthesis could not be found.
ERROR: [Common 17-345] A valid license was not found for feature 'Synthesis' and/or device '{device}'. Please run the \
Vivado License Manager for assistance in determining which features and devices are licensed for your system."""
LICENCE_GOT = """\
Attempting to get a license for feature 'Synthesis' and/or device '{device}'
INFO: [Common 17-349] Got license for feature 'Synthesis' and/or device '{device}'"""
NO_SPACE = "ERROR: [Common 17-1257] Failed to write '{file}': No space left on device"
DATE_TROUBLE = """\
source run_ippack.tcl -notrace
bad lexical cast: source type value could not be interpreted as target
    while executing
"rdi::set_property core_revision 2210181547 {component component_1}"
INFO: [Common 17-206] Exiting Vivado at Tue Oct 18 15:48:19 2022...
ERROR: [IMPL 213-28] Failed to generate IP."""
NO_LIBRARY = (
    "unwrapped/lnx64.o/vitis_hls: error while loading shared libraries: libtinfo.so.5: cannot open shared object file: "
    "No such file or directory"
)
EXPORT_REPORT = """

Implementation tool: Xilinx Vivado v.{release}
Project:             penstock_hls
Solution:            solution1
Device target:       {part}
Report date:         Sun Jan 18 18:55:09 CET 2026

#=== Post-Implementation Resource usage ===
SLICE:            0
LUT:           3281
FF:            4736
DSP:             12
BRAM:             3
URAM:             0
LATCH:            0
SRL:            977
CLB:            814

#=== Final timing ===
CP required:                     {required:.3f}
CP achieved post-synthesis:      1.460
CP achieved post-implementation: {achieved:.3f}
{verdict}
"""


TOTAL = (
    "INFO: [HLS 200-112] Total CPU user time: 12.37 seconds. Total CPU system time: 2.58 seconds. Total elapsed time: "
    "27.92 seconds; peak allocated memory: 660.656 MB."
)


def finished(release: str, command: str) -> str:
    """The line that ends a command, which the tools print after a failure too."""
    if release < "2023.2":
        return (
            f"INFO: [HLS 200-111] Finished Command {command} CPU user time: 16.1 seconds. "
            "CPU system time: 1.2 seconds. Elapsed time: 19.38 seconds; current allocated memory: 397.747 MB."
        )
    return f"INFO: [HLS 200-2161] Finished Command {command} Elapsed time: 00:00:19; Allocated memory: 97.7 MB."


def write_synthesis(folder: str, top: str, part: str, period: float, release: str, damage: str, recording: str) -> None:
    """csynth.xml and the report of the top, as a real run leaves them."""
    os.makedirs(folder, exist_ok=True)
    with gzip.open(recording or os.path.join(RECORDED, "csynth.xml.gz"), "rt") as file:
        text = file.read()
    text = re.sub(rf">{RECORDED_TOP}<", f">{top}<", text).replace(RECORDED_PART, part)
    text = text.replace(f"<Version>{RECORDED_RELEASE}", f"<Version>{release}")
    text = text.replace("<TargetClockPeriod>3.33<", f"<TargetClockPeriod>{period:g}<")
    if damage == "report-garbage":
        text = text[: len(text) // 2]
    _write(os.path.join(folder, "csynth.xml"), text)
    with open(os.path.join(RECORDED, "forward_csynth.rpt"), encoding="utf-8") as file:
        _write(os.path.join(folder, f"{top}_csynth.rpt"), file.read().replace(f"'{RECORDED_TOP}'", f"'{top}'"))


def write_simulation(folder: str, top: str, passed: bool) -> None:
    """The report, and beside it the one from before the simulation, which always says that it failed."""
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(RECORDED, "forward_cosim.rpt"), encoding="utf-8") as file:
        text = file.read()
    before = re.sub(r"Pass\|.*", lambda row: "Fail|" + re.sub(r"\d+", "NA", row.group()[5:]), text)
    _write(os.path.join(folder, "_cosim.rpt"), before.replace("Simulation tool   : xsim.\n", ""))
    _write(os.path.join(folder, f"{top}_cosim.rpt"), text if passed else before)


def write_implementation(folder: str, top: str, part: str, period: float, release: str, met: bool) -> None:
    os.makedirs(os.path.join(folder, "verilog"), exist_ok=True)
    achieved = period * (0.9 if met else 1.2)
    text = EXPORT_REPORT.format(
        release=release,
        part=part,
        required=period,
        achieved=achieved,
        verdict="Timing met" if met else "Timing not met",
    )
    _write(os.path.join(folder, "verilog", f"{top}_export.rpt"), text)


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
