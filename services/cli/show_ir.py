"""`penstock compile --stop-after STAGE --print-ir`: the program after each stage, as text."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.pipeline.readable import readable
from penstock.compiler.pipeline.stages import itensor_passes, lowering_passes, run_passes, stream_passes
from penstock.compiler.runtime.penstock_runtime.package import MANIFEST
from penstock.services.cli.options import CompileTarget, check_output
from penstock.services.cli.stages import Stages

FIRST, QUANTISE, LAST = ("import", "simplify"), "quantise", "hls"
_WRITTEN = {"link", "ir", "hls", "csim", "parameters", "interface.json"}
Begin = Callable[[str], None]


@dataclass(frozen=True)
class Shown:
    """What stands after a stage: MLIR, and at the end C++."""

    stage: str
    text: str


def stage_names(quantize: str | None) -> tuple[str, ...]:
    """Every stage of a compilation, in order. Those between are what the pipeline has."""
    record = Design("", 1.0, {})
    between = (*itensor_passes(record), *stream_passes(record))
    return (*FIRST, *((QUANTISE,) if quantize else ()), *(name for name, _ in between), LAST)


def check_stage(stage: str | None, quantize: str | None) -> None:
    """Refuse a name that no stage bears, before anything slow."""
    names = stage_names(quantize)
    if stage is not None and stage not in names:
        without = " without --quantize" if stage == QUANTISE else ""
        raise PenstockError(
            code="unknown-stage", what=f"there is no stage {stage!r}{without}", where="--stop-after",
            limit="stages: " + ", ".join(names), hint="--print-ir alone shows all of them",
        )  # fmt: skip


def check_ir_output(out: Path) -> None:
    """New, empty, or what an earlier stop left there: never a package, never anything else."""
    names = {path.name for path in out.iterdir()} if out.is_dir() else set[str]()
    if MANIFEST in names or not names <= _WRITTEN:
        raise PenstockError(
            code="output-not-empty", what="the folder holds other files", where=str(out),
            hint="choose a new or empty folder with -o, or print with --print-ir",
        )  # fmt: skip
    if not names:
        check_output(out)


def show_ir(model: str, target: CompileTarget, given: Design | None, stop: str | None, out: Path | None) -> int:
    """Print what stands after a stage (or after all), or, where a folder is given, write it there."""
    check_stage(stop, target.quantize)
    if out is not None:
        check_ir_output(out)
    written: list[Path] = []
    with tempfile.TemporaryDirectory(prefix="penstock-ir-") as folder, Stages().running() as stages:
        shown = walk(model, target, given, out or Path(folder), stages.begin)
        if out is None:
            _print(shown, stop)
        elif stop is not None:
            written = _write(shown, stop, out)
    for path in written:
        print(path)
    return 0


def walk(model: str, target: CompileTarget, given: Design | None, out: Path, begin: Begin) -> Generator[Shown]:
    """The program after every stage, in order; the last one writes the C++ to `out`."""
    from penstock.compiler.analysis.default_design import default_design
    from penstock.compiler.analysis.graph import read_graph
    from penstock.compiler.frontend import import_model
    from penstock.compiler.pipeline.emit import emit_code
    from penstock.compiler.pipeline.lower import Lowered
    from penstock.compiler.pipeline.prepare import prepare
    from penstock.compiler.transforms.canonicalise import simplify
    from penstock.compiler.transforms.pad_dims import PadDims
    from penstock.compiler.transforms.passes import level_of

    begin("importing the model")
    imported = import_model(model)
    yield _module(FIRST[0], imported.module)
    begin("simplify")
    yield _module(FIRST[1], simplify(imported).module)
    if target.quantize:
        begin(QUANTISE)
    program = prepare(imported, target.quantize)
    if target.quantize:
        yield _module(QUANTISE, program.module)
    name, clock = target.platform.name, target.clock_mhz
    design = given or default_design(read_graph(program.module), name, clock, target.quantize)
    padded = program if level_of(program.module) == "tasks" else PadDims(design).run(program)
    module = itensor = padded.module
    begin("lowering")
    for stage in run_passes(module, lowering_passes(module, design)):
        module = stage.module
        itensor = module if level_of(module) == "itensor" else itensor
        yield _module(stage.name, module)
    begin("writing C++")
    emit_code(Lowered(program, design, itensor, module, padded), out, part=target.platform.part, clock_mhz=clock)
    yield Shown(LAST, (out / "hls" / "penstock_top.cpp").read_text())


def _print(shown: Generator[Shown], stop: str | None) -> None:
    """The stage that is named, or all."""
    for one in shown:
        if stop in (None, one.stage):
            print(f"// ----- {one.stage} -----\n{one.text}", flush=True)
        if stop == one.stage:
            return
    _check_reached(stop)


def _write(shown: Generator[Shown], stop: str, out: Path) -> list[Path]:
    """Every stage up to the one that is named, numbered, in the folder's ir/."""
    written: list[Path] = []
    for number, one in enumerate(shown, start=1):
        path = out / "ir" / f"{number:02d}-{one.stage}.mlir"
        if one.stage == LAST:
            path = out / "hls" / "penstock_top.cpp"
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(one.text)
        written.append(path)
        if one.stage == stop:
            return written
    _check_reached(stop)
    return written


def _check_reached(stop: str | None) -> None:
    """All stages have passed: one that was asked for and did not come is none of this model's."""
    if stop is not None:
        raise PenstockError(
            code="unknown-stage", what=f"this model has no stage {stop!r}: its author wrote the kernels",
            where="--stop-after", hint="--print-ir alone shows all that it has",
        )  # fmt: skip


def _module(stage: str, module: ModuleOp) -> Shown:
    return Shown(stage, readable(module))
