"""The way of a loaded model: export, lift, lower, name, and keep PyTorch's own answers beside it."""

# numpy's and torch's functions have few types
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownMemberType=false

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch.export import ExportedProgram
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument

from penstock.compiler.arrays import Array
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.export import SayStage, check_operations, export, ignore_stage, run_eagerly
from penstock.compiler.frontend.fold_batch_norms import fold_batch_norms
from penstock.compiler.frontend.given_tensors import check_tensors, in_float32
from penstock.compiler.frontend.host_regions import refuse_double_precision
from penstock.compiler.frontend.lift import Argument, lift_weights
from penstock.compiler.frontend.loaded import LoadedEvaluation, LoadedModel
from penstock.compiler.frontend.lower import lower
from penstock.compiler.frontend.name_layers import name_layers
from penstock.compiler.frontend.origin import Origin
from penstock.compiler.frontend.origins import mark_origins
from penstock.compiler.frontend.repeated_layers import RepeatedLayers, find_layers
from penstock.compiler.frontend.results import name_results
from penstock.compiler.frontend.split_host import Split, split_off_host, values_read
from penstock.compiler.frontend.take_state import TakenState, first_results, take_state
from penstock.compiler.frontend.whole_model import Whole, whole_of
from penstock.compiler.frontend.with_text import with_text
from penstock.compiler.interpreter.rows import join_rows, split_rows
from penstock.compiler.layers import Layers
from penstock.compiler.names import Names
from penstock.compiler.program import EvaluationSet, Port, Program, Samples, Signature
from penstock.compiler.runtime.penstock_runtime import PackageError
from penstock.compiler.runtime.penstock_runtime.host import LAYER, HostGraph
from penstock.compiler.state import KeptState


@dataclass(frozen=True)
class _Exported:
    """A model's graph and its weights, just before MLIR."""

    model: LoadedModel
    program: ExportedProgram
    samples: Samples | None
    names: list[str]
    results: list[torch.Tensor]
    split: Split | None
    origins: dict[int, Origin]
    arguments: list[Argument]
    params: dict[str, Array]
    taken: list[TakenState]

    @property
    def initial(self) -> dict[str, Array]:
        """What each buffer that forward changes holds before the first call."""
        return {one.name: _arrays((one.initial,))[0] for one in self.taken}


def import_loaded(model: LoadedModel, begin: SayStage = ignore_stage) -> Program:
    model = in_float32(model)
    check_tensors(model)
    return with_text(_lowered(_exported(model, begin), begin), model, begin)


def import_layers(
    model: LoadedModel, path: str, begin: SayStage = ignore_stage, *, only_first: bool = False
) -> Program:
    """One of the layers of one form at `path`, with the weights of all and the model around them.

    Without a path the largest repetition of the model is taken. With `only_first` the weights are that layer's alone.
    """
    model = in_float32(model)
    check_tensors(model)
    begin("find the layers")
    layers, answers = find_layers(model, path)
    whole = whole_of(model, layers)
    first = _exported(layers.model_of(0, model), begin)
    program = _lowered(first, begin)
    numbers = range(1 if only_first else len(layers.names))
    found = [first, *(_exported(layers.model_of(n, model)) for n in numbers[1:])]
    dropped = ["the held-out set is left out: it is for models that are one accelerator"] if model.evaluation else []
    whole_program = replace(
        program,
        notes=(*program.notes, *dropped, _said(layers, whole)),
        layers=Layers(
            layers.path,
            layers.names,
            tuple({name: one.params[name] for name in program.params} for one in found),
            tuple(one.initial for one in found),
            whole.graph,
            whole.values,
            tuple((_arrays(c.tensors), _arrays(tuple(x for x in c.outputs if x is not None))) for c in layers.calls),
            _arrays(model.example_inputs),
            _arrays(answers),
        ),
        calibration=_arrays(model.typical),
    )
    return with_text(whole_program, model, begin)


def sample_of(model: LoadedModel, path: str | None) -> Samples:
    """What the accelerator is given on the example inputs, and what PyTorch answers: of the first layer at a path."""
    model = in_float32(model)
    found = _exported(model if path is None else find_layers(model, path)[0].model_of(0, model))
    sample = _between(found.split) if found.split else found.samples
    assert sample is not None, "without weights nobody asks"
    return sample


def _said(layers: RepeatedLayers, whole: Whole) -> str:
    around = sum(node["op"] not in (LAYER, "getitem") for node in whole.graph["nodes"])
    return (
        f"{len(layers.names)} layers ({layers.names[0]} to {layers.names[-1]}) share this accelerator, one call each: "
        f"figures are of one call. {around} operations around them run on the host."
    )


def _said_of_turns(turns: int, model: LoadedModel) -> list[str]:
    """`turns` are those of the host between two calls."""
    if not turns:
        return []
    said = [
        f"The host computes between calls of the accelerator, which is called {turns + 1} times for one answer: "
        "figures are of one call. Each call computes all of the accelerator's part; what the host has not made yet is "
        "zero in it."
    ]
    if model.evaluation:
        said.append("The held-out set is left out: its accuracy is not measured of a model with several calls.")
    return said


def _exported(model: LoadedModel, begin: SayStage = ignore_stage) -> _Exported:
    samples = outputs = None
    if model.has_weights:
        begin("run in PyTorch")
        outputs = run_eagerly(model, model.example_inputs)
        samples = Samples(_arrays(model.example_inputs), _arrays(outputs))
        model = _without_batch_norms(model, outputs)
    else:
        check_operations(model)
    program = export(model, begin)
    names = name_results(program)
    taken, bounds = take_state(program, model)
    if taken:
        model = replace(model, example_inputs=(*(one.initial for one in taken), *model.example_inputs))
        names = [*(Names(names).take(f"{one.node}_new") for one in taken), *names]
    if taken and outputs is not None:
        outputs = (*first_results(program, taken, model), *outputs)
        samples = Samples(_arrays(model.example_inputs), _arrays(outputs))
    split = split_off_host(program, model, outputs, names)
    if split is not None:
        split = _with_bounds(split, bounds)
        _check_state(split, taken, model)
    refuse_double_precision(program, model.name)
    results = _results(program)
    origins = mark_origins(program)
    arguments, params = lift_weights(program, model)
    return _Exported(model, program, samples, names, results, split, origins, arguments, params, taken)


def _lowered(found: _Exported, begin: SayStage) -> Program:
    model, split, arguments, samples = found.model, found.split, found.arguments, found.samples
    module = lower(found.program, found.origins, model.name, begin)
    places = name_layers(module, found.origins)
    _write_arguments(module, arguments)
    used = {argument.name for argument in arguments}
    inputs = split.inputs if split else model.example_inputs
    ports = [argument.name for argument in arguments if argument.kind == "input"]
    turns = len(split.parts.graph.get("between", ())) if split else 0
    return Program(
        name=model.name,
        module=module,
        params={name: value for name, value in found.params.items() if name in used},
        signature=_signature(arguments, inputs, found.results, _named(found.names, split)),
        samples=_between(split) if split else samples,
        evaluation=_evaluate(model, samples) if model.evaluation and samples and not turns else None,
        calibration=_calibration(found),
        host=split.parts if split else None,
        notes=(*model.notes, *_said_of_turns(turns, model)),
        has_weights=model.has_weights,
        states=tuple(_state(found, number, ports) for number in range(len(found.taken))),
        initial=found.initial,
        places=places,
    )


def _state(found: _Exported, number: int, ports: list[str]) -> KeptState:
    """Where a buffer enters and leaves: the accelerator itself, where the host neither makes nor reads it."""
    one = found.taken[number]
    if found.split is None:
        return KeptState(one.name, number, number, ports[number], number)
    graph = found.split.parts.graph
    entering, leaving = graph["accelerator"]["inputs"], graph["accelerator"]["outputs"]
    result = graph["results"][number]
    touched = values_read([*graph["before"], *graph["after"]])
    direct = one.node in entering and one.node not in touched
    direct = direct and result in leaving and result not in touched and graph["results"].count(result) == 1
    port: int | None = ports[entering.index(one.node)] if direct else None
    place: int | None = leaving.index(result) if direct else None
    return KeptState(one.name, number, number, port, place, one.dim, one.positions)


def _check_state(split: Split, taken: list[TakenState], model: LoadedModel) -> None:
    """What is kept from call to call would be changed by each of several calls."""
    between = split.parts.graph.get("between")
    if between and taken:
        first = between[0]["operations"][0]
        raise PenstockError(
            code="host-in-the-middle",
            what=f"{first['op']} in layer {first['layer']!r} can only run on the host, between two calls of the "
            f"accelerator, and the model keeps {taken[0].name!r} from call to call",
            where=model.reference, limit="a model that keeps state calls its accelerator once for each answer",
            hint="pass the state in and out of forward, or do the host's step outside of the model",
        )  # fmt: skip


def _with_bounds(split: Split, bounds: dict[str, int]) -> Split:
    """Rows are written at places that the host computes: it refuses those that are not there."""
    known = {node["name"] for node in split.parts.graph["before"]}
    positions = {name: size for name, size in bounds.items() if name in known}
    if not positions:
        return split
    return replace(split, parts=replace(split.parts, graph={**split.parts.graph, "positions": positions}))


def _between(split: Split) -> Samples | None:
    """PyTorch's values where the accelerator begins and ends."""
    return None if split.outputs is None else Samples(_arrays(split.inputs), _arrays(split.outputs))


def _without_batch_norms(model: LoadedModel, outputs: tuple[torch.Tensor, ...]) -> LoadedModel:
    """With batch norms folded, if it answers as before: a norm may be of another dim than the layer's channels."""
    module = fold_batch_norms(model.module)
    if module is model.module:
        return model
    folded = replace(model, module=module)
    try:
        answers = run_eagerly(folded, model.example_inputs)
        torch.testing.assert_close(answers, outputs, rtol=1e-3, atol=1e-4)
    except (AssertionError, PenstockError):
        return model
    return folded


def _arrays(tensors: tuple[torch.Tensor, ...]) -> tuple[Array, ...]:
    return tuple(np.asarray(x.detach().numpy(), order="C") for x in tensors)


def _write_arguments(module: ModuleOp, arguments: list[Argument]) -> None:
    """Names and kinds. Arguments that are one parameter become one, whose readers then see the same value."""
    (main,) = (op for op in module.body.block.ops if isinstance(op, FuncOp))
    block, first = main.body.block, dict[str, BlockArgument]()
    for argument, value in zip(arguments, list(block.args), strict=True):
        if (kept := first.setdefault(argument.name, value)) is not value:
            value.replace_all_uses_with(kept)
            block.erase_arg(value)
    kinds = {argument.name: argument.kind for argument in arguments}
    main.function_type = FunctionType.from_lists([x.type for x in block.args], list(main.function_type.outputs))
    main.arg_attrs = ArrayAttr(
        DictionaryAttr({"penstock.name": StringAttr(name), "penstock.kind": StringAttr(kinds[name])}) for name in first
    )


def _results(exported: ExportedProgram) -> list[torch.Tensor]:
    """The results as the graph describes them: shapes and types."""
    (output,) = (node for node in exported.graph.nodes if node.op == "output")
    return [node.meta["val"] for node in output.args[0]]


def _named(names: list[str], split: Split | None) -> list[str]:
    """The accelerator's results by the model's names, if they are the model's."""
    leaving: list[str] = split.parts.graph["results"] if split else []
    if split is None or split.parts.graph["accelerator"]["outputs"] == leaving:
        return names
    count = len(split.parts.graph["accelerator"]["outputs"])
    return ["output"] if count == 1 else [f"output{i}" for i in range(count)]


def _signature(
    arguments: list[Argument], inputs: tuple[torch.Tensor, ...], results: list[torch.Tensor], output_names: list[str]
) -> Signature:
    names = [a.name for a in arguments if a.kind == "input"]
    return Signature(
        inputs=tuple(_port(n, x) for n, x in zip(names, inputs, strict=True)),
        outputs=tuple(_port(n, y) for n, y in zip(output_names, results, strict=True)),
    )


def _port(name: str, value: torch.Tensor) -> Port:
    return Port(name, tuple(value.shape), str(value.dtype).removeprefix("torch."))


def _calibration(found: _Exported) -> tuple[Array, ...]:
    """Typical inputs of the accelerator: with a part before it on the host, what that makes of typical inputs."""
    model, split = found.model, found.split
    rows = _typical_rows(model, len(found.taken))
    if split is None or found.taken or not rows:
        return rows
    host = HostGraph(split.parts.graph, split.parts.values)
    if host.turns > 1 or not split.parts.inputs:
        return ()
    try:
        sent = [host.before(list(call))[0] for call in zip(*rows, strict=True)]
        return tuple(np.stack(one) for one in zip(*sent, strict=True))
    except PackageError as error:
        raise PenstockError(
            code="evaluation-values", what=f"the calibration inputs do not fit: {error.what}", where=model.reference,
            limit=error.hint, hint="give inputs that the model runs on",
        ) from error  # fmt: skip


def _typical_rows(model: LoadedModel, states: int) -> tuple[Array, ...]:
    """Of each input typical numbers, a call a row; before the model's inputs stand what it keeps."""
    if model.typical:
        return _arrays(model.typical)
    rows = None if model.evaluation is None else model.evaluation.calibration
    if rows is None:
        return ()
    like = model.example_inputs[states]
    return (split_rows(_arrays((rows.to(like.dtype),))[0], tuple(like.shape), model.reference),)


def _rows(rows: torch.Tensor, model: LoadedModel) -> Array:
    return np.ascontiguousarray(rows.detach().to(model.example_inputs[0].dtype).numpy())


def _evaluate(model: LoadedModel, samples: Samples) -> EvaluationSet:
    """PyTorch's outputs on the held-out set, in batches of the size that the accelerator will take."""
    given = model.evaluation
    assert isinstance(given, LoadedEvaluation)
    if len(samples.inputs) != 1 or len(samples.outputs) != 1:
        raise PenstockError(
            code="evaluation-ports",
            what=f"an evaluation set for {len(samples.inputs)} inputs and {len(samples.outputs)} outputs",
            where=model.reference,
            limit="it needs a model with one input and one output",
            hint="leave the evaluation out",
        )
    shape = samples.inputs[0].shape
    rows = _rows(given.inputs, model)
    batches = split_rows(rows, shape, model.reference)
    outputs = np.stack([_arrays(run_eagerly(model, (torch.as_tensor(b),)))[0] for b in batches])
    labels = np.ascontiguousarray(given.labels.detach().numpy()).astype(np.int64)
    return EvaluationSet(given.name, rows, labels, join_rows(outputs, rows, shape))
