"""Everything that can be said of a model in seconds: what would run where, what is refused, how large it is."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod

from penstock.compiler.analysis.graph import Graph, read_graph
from penstock.compiler.dialects.types import tensor_bits, tensor_type
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend import check_weights, import_model
from penstock.compiler.lengths import Length, parse_lengths
from penstock.compiler.package.sections import host_section, port_section
from penstock.compiler.package.verdict import AcceleratorOperation, Estimate, ModelSize, ModelVerdict, Refusal
from penstock.compiler.pipeline import prepare
from penstock.compiler.pipeline.check_quantised import check_quantised, errors_of
from penstock.compiler.pipeline.layer_numbers import LayerError
from penstock.compiler.platforms import Platform
from penstock.compiler.program import Program
from penstock.compiler.reference import LibraryReference, ZooReference, around, parse_reference
from penstock.compiler.transforms.passes import level_of
from penstock.dse.bounds.reachable import check_reachable
from penstock.dse.evaluation.evaluate import Evaluator
from penstock.dse.evaluation.least_room import check_room
from penstock.services.jobs.model import check_reference
from penstock.services.jobs.model_dims import lengths_note

_MOST_READ = 1 << 26
"""Parameters whose numbers are looked at in passing; of larger models only the shapes are, and a note says so."""
_BRAM18_BYTES, _URAM_BYTES = 18 * 1024 // 8, 288 * 1024 // 8


def look_at(
    model: str,
    platform: Platform,
    clock_mhz: float,
    quantize: str | None,
    stage: Callable[[str], None],
    dims: Sequence[str] = (),
) -> ModelVerdict:
    """A reference to a model that is not there raises; all other refusals are in the verdict."""
    check_reference(model, dims)
    lengths = parse_lengths(dims)
    return judge(model, lambda: _imported(model, quantize, lengths), platform, clock_mhz, quantize, stage)


def judge(
    model: str,
    imported: Callable[[], Program],
    platform: Platform,
    clock_mhz: float,
    quantize: str | None,
    stage: Callable[[str], None],
) -> ModelVerdict:
    """The same of a program that comes from elsewhere; `model` is what it is called."""
    began = time.monotonic()
    found = ModelVerdict(
        model=model, platform=platform.name, clock_mhz=clock_mhz, quantize=quantize, compiles=False, seconds=0
    )
    try:
        stage("importing the model")
        program = imported()
        found = found.model_copy(update=_imported_facts(program))
        stage("looking for what is not supported")
        canonical = prepare(program, quantize)
        errors: dict[str, LayerError] = {}
        if quantize is not None:
            check_quantised(program, canonical, quantize)
            errors = {one.layer: one for one in errors_of(program, quantize)} if program.samples else {}
        graph = read_graph(canonical.module)
        stage("modelling a first design")
        evaluator = Evaluator.create(canonical, platform.name, clock_mhz=clock_mhz, quantize=quantize)
        check_reachable(evaluator)
        check_room(evaluator)
        size = _size(graph, platform, evaluator.space.weights)
        if level_of(canonical.module) == "tasks":
            size = size.model_copy(update=_tables(canonical))
        found = found.model_copy(update={"size": size, "accelerator": _operations(graph, errors)})
        estimate = _estimate(evaluator)
        notes = (*program.notes, *lengths_note(program), *_notes(estimate, platform, quantize))
        found = found.model_copy(update={"estimate": estimate, "notes": notes, "compiles": True})
    except PenstockError as error:
        found = found.model_copy(update={"refusals": tuple(_refusal(e) for e in (error, *error.others))})
    return found.model_copy(update={"seconds": round(time.monotonic() - began, 2)})


def _imported(model: str, quantize: str | None, dims: Sequence[Length]) -> Program:
    """By its shapes where that does; numbers are needed to quantise, and by models that look at them."""
    if quantize is None:
        try:
            program = import_model(model, dims=dims, weights=False)
        except Exception:  # noqa: BLE001  (what only fails without numbers is no refusal: the last line says)
            pass
        else:
            return program if program.has_weights else _with_its_numbers_seen(model, program, dims)
    return import_model(model, dims=dims)


def _with_its_numbers_seen(model: str, program: Program, dims: Sequence[Length]) -> Program:
    """NaN weights and those on the meta device have good shapes; numbers that Penstock draws itself are good too."""
    reference = around(parse_reference(model))
    if isinstance(reference, LibraryReference | ZooReference) and "weights" not in dict(reference.options):
        return program
    if sum(value.size for value in program.params.values()) <= _MOST_READ:
        check_weights(model, dims)
        return program
    note = f"the weights' numbers were not looked at: the model has more than {_MOST_READ:,}"
    return replace(program, notes=(*program.notes, note))


def _imported_facts(program: Program) -> dict[str, object]:
    return {
        "name": program.name,
        "inputs": tuple(port_section(p) for p in program.signature.inputs),
        "outputs": tuple(port_section(p) for p in program.signature.outputs),
        "host": host_section(program.host),
    }


def _size(graph: Graph, platform: Platform, weights_in: str) -> ModelSize:
    weights = [value for value in graph.arguments if graph.is_param(value)]
    limits = platform.limits
    return ModelSize(
        parameters=sum(prod(tensor_type(value).get_shape()) for value in weights),
        weight_bytes=sum(map(tensor_bits, weights)) // 8,
        operations=len(graph.operations),
        work=sum(operation.work for operation in graph.operations),
        weights_in=weights_in,
        on_chip_bytes=limits.bram18 * _BRAM18_BYTES + limits.uram * _URAM_BYTES,
    )


def _tables(program: Program) -> dict[str, object]:
    """A task program's weights are numbers of its text, which lie on the chip whatever a design says."""
    return {
        "parameters": sum(table.size for table in program.params.values()),
        "weight_bytes": sum(table.nbytes for table in program.params.values()),
        "weights_in": "rom",
    }


def _operations(graph: Graph, errors: Mapping[str, LayerError]) -> tuple[AcceleratorOperation, ...]:
    """`errors` by layer, as far as a layer of this name is there before and after quantising."""

    def one(layer: str, trips: tuple[int, ...], *, reduces: bool) -> AcceleratorOperation:
        found = errors.get(layer)
        shares = {} if found is None else {"error": round(found.share, 6), "error_added": round(found.added, 6)}
        return AcceleratorOperation(layer=layer, trips=trips, reduces=reduces, **shares)

    return tuple(one(op.layer, op.trips, reduces=bool(op.reductions)) for op in graph.operations)


def _estimate(evaluator: Evaluator) -> Estimate:
    evaluation = evaluator.evaluate(evaluator.space.default_params())
    latency = evaluation.figures.latency
    return Estimate(
        evidence=evaluation.evidence,
        latency_cycles=latency,
        latency_us=latency / evaluator.clock_mhz,
        shares={name: round(share, 4) for name, share in evaluation.shares.items()},
        fits=evaluation.feasible,
    )


def _notes(estimate: Estimate, platform: Platform, quantize: str | None) -> tuple[str, ...]:
    if estimate.fits:
        return ()
    name, share = max(estimate.shares.items(), key=lambda item: item[1])
    helps = "a larger platform helps" if quantize else "eight bits (--quantize w8a8) or a larger platform help"
    return (
        f"the first design takes {share:.0%} of {name} of {platform.title}: a search looks for one that fits; {helps}",
    )


def _refusal(error: PenstockError) -> Refusal:
    return Refusal(code=error.code, what=error.what, where=error.where, limit=error.limit, hint=error.hint)
