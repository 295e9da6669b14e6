"""Looks at a saved program before anything is made of it: whoever wrote the folder may have meant harm.

Sizes are read from headers first, so that nothing is unpacked that is larger than it says or than it may be. Text goes
into generated code, reports and terminals: it has to be printable.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import BytesAttr, ModuleOp, ShapedType, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue
from xdsl.ir import ParametrizedAttribute as Parametrized

from penstock.compiler.array_files import BadArraysError, check_archive
from penstock.compiler.errors import PenstockError
from penstock.compiler.host_check import BadHostPartError, check_host, check_layers
from penstock.compiler.mesh_record import FILE as MESH_FILE
from penstock.compiler.mesh_record import BadMeshRecordError, checked_record
from penstock.compiler.places import FILE as PLACES_FILE
from penstock.compiler.program import Program

ARRAYS = (
    "params.npz", "samples.npz", "evaluation.npz", "calibration.npz", "host/arrays.npz", "layers/arrays.npz",
    "states/arrays.npz", "text/arrays.npz", "lengths/arrays.npz",
)  # fmt: skip
TEXTS = (
    "signature.json",
    "graph.mlir",
    "host/graph.json",
    "layers/graph.json",
    "states/states.json",
    "lengths/lengths.json",
    MESH_FILE,
    PLACES_FILE,
)
FILES = (*TEXTS, *ARRAYS)
MOST_TEXT_BYTES = 8 << 20
"""ResNet-18's graph has sixty thousand. What is larger takes minutes to read, here where no fence ends it."""
MOST_ELEMENTS = 1 << 28
LONGEST_WORD = 2000
_MOST_CONSTANTS = 1 << 24
_GAP = r"(?:\s|//[^\n]*)*"
_DENSE = re.compile(rf"dense{_GAP}<[^<>]*>{_GAP}:{_GAP}\w+{_GAP}<{_GAP}((?:\d+{_GAP}x{_GAP})*)")


def load_checked(folder: Path, context: Context, most_bytes: int) -> Program:
    """The program, or the refusal of what the folder holds."""
    for name in TEXTS:
        path = folder / name
        if path.exists() and path.stat().st_size > MOST_TEXT_BYTES:
            raise _wrong(f"{name} has {path.stat().st_size} bytes", f"at most {MOST_TEXT_BYTES}")
    left = most_bytes
    for name in ARRAYS:
        if (folder / name).exists():
            left -= _check_arrays(folder / name, name, left)
    try:
        _check_constants((folder / "graph.mlir").read_text())
        for name in TEXTS:
            if name.endswith(".json") and (folder / name).exists():
                _check_words(json.loads((folder / name).read_text()))
        program = Program.load(folder, context)
        _check_graph(program)
        _check_ports(program)
        _check_lengths(program)
        if program.host is not None:
            check_host(program.host)
        if program.layers is not None:
            check_layers(program.layers)
        if program.mesh is not None:
            checked_record(program.mesh)
    except PenstockError:
        raise
    except (BadHostPartError, BadMeshRecordError) as error:
        raise _wrong(str(error)) from error
    except (Exception, RecursionError) as error:
        raise _wrong(f"it cannot be read: {type(error).__name__}: {str(error).strip()[:200]}") from error
    return program


def _check_constants(graph: str) -> None:
    """A constant says its one value once, and is as many of them as soon as it is read."""
    shapes = (re.sub(r"//[^\n]*", "", found) for found in _DENSE.findall(graph))
    total = sum(math.prod(map(int, re.findall(r"\d+", shape))) for shape in shapes)
    if total > _MOST_CONSTANTS:
        raise _wrong(f"its constants have {total} elements", f"at most {_MOST_CONSTANTS}")


def _check_arrays(path: Path, name: str, most_bytes: int) -> int:
    """The bytes that its arrays take in memory."""
    try:
        return check_archive(path, name, most_bytes, _check_text, LONGEST_WORD)
    except BadArraysError as error:
        raise _wrong(error.what, error.limit) from error


def _check_text(words: bytes, big: bool) -> None:
    _check_words(words.decode("utf-32-be" if big else "utf-32-le"))


def _check_graph(program: Program) -> None:
    for op in program.module.walk():
        for given in (op.attributes, op.properties):
            _check_words(given.keys())
            for value in given.values():
                _check_attribute(value)

    for value in _values(program.module):
        shape = value.type.get_shape() if isinstance(value.type, ShapedType) else ()
        if any(size < 0 for size in shape) or math.prod(shape) > MOST_ELEMENTS:
            raise _wrong(f"it computes {value.type}", f"at most {MOST_ELEMENTS} elements, all known")


def _values(module: ModuleOp) -> Iterable[SSAValue]:
    for op in module.walk():
        yield from op.results
        for region in op.regions:
            for block in region.blocks:
                yield from block.args


def _check_ports(program: Program) -> None:
    """That the signature says of the ports what the graph says, and states are some of them."""
    inputs, outputs = program.signature.inputs, program.signature.outputs
    for op in program.module.ops:
        if isinstance(op, FuncOp) and op.sym_name.data == "main":
            for ports, types in ((inputs, _types_of_inputs(op)), (outputs, op.function_type.outputs.data)):
                sizes = [math.prod(one.get_shape()) if isinstance(one, ShapedType) else 1 for one in types]
                least = min((size for port in ports for size in port.shape), default=1)
                if least < 1 or [math.prod(port.shape) for port in ports] != sizes:  # some dims of one may be left out
                    raise _wrong(f"the graph has ports of {sizes[:8]} elements, and the signature others")
    names = {port.name for port in inputs}
    for state in program.states:
        if (state.port is not None and state.port not in names) or not 0 <= (state.result or 0) < len(outputs):
            raise _wrong(f"no port of the accelerator is its state {state.name!r}")


def _check_lengths(program: Program) -> None:
    """That sizes which each call says are of the signature's ports, and examples of these sizes."""
    if (known := program.lengths) is None:
        return
    sides = ([port.shape for port in side] for side in (program.signature.inputs, program.signature.outputs))
    if odd := known.misfit(*sides):
        raise _wrong(odd)
    for graph in (part.graph for part in (program.host, program.layers) if part is not None):
        if graph.get("lengths", known.most) != known.most:
            raise _wrong("the host's part is of other lengths")


def _types_of_inputs(main: FuncOp) -> list[Attribute]:
    """Weights are arguments too, in any order with the inputs."""
    kinds = [given.data.get("penstock.kind") for given in main.arg_attrs or ()]
    types = list(main.function_type.inputs.data)
    weights = {at for at, kind in enumerate(kinds) if kind == StringAttr("param")}
    return [one for at, one in enumerate(types) if at not in weights]


def _check_attribute(value: Attribute) -> None:
    match value:
        case StringAttr():
            _check_words(value.data)
        case BytesAttr():
            pass  # numbers of a dense attribute; `Program.load` has made text of those that are text
        case Parametrized():
            for part in value.parameters:
                _check_attribute(part)
        case _:
            data: object = getattr(value, "data", None)
            for part in _parts(data):
                if isinstance(part, Attribute):
                    _check_attribute(part)
                else:
                    _check_words(part)


def _parts(data: object) -> Iterable[object]:
    if isinstance(data, dict):
        known = cast("dict[object, object]", data)
        return [*known.keys(), *known.values()]
    if isinstance(data, tuple | list | frozenset | set):
        return cast("Iterable[object]", data)
    return [data]


def _check_words(value: object) -> None:
    """Every text of a document: printable, and no longer than a name or a sentence."""
    if isinstance(value, str):
        if len(value) > LONGEST_WORD or not value.isprintable():
            raise _wrong(f"it holds the text {value[:60]!r}", f"printable, at most {LONGEST_WORD} characters")
    elif isinstance(value, dict):
        for key, part in cast("dict[object, object]", value).items():
            _check_words(key)
            _check_words(part)
    elif isinstance(value, Iterable) and not isinstance(value, bytes):
        for part in cast("Iterable[object]", value):
            _check_words(part)


def _wrong(what: str, limit: str = "") -> PenstockError:
    return PenstockError(
        code="program-invalid", what=f"what the import left is no program: {what}", limit=limit,
        hint="a model that writes the importer's files itself is refused; return the module and leave the rest to it",
    )  # fmt: skip
