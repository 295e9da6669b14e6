"""What AMD's tools say of a whole design: by synthesis (csynth), or by simulating what was synthesised too (cosim)."""

from __future__ import annotations

from penstock.compiler.errors import PenstockError
from penstock.compiler.evidence import Evidence, by_route
from penstock.compiler.pipeline import lower
from penstock.compiler.platforms import Platform
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.rungs.inputs import simulate_inputs, steady_interval
from penstock.dse.rungs.rung import Bench, Measured, RungTimes
from penstock.profiling.protocol import Profile, ProfileRequest, ProfilingError
from penstock.profiling.store import profile_once
from penstock.profiling.vitis.detect import find_vitis
from penstock.profiling.vitis.kept_report import report_from_json
from penstock.profiling.vitis.profiler import VitisProfiler
from penstock.profiling.vitis.records import SynthesisReport
from penstock.profiling.vitis.retime_design import RetimedDesign, retime_design

VITIS_RUNGS = by_route("vitis")


def vitis_lacks(platform: Platform) -> str:
    """What this machine lacks for HLS, in words; empty where it can be started. Other vendors' chips are an error."""
    if platform.family.route != "vitis":
        raise PenstockError(
            code="no-vitis-route", what=f"AMD's tools know no {platform.title}",
            where="evidence " + ", ".join(VITIS_RUNGS), limit=f"its part is {platform.part}",
            hint="take --evidence open-rtl or simulated, or another platform",
        )  # fmt: skip
    tools = find_vitis()
    if tools.form is not None and tools.release is not None:
        return ""
    return "Vitis was not found, or its release is not known (`penstock doctor` says what is there)"


def csynth(evaluator: Evaluator, evaluation: Evaluation, bench: Bench) -> Measured:
    """High-level synthesis of the whole top."""
    return _measured(evaluator, evaluation, profile_of(evaluator, evaluation, bench, "csynth"))


def cosim(evaluator: Evaluator, evaluation: Evaluation, bench: Bench) -> Measured:
    """High-level synthesis of the whole top, and its RTL simulated by the tools with data."""
    return _measured(evaluator, evaluation, profile_of(evaluator, evaluation, bench, "cosim"))


def profile_of(evaluator: Evaluator, evaluation: Evaluation, bench: Bench, evidence: Evidence) -> Profile:
    """The kept profile of the design, or what the tools say now."""
    profiler = VitisProfiler(
        find_vitis(), "cosim" if evidence == "cosim" else "csynth", bench.tools, limits=bench.limits,
        work_root=bench.work_root, results=bench.results, on_line=bench.line,
    )  # fmt: skip
    text = str(lower(evaluator.program, evaluation.design).stream)
    request = ProfileRequest(evaluator.program.name, text, evaluator.platform.name, evaluator.clock_mhz)
    return profile_once(profiler, request, bench.profiles)


def retimed(evaluator: Evaluator, evaluation: Evaluation, profile: Profile) -> RetimedDesign:
    """The design's schedules with the II and depth that synthesis reached, as its kept report has them."""
    return retime_design(evaluator.assembler.network(evaluation.design), kept_report(profile))


def kept_report(profile: Profile) -> SynthesisReport:
    if profile.report is None:
        raise ProfilingError(
            "report-missing", what="the kept profile has no synthesis report", where=profile.name,
            hint="this is a defect; please report it",
        )  # fmt: skip
    return report_from_json(profile.report)


def _measured(evaluator: Evaluator, evaluation: Evaluation, profile: Profile) -> Measured:
    """The tool's own figures, and beside them the simulator's on the network as it was synthesised."""
    network = retimed(evaluator, evaluation, profile).network
    run = simulate_inputs(network, evaluator.platform, evaluator.clock_mhz)
    if run.deadlock is not None:
        raise ProfilingError(
            "deadlock", what=f"as it was synthesised, the design stops for ever: {run.deadlock}", where=profile.name,
            hint="deepen a channel of the cycle, or leave depths to the tool",
        )  # fmt: skip
    return Measured(
        profile.evidence, profile.latency_cycles, profile.initial_delay_cycles, profile.interval_cycles,
        profile.resources, profile.fmax_mhz, (profile.key,),
        RungTimes(run.latency, run.initial_delay, steady_interval(run)),
    )  # fmt: skip
