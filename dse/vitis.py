"""What AMD's tools say of a whole design: by synthesis (csynth), or by simulating what was synthesised too (cosim)."""

from __future__ import annotations

from typing import Literal

from compiler.errors import PenstockError
from compiler.pipeline import lower
from compiler.platforms import Platform
from dse.bench import Bench, Measured
from dse.evaluate import Evaluation, Evaluator
from profiling.protocol import Profile, ProfileRequest
from profiling.store import profile_once
from profiling.vitis.detect import find_vitis
from profiling.vitis.profiler import VitisProfiler


def vitis_lacks(platform: Platform) -> str:
    """What this machine lacks for HLS, in words; empty where it can be started. Other vendors' chips are an error."""
    if not platform.part.startswith("xc"):
        raise PenstockError(
            code="no-vitis-route", what=f"AMD's tools know no {platform.title}", where="evidence csynth, cosim",
            limit=f"its part is {platform.part}", hint="take --evidence open-rtl or simulated, or another platform",
        )  # fmt: skip
    tools = find_vitis()
    if tools.form is not None and tools.release is not None:
        return ""
    return "Vitis was not found, or its release is not known (`penstock doctor` says what is there)"


def csynth(evaluator: Evaluator, evaluation: Evaluation, bench: Bench) -> Measured:
    """High-level synthesis of the whole top."""
    return _measured(profile_of(evaluator, evaluation, bench, "csynth"))


def cosim(evaluator: Evaluator, evaluation: Evaluation, bench: Bench) -> Measured:
    """High-level synthesis of the whole top, and its RTL simulated by the tools with data."""
    return _measured(profile_of(evaluator, evaluation, bench, "cosim"))


def profile_of(
    evaluator: Evaluator, evaluation: Evaluation, bench: Bench, evidence: Literal["csynth", "cosim"]
) -> Profile:
    """The kept profile of the design, or what the tools say now."""
    profiler = VitisProfiler(
        find_vitis(), evidence, bench.tools, limits=bench.limits, work_root=bench.work_root, on_line=bench.line
    )
    return profile_once(profiler, _request(evaluator, evaluation), bench.profiles)


def _request(evaluator: Evaluator, evaluation: Evaluation) -> ProfileRequest:
    lowered = lower(evaluator.program, evaluation.design)
    return ProfileRequest(evaluator.program.name, str(lowered.stream), evaluator.platform.name, evaluator.clock_mhz)


def _measured(profile: Profile) -> Measured:
    return Measured(
        profile.evidence, profile.latency_cycles, profile.initial_delay_cycles, profile.interval_cycles,
        profile.resources, profile.fmax_mhz, (profile.key,),
    )  # fmt: skip
