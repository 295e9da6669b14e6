"""Runs the user's function and checks what it returns, so that every mistake is told in the user's words."""

from __future__ import annotations

import contextlib
import importlib.util
import inspect
import sys
import traceback
import warnings
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from penstock.compiler import zoo
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.checkpoints import Checkpoint
from penstock.compiler.frontend.loaded import LoadedEvaluation, LoadedModel, LoadedText
from penstock.compiler.frontend.quiet import quiet_torch
from penstock.compiler.frontend.typical_inputs import with_typical_inputs
from penstock.compiler.reference import (
    LIBRARIES,
    WEIGHTS,
    FileReference,
    ImplementedReference,
    LayersReference,
    LibraryReference,
    LinalgReference,
    ModelReference,
    OnnxReference,
    TaskReference,
    WholeReference,
    ZooReference,
    check_file,
    without_calibration,
)

_RETURNS = "return (module, example_inputs) or (module, example_inputs, evaluation), or text instead of evaluation"
_EVALUATION_KEYS = {"name", "inputs", "labels"}
_RANDOM = "Its example inputs are random numbers: for eight bits give typical ones, calibration=FILE (.npz or .npy)."
_TEXT_KEYS = {"name", "held_out", "calibration"}


def load_model(reference: ModelReference, *, weights: bool = True) -> LoadedModel:
    """`weights=False` builds the module with shapes only: large models then need neither time nor memory."""
    # text is no PyTorch module, and layers are found in the model that holds them
    assert not isinstance(reference, ImplementedReference | LinalgReference | TaskReference | LayersReference)
    own, typical = without_calibration(reference)
    loaded = replace(_load(own, weights), reference=str(reference))
    if typical:  # without weights they are only looked at
        read = with_typical_inputs(loaded, Path(typical))
        return read if weights else loaded
    trained = isinstance(own, OnnxReference) or (isinstance(own, LibraryReference) and "weights" in dict(own.options))
    return replace(loaded, notes=(*loaded.notes, *([_RANDOM] if trained else [])))


def _load(reference: WholeReference, weights: bool) -> LoadedModel:
    where = str(reference)
    if isinstance(reference, OnnxReference):
        from penstock.compiler.frontend.onnx_graph import load_onnx  # needs the package onnx, which other models do not

        return load_onnx(reference) if weights else without_weights(load_onnx(reference))
    if not weights:
        with torch.device("meta"), warnings.catch_warnings():
            # a file that loads its trained numbers is told of each that there is nothing to copy them to
            warnings.filterwarnings("ignore", ".*copying from a non-meta parameter", UserWarning)
            return without_weights(_load(reference, True))
    with contextlib.redirect_stdout(sys.stderr):  # stdout belongs to Penstock's own output
        fill = _fill(reference)
        if isinstance(reference, FileReference):
            function = _find_function(reference)
            _check_parameters(function, reference)
            loaded = _check(_call(function, reference), reference.name, where)
            fill(loaded.module)
            return loaded
        returned = (
            _library_model(reference, fill) if isinstance(reference, LibraryReference) else _zoo_model(reference, fill)
        )
        return _check(returned, reference.name, where)


def _fill(reference: FileReference | LibraryReference | ZooReference) -> Callable[[nn.Module], None]:
    """Puts the numbers of the reference's file into a module; without a file it does nothing."""
    options = dict(reference.options)
    if "weights" in options:
        return Checkpoint.open(Path(options["weights"]), options.get("prefix", "")).fill
    if "prefix" in options:
        raise PenstockError(
            code="bad-option", what="a prefix without weights", where=str(reference),
            hint="it stands before the names of a file: weights=FILE&prefix=model.layers.0.",
        )  # fmt: skip
    return lambda _module: None


def _zoo_model(reference: ZooReference, fill: Callable[[nn.Module], None]) -> Any:
    """Looked at without memory first: an option is a number, and so may be any size."""
    from penstock.compiler.frontend.libraries.fence import shapes_only

    reference = replace(reference, options=tuple(x for x in reference.options if x[0] not in WEIGHTS))
    with shapes_only(str(reference)):
        fill(zoo.build(reference)[0])
    built = zoo.build(reference)
    fill(built[0])
    return built


def _library_model(reference: LibraryReference, fill: Callable[[nn.Module], None]) -> Any:
    from penstock.compiler.frontend.libraries import build  # the libraries are large, and may not be there

    try:
        with quiet_torch():
            return build(reference, fill)
    except PenstockError:
        raise
    except Exception as error:
        raise PenstockError(
            code="model-options", what=f"{LIBRARIES[reference.library]} cannot build it: {describe(error)}",
            where=str(reference),
            hint="this name fixes it: name the model's class instead" if "multiple values" in str(error)
            else "change the options that this names, or write a file.py",
        ) from error  # fmt: skip


def without_weights(model: LoadedModel) -> LoadedModel:
    """A model on PyTorch's meta device as one on the CPU whose parameters have no numbers."""
    shapes_only = FakeTensorMode(allow_non_fake_inputs=True)
    module, replaced = model.module, dict[int, torch.Tensor]()

    def stand_in(value: torch.Tensor) -> torch.Tensor:
        if id(value) not in replaced:
            with shapes_only:
                replaced[id(value)] = torch.empty(value.shape, dtype=value.dtype, device="cpu")
        return replaced[id(value)]

    for part in module.modules():
        for name, parameter in part.named_parameters(recurse=False, remove_duplicate=False):
            part.register_parameter(name, nn.Parameter(stand_in(parameter), requires_grad=False))
        for name, buffer in part.named_buffers(recurse=False, remove_duplicate=False):
            if buffer.is_meta:
                setattr(part, name, stand_in(buffer))
    inputs = tuple(torch.zeros(x.shape, dtype=x.dtype, device="cpu") for x in model.example_inputs)
    return LoadedModel(model.name, model.reference, module, inputs, None, has_weights=False)


def _find_function(reference: FileReference) -> Callable[..., Any]:
    path = reference.path
    check_file(path)
    namespace: dict[str, Any] = vars(_execute(path))
    function = namespace.get(reference.function)
    if function is None:
        found = sorted(
            name
            for name, value in namespace.items()
            if callable(value) and not name.startswith("_") and getattr(value, "__module__", "") == _MODULE_NAME
        )
        raise PenstockError(
            code="model-function",
            what=f"there is no function {reference.function!r}",
            where=str(path),
            hint=f"it defines: {', '.join(found)}" if found else f"define a function that will {_RETURNS}",
        )
    if not callable(function) or isinstance(function, torch.nn.Module):
        raise PenstockError(
            code="model-function",
            what=f"{reference.function!r} is a {type(function).__name__}, not a function",
            where=str(path),
            hint=f"define a function that will {_RETURNS}",
        )
    return function


_MODULE_NAME = "penstock_user_model"


def _execute(path: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(_MODULE_NAME, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[_MODULE_NAME] = module  # dataclasses and pickling look a class up by its module
    with _importing_from(path.parent), _user_errors("the file cannot be executed", "model-file", path):
        specification.loader.exec_module(module)
    return module


def _check_parameters(function: Callable[..., Any], reference: FileReference) -> None:
    """A function takes the lengths that each call says as keywords."""
    asked = [name for name, _ in reference.options if name not in WEIGHTS]
    known = list(inspect.signature(function).parameters.values()) if asked else []
    named = {one.name for one in known if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
    if any(one.kind == one.VAR_KEYWORD for one in known):
        return
    if missing := next((name for name in asked if name not in named), None):
        raise PenstockError(
            code="unknown-option", where=str(reference.path),
            what=f"{reference.function}() has no parameter {missing!r}",
            limit=f"its parameters: {', '.join(sorted(named))}" if named else "it has none",
            hint=f"write def {reference.function}({missing}): and give the example inputs that size",
        )  # fmt: skip


def _call(function: Callable[..., Any], reference: FileReference) -> Any:
    with (
        _importing_from(reference.path.parent),
        _user_errors(f"{reference.function}() failed", "model-function", reference.path),
    ):
        return function(**{name: int(value) for name, value in reference.options if name not in WEIGHTS})


@contextlib.contextmanager
def _importing_from(folder: Path) -> Generator[None]:
    """Lets a model file import its neighbours, as it could when run as a script."""
    entry = str(folder.resolve())
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        if entry in sys.path:
            sys.path.remove(entry)


@contextlib.contextmanager
def _user_errors(what: str, code: str, path: Path) -> Generator[None]:
    """Turns whatever the user's code raises, sys.exit included, into one line with the place in the user's file."""
    try:
        yield
    except PenstockError:
        raise
    except (Exception, SystemExit) as error:
        raise PenstockError(
            code=code,
            what=f"{what}: {describe(error)}",
            where=_place(error, path),
            hint=_of_a_file_alone(error) or f"run the file by itself with python; its function must {_RETURNS}",
        ) from error


def _of_a_file_alone(error: BaseException) -> str:
    """What to do where a file is not there, which on the machine of whoever submitted it may well be."""
    if not isinstance(error, FileNotFoundError):
        return ""
    return (
        "run the file by itself with python; a service gets this file alone, and those that weights= and calibration= "
        "name: trained numbers go as weights=FILE.safetensors"
    )


def describe(error: BaseException) -> str:
    """The kind of an exception and the first line of its message; a line that only announces is left for its cause."""
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg}"
    if error.__cause__ is not None and str(error).strip().partition("\n")[0].endswith(":"):
        return describe(error.__cause__)
    lines = str(error).strip().splitlines()
    return type(error).__name__ + (f": {lines[0].strip()}" if lines else "")


def _place(error: BaseException, path: Path) -> str:
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path}:{error.lineno}"
    frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == path]
    return f"{path}:{frames[-1].lineno}" if frames else str(path)


def _check(returned: Any, name: str, where: str) -> LoadedModel:
    if not isinstance(returned, tuple) or len(cast(tuple[Any, ...], returned)) not in (2, 3):
        raise _wrong_return(f"the function returned {_kind(returned)}", where)
    module, inputs, *rest = cast(tuple[Any, ...], returned)
    if not isinstance(module, torch.nn.Module):
        raise _wrong_return(f"the first value returned is {_kind(module)}, not a torch.nn.Module", where)
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    if not isinstance(inputs, tuple | list) or not inputs:
        raise _wrong_return(f"the example inputs are {_kind(inputs)}, not a tuple of tensors", where)
    tensors: list[torch.Tensor] = []
    for position, value in enumerate(cast("list[Any]", inputs)):
        if not isinstance(value, torch.Tensor):
            raise _wrong_return(f"example input {position} is {_kind(value)}, not a tensor", where)
        tensors.append(value)
    loaded = LoadedModel(name, where, _evaluating(module, where), tuple(tensors))
    if not rest or rest[0] is None:
        return loaded
    if isinstance(rest[0], Mapping) and "held_out" in rest[0]:
        return replace(loaded, text=_check_text(cast("Mapping[str, Any]", rest[0]), where))
    return replace(loaded, evaluation=_check_evaluation(rest[0], where))


def _evaluating(module: torch.nn.Module, where: str) -> torch.nn.Module:
    """A graph that was exported has no modes: it is what it was traced as, which may be training."""
    if not isinstance(module, torch.fx.GraphModule):
        return module.eval()
    try:
        return module.eval()
    except NotImplementedError:
        if (trains := next((node for node in module.graph.nodes if _trains(node)), None)) is not None:
            raise PenstockError(
                code="training-graph", what=f"the graph was exported in training mode: {trains.name} trains",
                where=where, limit="an exported graph cannot be put into evaluation mode",
                hint="call model.eval() before torch.export.export",
            ) from None  # fmt: skip
        return module


def _trains(node: torch.fx.Node) -> bool:
    """Whether an operation does in training what it does not in use, as dropout and batch norms may.

    An LSTM between whose layers nothing is dropped does the same in both.
    """
    if (schema := getattr(node.target, "_schema", None)) is None:
        return False
    names: list[str] = [argument.name for argument in schema.arguments]
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    if given.get("dropout_p"):  # attention is not told whether it trains
        return True
    drops = bool(given.get("dropout", given.get("p")) != 0)
    return drops and any(given.get(name) is True for name in ("train", "training"))


def _check_text(given: Mapping[str, Any], where: str) -> LoadedText:
    forms = {"characters", "tokenizer"} & set(given)
    if set(given) != _TEXT_KEYS | forms or len(forms) != 1 or not all(isinstance(x, str) for x in given.values()):
        raise _wrong_return(
            f"the text is {_kind(given)}, not a mapping of name, held_out, calibration, and characters or tokenizer, "
            "which all are texts",
            where,
        )
    characters = given.get("characters")
    if characters is not None and len(set(characters)) != len(characters):
        raise _wrong_return("the text's characters have one twice", where)
    tokenizer = None
    if characters is None:
        try:
            tokenizer = Path(given["tokenizer"]).read_bytes()
        except OSError as error:
            raise _wrong_return(
                f"the tokenizer {given['tokenizer']} cannot be read: {error.strerror}", where
            ) from error
    return LoadedText(given["name"], given["held_out"], given["calibration"], characters, tokenizer)


def _check_evaluation(value: Any, where: str) -> LoadedEvaluation:
    given: dict[str, Any] = dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else {}
    if not _EVALUATION_KEYS <= set(given) <= _EVALUATION_KEYS | {"calibration"}:
        raise _wrong_return(
            f"the evaluation is {_kind(value)}, not a mapping of name, inputs, labels (and calibration)",
            where,
        )
    inputs, labels = torch.as_tensor(given["inputs"]), torch.as_tensor(given["labels"])
    calibration = torch.as_tensor(given["calibration"]) if "calibration" in given else None
    if calibration is not None and (calibration.shape[1:] != inputs.shape[1:] or not len(calibration)):
        raise PenstockError(
            code="evaluation-shape",
            what=f"calibration inputs of shape {tuple(calibration.shape)}",
            where=where,
            limit=f"the evaluation inputs have shape {tuple(inputs.shape)}",
            hint="give both as rows of the same form",
        )
    integral = not labels.is_floating_point() and not labels.is_complex()
    if labels.dim() != 1 or not integral or not len(labels) or inputs.dim() < 2 or len(inputs) != len(labels):
        raise PenstockError(
            code="evaluation-shape",
            what=f"inputs {tuple(inputs.shape)} with {labels.dtype} labels {tuple(labels.shape)}",
            where=where,
            limit="an evaluation has one row of inputs and one integer label an example",
            hint="labels are class numbers, not one-hot rows",
        )
    return LoadedEvaluation(str(given["name"]), inputs, labels, calibration)


def _wrong_return(what: str, where: str) -> PenstockError:
    return PenstockError(code="model-return", what=what, where=where, hint=f"let the function {_RETURNS}")


def _kind(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, tuple):
        return f"a tuple of {len(cast(tuple[Any, ...], value))}"
    if isinstance(value, Mapping):
        return f"a mapping of {', '.join(map(str, cast('Mapping[Any, Any]', value))) or 'nothing'}"
    kind = type(value).__name__
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"
