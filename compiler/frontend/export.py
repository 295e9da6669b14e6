"""torch.export with its failures explained, and the checks on what it gives."""

# some of torch's classes come without types
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import contextlib
import keyword
import operator
import traceback
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.export import ExportedProgram
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.utils._python_dispatch import TorchDispatchMode

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.complex_numbers import replace_complex_numbers
from penstock.compiler.frontend.constant_look_ups import replace_constant_look_ups
from penstock.compiler.frontend.constant_writes import replace_constant_writes
from penstock.compiler.frontend.decompositions import decomposition_table
from penstock.compiler.frontend.empty_parts import drop_empty_parts
from penstock.compiler.frontend.loaded import LoadedModel
from penstock.compiler.frontend.loader import describe
from penstock.compiler.frontend.mask_hints import masks_as_given
from penstock.compiler.frontend.narrow_constants import TOO_NARROW, replace_narrow_constants
from penstock.compiler.frontend.origins import origin_of
from penstock.compiler.frontend.quick_registering import quick_registering
from penstock.compiler.frontend.quiet import quiet_torch
from penstock.compiler.frontend.resampling import keep_largest
from penstock.compiler.frontend.results import tensors_of

_TORCH = Path(torch.__file__).parent
_ONE_SCHEDULE = (
    "an accelerator has one fixed schedule, so the way through the model must not depend on the numbers in its "
    "tensors; here Python needs such a number: an `if`, a loop bound, float(), int(), .item() or an index made "
    "from a tensor"
)
_QUANTISED = ("torch.ao.nn.quantized", "torch.ao.nn.intrinsic.quantized")
_CONTROL = ("cond", "while_loop", "scan", "map_impl")
_STATIC_CHOICE = "choose with torch.where, mask with a multiplication, or decide outside of the model"


SayStage = Callable[[str], None]
"""Is told the name of each stage of an import as it begins."""


def ignore_stage(_name: str) -> None:
    pass


MOST_OPERATIONS = 5_000
"""Of PyTorch's own: an accelerator has hardware for each, and a block of a transformer has about a hundred."""


class _Counted(TorchDispatchMode):
    """Ends a run that has too many operations: unlike tracing, running takes no time worth mentioning for each."""

    supports_higher_order_operators = True

    def __init__(self, model: LoadedModel) -> None:
        super().__init__()
        self.model, self.count = model, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        _check_count(self.count, self.model)
        if isinstance(func, HigherOrderOperator) and func.name() in _CONTROL:
            raise PenstockError(
                code="data-dependent", what=f"forward calls torch.{func.name()}",
                where=self.model.reference, limit="an accelerator has one fixed schedule, whatever the numbers are",
                hint=f"{_STATIC_CHOICE}; write a loop of fixed length in Python",
            )  # fmt: skip
        return func(*args, **(kwargs or {}))


def _check_count(count: int, model: LoadedModel) -> None:
    if count > MOST_OPERATIONS:
        raise PenstockError(
            code="too-many-operations", what=f"the model has more than {MOST_OPERATIONS:,} operations",
            where=model.reference, limit="an accelerator has hardware of its own for each operation",
            hint="compile a part of it (one block, fewer steps in time), or compute with larger tensors",
        )  # fmt: skip


def run_eagerly(model: LoadedModel, inputs: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """PyTorch's own answer, which every later level is held against."""
    shapes = ", ".join(str(tuple(x.shape)) for x in inputs)
    try:
        with torch.no_grad(), quiet_torch(), _Counted(model), state_kept(model.module):
            outputs: Any = model.module(*inputs)
    except PenstockError:
        raise
    except Exception as error:
        raise PenstockError(
            code="example-inputs",
            what=f"the model does not run on its example inputs of shape {shapes}: {describe(error)}",
            where=_user_frame(error) or model.reference,
            hint="return example inputs of the shapes that the model's forward takes",
        ) from error
    return tensors_of(outputs, model.reference)


def check_operations(model: LoadedModel) -> None:
    """The same limit for a model without weights, whose answer nobody can have: it is run on shapes alone."""
    tensors = (*model.module.parameters(), *model.module.buffers())
    found = next((one.fake_mode for one in tensors if isinstance(one, FakeTensor)), None)
    shapes_only, counted = found or FakeTensorMode(allow_non_fake_inputs=True), _Counted(model)
    # what goes wrong here goes wrong where it is traced, and is explained there
    with (
        _as_it_was(model.module), contextlib.suppress(Exception), torch.no_grad(), quiet_torch(), masks_as_given(),
        shapes_only, counted
    ):  # fmt: skip
        model.module(*[shapes_only.from_tensor(x) for x in model.example_inputs])
    _check_count(counted.count, model)


@contextlib.contextmanager
def _as_it_was(module: torch.nn.Module) -> Generator[None]:
    """What a run on shapes leaves behind in the module is no tensor that anything can be computed with."""
    kept = [(part, dict(vars(part)), dict(part.named_buffers(recurse=False))) for part in module.modules()]
    try:
        yield
    finally:
        for part, attributes, buffers in kept:
            vars(part).clear()
            vars(part).update(attributes)
            for name, buffer in buffers.items():
                setattr(part, name, buffer)


@contextlib.contextmanager
def state_kept(module: torch.nn.Module) -> Generator[None]:
    """What a run changes in the module's buffers is as before afterwards: every call is the first."""
    kept = [
        (owner, name, buffer, buffer.clone())
        for owner in module.modules() for name, buffer in owner.named_buffers(recurse=False)
    ]  # fmt: skip
    try:
        yield
        for owner, name, buffer, _ in kept:
            _check_shape(name, buffer, owner.get_buffer(name))
    finally:
        for owner, name, buffer, before in kept:  # written into, or another one under its name
            buffer.copy_(before)
            setattr(owner, name, buffer)


def _check_shape(name: str, before: torch.Tensor, after: torch.Tensor) -> None:
    if before.shape != after.shape or before.dtype != after.dtype:
        raise PenstockError(
            code="state-changes", what=f"forward makes the buffer {name!r} another shape or type", where=name,
            limit=f"it is {tuple(before.shape)} of {before.dtype}, and would be {tuple(after.shape)} of {after.dtype}",
            hint="give it its largest shape from the start, and write into it",
        )  # fmt: skip


def export(model: LoadedModel, begin: SayStage = ignore_stage) -> ExportedProgram:
    """The model as a graph of core ATen operations with static shapes."""
    begin("export")
    _check_names(model)
    _check_kinds(model)
    try:
        with torch.no_grad(), quiet_torch(), masks_as_given(), quick_registering():
            exported: Any = torch.export.export(model.module, model.example_inputs, strict=False)
            begin("decompose")
            keep_largest(exported)
            program: ExportedProgram = exported.run_decompositions(decomposition_table())
            _drop_what_is_known(program)
            drop_empty_parts(program)
            replace_narrow_constants(program)
            replace_complex_numbers(program, model.name)
            replace_constant_look_ups(program)
            replace_constant_writes(program)
    except PenstockError:
        raise
    except GuardOnDataDependentSymNode as error:
        raise PenstockError(
            code="data-dependent",
            what="the control flow depends on the values of a tensor",
            where=_user_frame(error) or model.reference,
            limit=_ONE_SCHEDULE,
            hint=_STATIC_CHOICE,
        ) from error
    except Exception as error:
        raise PenstockError(
            code="export-failed",
            what=f"torch.export cannot trace the model: {describe(error)}",
            where=_user_frame(error) or model.reference,
            hint="forward must be built from PyTorch operations on its arguments (no numpy, no side effects)",
        ) from error
    _check_count(len(program.graph.nodes), model)
    _check_effects(program, model)
    _check_static(program, model)
    return program


def _check_names(model: LoadedModel) -> None:
    """torch.export writes the graph as Python, where `self.class` is no name."""
    for path, _ in model.module.named_modules():
        for name in path.split("."):
            if keyword.iskeyword(name):
                raise PenstockError(
                    code="layer-name", what=f"the layer {path!r} is called as a keyword of Python",
                    where=model.reference, limit="torch.export cannot write such a name",
                    hint=f"call it {name}_ (and its weights in a checkpoint likewise)",
                )  # fmt: skip


def _check_kinds(model: LoadedModel) -> None:
    """What torch.export refuses in words that help nobody."""
    if isinstance(model.module, torch.jit.ScriptModule):
        raise PenstockError(
            code="export-failed", what="a ScriptModule is not supported: it is compiled already",
            where=model.reference, limit="torch.export traces modules that are written in Python",
            hint="return the torch.nn.Module that was scripted or traced",
        )  # fmt: skip
    for path, part in model.module.named_modules():
        if type(part).__module__.startswith(_QUANTISED):
            raise PenstockError(
                code="quantised-module",
                what=f"the layer {path or 'at the top'!r} is a {type(part).__name__} of {type(part).__module__}, which "
                "keeps its weights packed", where=model.reference, limit="models are float32",
                hint="return the model before PyTorch quantised it, and compile with --quantize w8a8",
            )  # fmt: skip


def _drop_what_is_known(program: ExportedProgram) -> None:
    """A model's assertions about types held while it was traced; with fixed shapes they hold for good."""
    for node in list(program.graph.nodes):
        if node.target is torch.ops.aten._assert_tensor_metadata.default:
            program.graph.erase_node(node)
    program.graph.eliminate_dead_code()
    program.graph_module.recompile()


def _user_frame(error: BaseException) -> str:
    """The innermost line of the user's code in an exception's trace; a library's where there is none."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(("<", str(_TORCH)))
        and Path(__file__).parent not in Path(frame.filename).parents
    ]
    own = [frame for frame in frames if "site-packages" not in frame.filename] or frames
    return f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else ""


def _checked_by(effect: torch.fx.Node) -> torch.fx.Node:
    """What an operation with an effect looks at; itself, where that is no operation."""
    source: Any = next((x for x in effect.args[2:] if isinstance(x, torch.fx.Node)), effect)
    while isinstance(source, torch.fx.Node) and source.target is operator.getitem:
        source = source.args[0]
    return source if source.op == "call_function" else effect


def _check_effects(program: ExportedProgram, model: LoadedModel) -> None:
    for node in program.graph.nodes:
        if node.target is torch.ops.higher_order.with_effects:
            origin = origin_of(_checked_by(node))
            raise PenstockError(
                code="unsupported-op", what=f"the operation {origin.operation()} is not supported",
                where=origin.describe(model.name),
                limit="it checks its own results while the model runs (solvers of torch.linalg do), or prints",
                hint="replace it, or do this step outside of the model",
            )  # fmt: skip


def _check_static(program: ExportedProgram, model: LoadedModel) -> None:
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and not all(type(size) is int for size in value.shape):
            origin = origin_of(node)
            raise PenstockError(
                code="dynamic-shape",
                what=f"the size of the result of {origin.op} depends on the values of a tensor",
                where=origin.describe(model.name),
                limit="all shapes are known at compile time",
                hint="use a mask (torch.where) instead of selecting elements",
            )
        if isinstance(value, torch.Tensor) and node.op == "call_function" and value.dtype in TOO_NARROW:
            origin = origin_of(node)
            raise PenstockError(
                code="unsupported-dtype",
                what=f"{origin.operation()} gives {str(value.dtype).removeprefix('torch.')} numbers",
                where=origin.describe(model.name), limit="what is computed inside a model is float32",
                hint="leave out the cast (or torch.autocast); --quantize w8a8 makes numbers narrow",
            )  # fmt: skip
        if isinstance(value, torch.Tensor) and 0 in value.shape and node.users:
            origin, signature = origin_of(node), program.graph_signature
            weights = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}.get(node.name)
            which = f"{origin.op} gives a tensor of" if weights is None else f"the weights {weights!r} have the"
            raise PenstockError(
                code="empty-tensor", what=f"{which} shape {tuple(value.shape)}", where=origin.describe(model.name),
                limit="every dimension has at least one element",
                hint="remove the operation, it has nothing to compute",
            )  # fmt: skip
