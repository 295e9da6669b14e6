"""What the stand-in prints: lines as the real tools print them."""

from __future__ import annotations

from tests.standin.analysis import Loop
from tests.standin.generations import Style
from tests.standin.report_xml import Synthesis

BANNER = """
****** {program} v{release} (64-bit)
  **** SW Build {build}
    ** {owner}
"""
CSYNTH_START = """\
INFO: [HLS 200-10] Analyzing design file '{source}' ...
INFO: [HLS 200-111] Finished Source Code Analysis and Preprocessing: CPU user time: 0.49 seconds. CPU system time: \
0.76 seconds. Elapsed time: 1.63 seconds; current allocated memory: 660.043 MB."""
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
LICENCE_LOST = "ERROR: [Common 17-184] Lost connection to license server. (code -15,570,11)"
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


def banner(program: str, style: Style) -> str:
    return BANNER.format(program=program, release=style.release, build=style.build, owner=style.owner)


def synthesised(design: Synthesis) -> str:
    """What csynth says of each module and pipeline, and at its end."""
    lines = ["INFO: [HLS 200-777] Using interface defaults for 'Vitis' flow target."]
    for module in design.modules:
        lines += ["INFO: [HLS 200-10] " + "-" * 64, f"INFO: [HLS 200-42] -- Implementing module '{module.name}'"]
        for loop in module.loops:
            lines += _pipelined(loop)
        lines.append(f"INFO: [RTGEN 206-100] Finished creating RTL model for '{module.name}'.")
    lines.append("INFO: [HLS 200-790] **** Loop Constraint Status: All loop constraints were satisfied.")
    lines.append(f"INFO: [HLS 200-789] **** Estimated Fmax: {1000 / design.estimated:.2f} MHz")
    return "\n".join(lines)


def _pipelined(loop: Loop) -> list[str]:
    if loop.ii is None:
        return [line for inner in loop.inside for line in _pipelined(inner)]
    found = f"Target II = 1, Final II = {loop.ii}, Depth = {loop.depth}, loop '{loop.name}'"
    return [
        f"INFO: [SCHED 204-61] Pipelining loop '{loop.name}'.",
        f"INFO: [HLS 200-1470] Pipelining result : {found}",
    ]
