"""How steps end by what their logs say: exit codes are not asked, and every ending has its cause."""

from __future__ import annotations

import pytest

from penstock.profiling.vitis.deadlock import find_deadlock
from penstock.profiling.vitis.log import STEPS, ToolStep, judge_log
from penstock.profiling.vitis.reading import LogWindow

SYNTHESISED = "INFO: [HLS 200-789] **** Estimated Fmax: 144.68 MHz\n"
SIMULATED = "INFO: [COSIM 212-1000] *** C/RTL co-simulation finished: PASS ***\n"
FAILED = "ERROR: [COSIM 212-4] *** C/RTL co-simulation finished: FAIL ***\n"
NO_LICENCE = "ERROR: [Common 17-345] A valid license was not found for feature 'Synthesis' and/or device 'xczu9eg'\n"
NOT_COMPILED = "ERROR: [SIM 211-100] 'csim_design' failed: compilation error(s).\n"
NOT_SYNTHESISED = "ERROR: [HLS 200-1715] Encountered problem during source synthesis\n"
TOO_SLOW = "CRITICAL WARNING: [Route 35-39] The design did not meet timing requirements.\n"
ROUTED = "INFO: [v++ 60-586] Created design.xclbin\n"


def judged(step: ToolStep, text: str, source: str | None = None):
    return judge_log(step, LogWindow(text, "", 0), source)


@pytest.mark.parametrize(
    ("step", "text"),
    [
        ("csim", "INFO: [SIM 211-1] CSim done with 0 errors.\n"),
        ("csynth", SYNTHESISED),
        ("csynth", "INFO: [HLS 200-2161] Finished Command csynth_design Elapsed time: 00:00:19\n"),
        ("cosim", SIMULATED),
        ("link", ROUTED),
        ("csynth", "INFO: [Common 17-349] Got license for feature 'Synthesis'\n" + SYNTHESISED),
        ("csynth", "WARNING: license will expire in 3 days\n" + SYNTHESISED),
    ],
)
def test_a_step_that_says_so_is_done(step: ToolStep, text: str):
    outcome = judged(step, text)
    assert outcome.ok
    assert not outcome.retry


@pytest.mark.parametrize(
    ("step", "text", "kind", "words"),
    [
        ("csynth", "ERROR: [HLS 214-298] struct with pointer\n" + SYNTHESISED, "source-error", "struct with pointer"),
        ("csynth", "ERROR: [HLS 200-970] Internal stream 'v' failed dataflow checking\n", "source-error", "stream 'v'"),
        ("csim", "ERROR: [SIM 211-100] 'csim_design' failed: nonzero return value.\n", "csim-mismatch", "nonzero"),
        (
            "csim",
            "../../design.cpp:60:46: error: no member 'x'\n" + NOT_COMPILED,
            "source-error",
            "no member 'x'",
        ),
        (
            "cosim",
            "ERROR: [COSIM 212-361] C TB post check failed, nonzero return value\n" + FAILED,
            "cosim-failed",
            "post check",
        ),
        ("cosim", FAILED, "cosim-failed", "FAIL"),
        ("cosim", "Out of memory on request for a fresh 8388608 bytes\n" + FAILED, "out-of-memory", "fresh 8388608"),
        ("csynth", '/opt/t/bin/loader: line 313: 4242 Killed        "$PROG" "$@"\n', "out-of-memory", "Killed"),
        ("csynth", "terminate called after throwing an instance of 'std::bad_alloc'\n", "out-of-memory", "bad_alloc"),
        ("csynth", NO_LICENCE, "licence", "valid license"),
        (
            "link",
            "ERROR: [v++ 60-0] License checkout failed: cannot connect to license server\n",
            "licence",
            "checkout",
        ),
        ("csynth", "couldn't write file: No space left on device\n", "disk-full", "No space"),
        ("link", "ERROR: [v++ 60-1] Disk quota exceeded\n" + NO_LICENCE, "disk-full", "quota"),
        ("link", TOO_SLOW + ROUTED, "timing-not-met", "timing"),
        (
            "csynth",
            "ERROR: [HLS 200-1023] Part 'xcu280-fsvh2892-2L-e' is not installed.\n",
            "bad-target",
            "not installed",
        ),
        ("link", "ERROR: [v++ 60-1258] No valid platform was found that matches u999\n", "bad-target", "u999"),
        ("link", "ERROR: [v++ 60-1299] The specified platform is not supported. Platform\n", "bad-target", "platform"),
        ("link", "ERROR: [v++ 60-602] Failed to find the platform 'u999'\n", "bad-target", "u999"),
        ("csynth", 'invalid command name "open_projcet"\n', "tool-failed", "open_projcet"),
        ("csynth", "ERROR: [vitis-run 60-1520] unrecognised option '-version'\n", "tool-failed", "-version"),
        ("csynth", "INFO: [HLS 200-10] Running\n", "tool-failed", "ends without saying"),
        ("csynth", "", "tool-failed", "ends without saying"),
    ],
)
def test_every_failure_has_its_kind_and_cause(step: ToolStep, text: str, kind: str, words: str):
    outcome = judged(step, text)
    assert outcome.kind == kind
    assert words in outcome.message
    assert outcome.retry == (kind == "licence")
    error = outcome.error()
    assert error.kind == kind
    assert error.code == f"profile-{kind}"
    assert error.hint


def test_a_bitstream_whose_clock_was_slowed_is_good_and_says_so():
    slowed = (
        "WARNING: One or more timing paths failed timing targeting 300 MHz for kernel clock 'clk'. "
        "The frequency is being automatically changed to 252.3 MHz to enable proper functionality\n"
    )
    outcome = judged("link", TOO_SLOW + slowed + ROUTED)
    assert outcome.ok
    assert "252.3 MHz" in outcome.message
    assert judged("link", TOO_SLOW + slowed).kind == "timing-not-met"


SOURCE = """\
#include "penstock.h"

// Layer fc1
//   16 slots at II = 1
static void fc1(hls::stream<word> &in) {
    float x;
}

// Loads weight.fc2
static void load_fc2() {
    int bad;
}
"""


def test_an_error_names_the_line_and_layer_of_our_source():
    text = "ERROR: [HLS 207-2916] no such thing (work/design.cpp:11:9)\n" + NOT_SYNTHESISED
    place = judged("csynth", text, SOURCE).place
    assert place is not None
    assert (place.file, place.line, place.layer) == ("design.cpp", 11, "weight.fc2")
    assert "layer weight.fc2" in judged("csynth", text, SOURCE).error().where
    other = judged("csynth", text.replace(":11:9", ":6:1"), SOURCE).place
    assert other is not None
    assert other.layer == "fc1"


DEADLOCK = """\
// ERROR!!! DEADLOCK DETECTED at 217790000 ns! SIMULATION WILL BE STOPPED! //
/////////////////////////
// Dependence cycle 1:
// (1): Process: top_top.core_U0.merge_U0
//      Blocked by empty input FIFO 'top_top.skip_U' written by process 'top_top.fork_U0'
// (2): Process: top_top.fork_U0

Info: /OSCI/SystemC: Simulation stopped by user.
//      Blocked by full output FIFO 'top_top.long_way_U' read by process 'top_top.core_U0.merge_U0'
// Totally 1 cycles detected!
ERROR: [COSIM 212-303] Aborting co-simulation: RTL simulation failed.
ERROR: [HLS 200-742] Deadlock detected in co-simulation
"""


def test_a_deadlock_is_told_in_the_names_of_our_tasks_and_fifos():
    outcome = judged("cosim", DEADLOCK)
    assert outcome.kind == "deadlock"
    assert outcome.deadlock is not None
    ((first, second),) = outcome.deadlock.cycles
    assert (first.task, first.channel, first.reason, first.other) == ("merge", "skip", "empty", "fork")
    assert (second.task, second.channel, second.reason, second.other) == ("fork", "long_way", "full", "merge")
    assert outcome.deadlock.channels == ("skip", "long_way")
    assert "fork waits for long_way, which is full (read by merge)" in outcome.message


def test_the_older_form_of_a_deadlock():
    text = (
        "// ERROR!!! DEADLOCK DETECTED at 1292000 ns!\n// Dependence cycle 1:\n// (1): Process: fft.rank_9_U0\n"
        "//      Channel: fft.a_U, FULL\n//      Channel: fft.b_U, FULL\n// (2): Process: fft.rank_6_U0\n"
        "//      Channel: fft.c_U, EMPTY\n"
    )
    deadlock = find_deadlock(text)
    assert deadlock is not None
    assert [(b.task, b.channel, b.reason) for b in deadlock.cycles[0]] == [
        ("rank_9", "a", "full"), ("rank_9", "b", "full"), ("rank_6", "c", "empty"),
    ]  # fmt: skip


def test_a_deadlock_without_its_cycle_is_still_one():
    outcome = judged("cosim", "ERROR: [HLS 200-742] Deadlock detected in co-simulation\n")
    assert outcome.kind == "deadlock"
    assert "names no cycle" in outcome.message


@pytest.mark.parametrize("step", STEPS)
def test_no_step_is_done_by_another_steps_words(step: ToolStep):
    assert not judged(step, "INFO: [HLS 200-10] Running in batch mode\n").ok


def test_what_a_failed_simulation_prints_last_is_kept():
    tail = "\n".join(f"line {number}" for number in range(100))
    assert judged("cosim", tail).log_tail.splitlines() == [f"line {number}" for number in range(88, 100)]
