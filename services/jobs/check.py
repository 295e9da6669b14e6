"""The correctness chain of one design, and what of it goes into the report and the package."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter.rows import join_rows, split_rows
from penstock.compiler.package.contents import Expected, ProbeSet
from penstock.compiler.package.report import (
    Accuracy,
    CsimCheck,
    Language,
    LevelCheck,
    ProbeCheck,
    PytorchCheck,
    Verify,
    WholeCheck,
)
from penstock.compiler.package.sections import accuracy_section
from penstock.compiler.pipeline.first_difference import first_difference
from penstock.compiler.pipeline.lower import Lowered
from penstock.compiler.pipeline.probes import gentle, make_probes, stacked
from penstock.compiler.pipeline.verify import (
    TOLERANCES,
    Comparison,
    compare,
    make_inputs,
    stream_values,
    stream_work,
    verify_csim,
    verify_levels,
    verify_pytorch,
)
from penstock.compiler.program import EvaluationSet, Program
from penstock.compiler.runtime.penstock_runtime import PackageError
from penstock.compiler.runtime.penstock_runtime.host import HostGraph, compare_whole
from penstock.dse.rungs.open_rtl import WholeCore
from penstock.profiling.csim import Csim, build_csim
from penstock.profiling.tool_runner import ToolRunner
from penstock.services.jobs.check_lengths import check_lengths
from penstock.services.jobs.check_rtl import check_rtl
from penstock.services.jobs.foretelling import language_section

SayProgress = Callable[[str], None]

# The interpreter is slow beside the compiled design. It answers for as many held-out batches as some seconds
# allow; the number follows from the model's work and not from the clock, so that packages stay deterministic.
MOST_INTERPRETED, LEAST_INTERPRETED = 400, 8
INTERPRETED_WORK = 20_000_000
MOST_STREAM_SLOTS, MOST_STREAM_VALUES = 60_000_000, 600_000_000
"""A minute or two of the stream interpreter. Beyond, the compiled C++, made from the same nests, answers for it."""


@dataclass(frozen=True)
class Checked:
    """What was found, and the interpreter's exact answers that every later execution is held to."""

    verify: Verify
    accuracy: Accuracy | None
    expected: Expected
    language: Language | None = None

    @property
    def passed(self) -> bool:
        levels = all(level.equal for level in (*self.verify.levels, *self.verify.lengths))
        whole = self.verify.whole is None or self.verify.whole.ok
        rtl = self.verify.rtl is None or self.verify.rtl.ok is True
        return levels and whole and rtl and self.verify.csim.equal is True and self.verify.pytorch.ok is not False

    def differences(self) -> str:
        """Which comparisons failed, in a few words, and where the difference from PyTorch begins."""
        verify = self.verify
        wrong = [f"{x.level} against {x.against}" for x in (*verify.levels, *verify.lengths) if not x.equal]
        wrong += ["csim against the interpreter"] if verify.csim.equal is not True else []
        wrong += ["the SystemVerilog against the interpreter"] if verify.rtl and verify.rtl.ok is not True else []
        wrong += [f"the accelerator against PyTorch: {verify.pytorch.note}"] if verify.pytorch.ok is False else []
        wrong += ["the whole with its host part against PyTorch"] if verify.whole and not verify.whole.ok else []
        return "; ".join(wrong)

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        document = {
            "verify": self.verify.model_dump(),
            "accuracy": self.accuracy.model_dump() if self.accuracy else None,
            "language": self.language.model_dump() if self.language else None,
        }
        (folder / "checked.json").write_text(json.dumps(document, indent=1) + "\n")
        arrays: dict[str, Any] = {f"sample_{i}": a for i, a in enumerate(self.expected.samples)}
        if self.expected.evaluation is not None:
            arrays["evaluation"] = self.expected.evaluation
        if (probes := self.expected.probes) is not None:
            arrays |= {f"probe_{i}": a for i, a in enumerate(probes.inputs)}
            arrays |= {f"answer_{i}": a for i, a in enumerate(probes.answers)}
        for number, answers in enumerate(self.expected.lengths):
            arrays |= {f"length{number}_{i}": a for i, a in enumerate(answers)}
        np.savez(folder / "expected.npz", **arrays)

    @staticmethod
    def load(folder: Path) -> Checked:
        document = json.loads((folder / "checked.json").read_text())
        with np.load(folder / "expected.npz", allow_pickle=False) as arrays:
            samples, probes, answers = (_numbered(arrays, kind) for kind in ("sample", "probe", "answer"))
            evaluation = arrays["evaluation"] if "evaluation" in arrays.files else None
            sizes = sum(1 for name in arrays.files if name.startswith("length") and name.endswith("_0"))
            lengths = [list(_numbered(arrays, f"length{number}")) for number in range(sizes)]
        accuracy, language = document["accuracy"], document.get("language")
        return Checked(
            verify=Verify.model_validate(document["verify"]),
            accuracy=Accuracy.model_validate(accuracy) if accuracy else None,
            expected=Expected(
                samples, evaluation, ProbeSet(probes, answers, gentle(len(probes[0]))) if probes else None, lengths
            ),
            language=Language.model_validate(language) if language else None,
        )


def _numbered(arrays: Mapping[str, Array], kind: str) -> tuple[Array, ...]:
    count = sum(1 for name in arrays if name.startswith(f"{kind}_"))
    return tuple(arrays[f"{kind}_{i}"] for i in range(count))


def check_design(
    lowered: Lowered,
    emitted: Path,
    tools: ToolRunner,
    progress: SayProgress = lambda _: None,
    core: WholeCore | None = None,
    *,
    meanwhile: Callable[[], None] = lambda: None,
) -> Checked:
    """Run every level, the compiled C++ and the core's SystemVerilog on samples, random inputs and the held-out set.

    The C++ is compiled and run in a copy: `emitted` stays as it was written. `meanwhile` is done beside its compiler.
    """
    try:
        return _check(lowered, emitted, tools, progress, core, meanwhile)
    except PackageError as error:
        raise PenstockError(
            code="host-part", what=error.what, where=lowered.program.name,
            limit="what runs on the host is held against PyTorch", hint=error.hint,
        ) from error  # fmt: skip


def _check(
    lowered: Lowered,
    emitted: Path,
    tools: ToolRunner,
    progress: SayProgress,
    core: WholeCore | None,
    meanwhile: Callable[[], None],
) -> Checked:
    progress("interpreting every level")
    inputs = make_inputs(lowered)
    too_long = _too_long(lowered, len(inputs))
    with tempfile.TemporaryDirectory(prefix="penstock-csim-") as folder:
        work = Path(folder) / "design"
        shutil.copytree(emitted, work)
        with _meanwhile(lambda: build_csim(work, tools), tools) as built:
            levels = verify_levels(lowered, inputs, streams=not too_long)
            pytorch = verify_pytorch(lowered)
            parts = lowered.program.host
            host = HostGraph(parts.graph, parts.values) if parts is not None else None
            held_out = _HeldOut(lowered, lowered.program.evaluation, host) if lowered.program.evaluation else None
            if held_out is not None:
                progress("interpreting the held-out set")
            interpreted = held_out.interpreted(lowered) if held_out is not None else None
            if lowered.program.text is not None:
                progress("interpreting the held-out text")
            language = language_section(lowered.program)
            meanwhile()
            progress("compiling the C++")
            csim = built()
        progress("running the C++")
        comparisons = [verify_csim(lowered, csim, inputs)]
        answered = csim.run_frames(held_out.frames) if held_out else []
        probes = probe_set(lowered, csim)
        answers = held_out.answers(answered) if held_out else None
        whole = check_whole(lowered, host, csim)
        lengths, at_others = check_lengths(lowered, csim)
    if core is not None:
        progress("running the SystemVerilog")
    rtl = check_rtl(core, inputs, held_out.frames if held_out else [], answered) if core is not None else None
    expected, frames = None, len(inputs)
    if held_out is not None and answers is not None and interpreted is not None:
        comparisons.append(compare("csim", "interpreter", [answers[: len(interpreted)]], [interpreted]))
        expected = held_out.rows(interpreted)
        frames += len(interpreted)
    return Checked(
        verify=Verify(
            csim=_csim_section(comparisons, frames),
            pytorch=_pytorch_section(lowered, pytorch),
            levels=tuple(_level_section(c, too_long) for c in levels),
            lengths=tuple(_level_section(c, "") for c in lengths),
            whole=whole,
            rtl=rtl,
            probes=_probes_section(probes),
        ),
        accuracy=held_out.accuracy(answers) if held_out is not None and answers is not None else None,
        expected=Expected(tuple(_sample_answers(lowered)), expected, probes, at_others),
        language=language,
    )


@contextmanager
def _meanwhile(build: Callable[[], Csim], tools: ToolRunner) -> Iterator[Callable[[], Csim]]:
    """The compiler runs beside what is done here; what is given waits for it. An error here ends it."""
    with ThreadPoolExecutor(1) as beside:
        built = beside.submit(build)
        try:
            yield built.result
        except BaseException:
            tools.cancel_all()
            raise


def _probe_set(inputs: tuple[Array, ...], answers: tuple[Array, ...]) -> ProbeSet | None:
    return ProbeSet(inputs, answers, gentle(len(inputs[0]))) if inputs else None


def probe_set(lowered: Lowered, csim: Csim) -> ProbeSet | None:
    """Inputs that make every weight matter, with the bits that the compiled C++ gives; None without an input."""
    signature = lowered.program.signature
    if not signature.inputs:
        return None
    frames = make_probes(lowered)
    answers = [[v.reshape(p.shape) for v, p in zip(answer, signature.outputs, strict=True)]
               for answer in csim.run_frames(frames)]  # fmt: skip
    return _probe_set(stacked(frames), stacked(answers))


def _probes_section(probes: ProbeSet | None) -> ProbeCheck | None:
    if probes is None:
        return None
    arrays = (*probes.inputs, *probes.answers)
    return ProbeCheck(
        frames=len(probes.inputs[0]), values=sum(a.size for a in probes.answers), bytes=sum(a.nbytes for a in arrays)
    )


def interpreted_batches(lowered: Lowered) -> int:
    work = sum(operation.work for operation in lowered.graph.operations)
    return max(LEAST_INTERPRETED, min(MOST_INTERPRETED, INTERPRETED_WORK // max(1, work)))


class _HeldOut:
    """The held-out set as frames of the accelerator, and its answers as rows again."""

    def __init__(self, lowered: Lowered, evaluation: EvaluationSet, host: HostGraph | None) -> None:
        self.evaluation, self.host, self.program = evaluation, host, lowered.program
        signature = lowered.program.signature
        self.output = signature.outputs[0]
        self.shape = tuple(host.inputs[0].shape) if host else signature.inputs[0].shape
        batches = [[batch] for batch in split_rows(evaluation.inputs, self.shape, evaluation.name)]
        self.kept: list[dict[str, Any]] = []
        if host is not None:
            sent = [host.before(batch) for batch in batches]
            batches, self.kept = [values for values, _ in sent], [kept for _, kept in sent]
        self.frames = [lowered.program.quantise_inputs(batch) for batch in batches]

    def answers(self, outputs: Sequence[Sequence[Array]]) -> Array:
        """One entry a frame, in the shape that the accelerator gives."""
        return np.stack([frame[0].reshape(self.output.shape) for frame in outputs])

    def interpreted(self, lowered: Lowered) -> Array:
        """The answers to the first of its frames, as the interpreter has them."""
        return self.answers([lowered.run_itensor(f) for f in self.frames[: interpreted_batches(lowered)]])

    def rows(self, answers: Array) -> Array:
        """One row an example: what filled up the last frame is dropped."""
        return join_rows(answers, self.evaluation.inputs, self.shape)

    def accuracy(self, answers: Array) -> Accuracy:
        values = [self.program.dequantise_outputs([answer]) for answer in answers]
        if self.host is not None:
            values = [self.host.after(kept, value) for kept, value in zip(self.kept, values, strict=True)]
        return accuracy_section(self.evaluation, self.rows(np.stack([v[0] for v in values])), "simulated")


def check_whole(
    lowered: Lowered, host: HostGraph | None, csim: Callable[[Sequence[Array]], list[Array]]
) -> WholeCheck | None:
    """The model's example inputs through the host and the C++, layer by layer where layers share it, beside PyTorch."""
    program = lowered.program
    layers = program.layers
    around = layers or program.host
    if around is None or not around.inputs:
        return None

    def call(number: int, values: Sequence[Array]) -> list[Array]:
        whole = program.with_states(number, values) if layers else values

        def compute(sent: Sequence[Array]) -> list[Array]:
            answer = csim(program.quantise_inputs(program.all_inputs(number, sent)))
            outputs = [o.reshape(p.shape) for o, p in zip(answer, program.signature.outputs, strict=True)]
            return program.dequantise_outputs(outputs)

        if host is not None:
            last, known = host.take_turns(whole, compute)
            chosen.extend(host.chosen(known))
            found = host.after(known, compute(last))
        else:
            found = compute(whole)
        return program.without_states(found) if layers else found

    chosen: list[Array] = []
    outer = HostGraph(layers.graph, layers.values) if layers else None
    answers = outer.run_whole(around.inputs, call) if outer else call(0, around.inputs)
    judged = compare_whole(answers, around.outputs)
    largest = max((_largest(y) for y in around.outputs if y.dtype.kind == "f"), default=0.0)
    exact = lowered.design.quantize is None
    error = judged["max_abs_error"]
    tolerance = None if error is None else TOLERANCES[lowered.design.quantize] * (largest or 1.0)
    choices = _choices_as_pytorch(program, host, chosen)
    if not exact and choices is not None and choices[1] < choices[0]:
        tolerance = None  # another choice leads to other numbers, and a near tie may fall otherwise
    within = (error is None or tolerance is None or error <= tolerance) and not judged["undefined"]
    return WholeCheck(
        **judged,
        choices=None if choices is None else choices[0],
        choices_equal=None if choices is None else choices[1],
        tolerance=tolerance,
        indices_must_equal=exact,
        ok=within and (not exact or judged["indices_equal"] == judged["indices"]),
    )


def _choices_as_pytorch(program: Program, host: HostGraph | None, chosen: Sequence[Array]) -> tuple[int, int] | None:
    """How many whole numbers the host computes between calls, and how many are those of PyTorch's own numbers."""
    if host is None or not chosen or program.layers is not None or program.samples is None or program.host is None:
        return None
    _, known = host.take_turns(program.host.inputs, lambda _: list(program.samples.outputs if program.samples else ()))
    pairs = list(zip(chosen, host.chosen(known), strict=True))
    return sum(ours.size for ours, _ in pairs), sum(int(np.count_nonzero(a == b)) for a, b in pairs)


def _largest(values: Array) -> float:
    """The largest magnitude; infinities tell nothing of a tolerance."""
    return float(np.max(np.abs(values[np.isfinite(values)]), initial=0.0))


def _sample_answers(lowered: Lowered) -> list[Array]:
    program = lowered.program
    if program.samples is None:
        return []
    outputs = lowered.run_itensor(program.quantise_inputs(program.samples.inputs))
    return [o.reshape(p.shape) for o, p in zip(outputs, program.signature.outputs, strict=True)]


def _too_long(lowered: Lowered, frames: int) -> str:
    """Why the stream level is not interpreted, in a few words; empty where it is."""
    slots, values = stream_work(lowered) * frames, stream_values(lowered) * frames
    if slots > MOST_STREAM_SLOTS:
        return f"{slots} pipeline slots are more than {MOST_STREAM_SLOTS}"
    return f"{values} values in lanes are more than {MOST_STREAM_VALUES}" if values > MOST_STREAM_VALUES else ""


def _level_section(c: Comparison, too_long: str) -> LevelCheck:
    note = f"largest difference {c.max_difference:.3g}" if c.tolerance else "bit for bit"
    if c.level == "itensor" and too_long:
        note += f"; the stream level was not interpreted: {too_long}, its C++ was run instead"
    same = {"equal": c.equal, "values": c.values, "bits_equal": c.bits_equal}
    return LevelCheck(level=c.level, against=c.reference, note=note, **same)


def _csim_section(comparisons: list[Comparison], samples: int) -> CsimCheck:
    values, mismatches = sum(c.values for c in comparisons), sum(c.mismatches for c in comparisons)
    bits_equal = sum(c.bits_equal for c in comparisons)
    return CsimCheck(equal=mismatches == 0, values=values, bits_equal=bits_equal, samples=samples, evidence="simulated")


def _pytorch_section(lowered: Lowered, c: Comparison | None) -> PytorchCheck:
    samples = lowered.program.samples
    if c is None or samples is None:
        return PytorchCheck(max_abs_error=None, tolerance=None, ok=None, note="the model came without samples")
    typical = [port.largest for port in lowered.program.signature.outputs]
    largest = max(*map(_largest, samples.outputs), *typical)
    why = "" if c.equal or lowered.design.quantize is not None else " " + first_difference(lowered)
    return PytorchCheck(
        max_abs_error=c.max_difference,
        tolerance=c.tolerance * (largest or 1.0),
        ok=c.equal,
        samples=1,
        evidence="simulated",
        note=f"The tolerance is {c.tolerance:g} of the largest output{', typical ones too' if any(typical) else ''}."
        + ("" if samples.reference == "PyTorch" else f" The reference is the {samples.reference}: no PyTorch model.")
        + why,
        reference=samples.reference,
    )
