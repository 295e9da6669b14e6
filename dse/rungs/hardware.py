"""The open-rtl rung: whole designs as our own SystemVerilog in Verilator, with the model's data.

Measured designs are kept by content, weights and all: one that was measured before starts no tool.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress

from penstock.compiler.errors import PenstockError
from penstock.compiler.pipeline import Lowered, lower
from penstock.compiler.pipeline.verify import make_inputs, verify_rtl
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.evaluation import Evaluation
from penstock.dse.rungs.inputs import FRAMES
from penstock.dse.rungs.open_rtl import WholeCore, build_all
from penstock.dse.rungs.rung import Bench, Measured
from penstock.profiling.open_rtl.tools import find_cxx, find_verilator
from penstock.profiling.open_rtl.version import route_digest
from penstock.profiling.protocol import Profile, ProfileRequest

TOOL = "penstock-open-rtl-design"
REVISION = "1"
"""Raise it whenever this measures in another way."""


def open_rtl(evaluator: Evaluator, evaluation: Evaluation, bench: Bench) -> Measured:
    """What the design's hardware takes; what it answers must be the interpreter's."""
    found = open_rtl_many(evaluator, [evaluation], bench)[0]
    if isinstance(found, PenstockError):
        raise found
    return found


def open_rtl_many(
    evaluator: Evaluator, candidates: Sequence[Evaluation], bench: Bench
) -> list[Measured | PenstockError]:
    """Several designs at once: programs that are not known yet are built together."""
    version = _version()
    keys: list[str | PenstockError] = []
    designs: dict[str, Lowered] = {}
    for candidate in candidates:
        try:
            lowered = lower(evaluator.program, candidate.design)
        except PenstockError as error:
            keys.append(error)
            continue
        key = _request(evaluator, lowered).key(TOOL, version)
        keys.append(key)
        designs[key] = lowered

    def measure(missing: list[str]) -> dict[str, Profile | PenstockError]:
        return _measure(evaluator, {key: designs[key] for key in missing}, version, bench)

    label = evaluator.program.name if len(designs) == 1 else f"{len(designs)} designs of {evaluator.program.name}"
    found = bench.profiles.fetch_many(list(designs), measure, label=label)
    return [key if isinstance(key, PenstockError) else _measured(found[key]) for key in keys]


def _version() -> str:
    """All that a figure depends on beside the design: the tools, the RTL backend, the schedule."""
    programs = (find_verilator().version, find_cxx().version, route_digest(), str(FRAMES))
    return f"{REVISION}.{hashlib.sha256(chr(10).join(programs).encode()).hexdigest()[:16]}"


def _request(evaluator: Evaluator, lowered: Lowered) -> ProfileRequest:
    """The design with its weights, since what it answers is a part of what is measured."""
    weights = hashlib.sha256()
    for name, values in sorted(lowered.program.params.items()):
        weights.update(f"{name} {values.dtype} {values.shape}\n".encode() + values.tobytes())
    text = f"{lowered.stream}\n// weights {weights.hexdigest()}"
    return ProfileRequest(evaluator.program.name, text, evaluator.platform.name, evaluator.clock_mhz)


def _measure(
    evaluator: Evaluator, designs: Mapping[str, Lowered], version: str, bench: Bench
) -> dict[str, Profile | PenstockError]:
    found: dict[str, Profile | PenstockError] = {}
    cores: dict[str, WholeCore] = {}
    for key, lowered in designs.items():
        try:
            cores[key] = WholeCore.of(lowered, evaluator.platform, bench.tools)
        except PenstockError as error:
            found[key] = error
    bench.progress(f"building {len(cores)} design{'s' if len(cores) != 1 else ''} as hardware")
    with suppress(PenstockError):  # what cannot be built says so when its turn comes
        build_all(list(cores.values()), bench.tools)
    for key, core in cores.items():
        try:
            found[key] = _profile(evaluator, key, core, version)
        except PenstockError as error:
            found[key] = error
    return found


def _profile(evaluator: Evaluator, key: str, core: WholeCore, version: str) -> Profile:
    inputs = make_inputs(core.lowered, random_sets=1)[0]
    run = core.run(inputs, frames=FRAMES)
    core.check(run)
    found = verify_rtl(core.lowered, [core.lowered.run_memories(lambda _: run.outputs, inputs)], [inputs])
    if not found.equal:
        raise PenstockError(
            code="rtl-differs", what=f"{found.mismatches} of {found.values} values differ from the interpreter's",
            where=evaluator.program.name, limit=f"largest difference {found.max_difference:.3g}",
            hint="this is a defect in the RTL backend; please report it",
        )  # fmt: skip
    assert run.latency is not None
    assert run.interval is not None
    assert run.initial_delay is not None
    return Profile(
        key=key, name=evaluator.program.name, tool=TOOL, tool_version=version, evidence=run.evidence,
        clock_mhz=evaluator.clock_mhz, latency_cycles=run.latency, interval_cycles=run.interval,
        initial_delay_cycles=run.initial_delay, ii=None, depth=None, resources=None,
    )  # fmt: skip


def _measured(found: Profile | PenstockError) -> Measured | PenstockError:
    if isinstance(found, PenstockError):
        return found
    return Measured(
        found.evidence, found.latency_cycles, found.initial_delay_cycles, found.interval_cycles, profiles=(found.key,)
    )
