"""Gives every operation of the imported module the name of the layer it belongs to in the user's model."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr
from xdsl.dialects.linalg import ops as linalg
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Operation

from penstock.compiler.frontend.hand_over import ORIGIN
from penstock.compiler.frontend.origin import Origin
from penstock.compiler.names import Names
from penstock.compiler.places import WrittenPlace
from penstock.compiler.transforms.check_canonical import SOURCE
from penstock.compiler.transforms.editor import LAYER

_COMPOSITE = {"linear", "addmm", "convolution"}
_PRODUCTS = {"mm", "bmm", "matmul"}


def name_layers(module: ModuleOp, origins: dict[int, Origin]) -> dict[str, tuple[WrittenPlace, ...]]:
    """Replace origin numbers by `penstock.layer`, unique among the generics of the module, and `penstock.source`.

    The source is what an error message calls the operation; `CheckSupported` drops it when there is no error. Where
    the user wrote each generic is answered, by its layer.
    """
    names, places = Names(), dict[str, tuple[WrittenPlace, ...]]()
    for op in list(module.walk()):
        number = op.attributes.pop(ORIGIN, None)
        origin = origins.get(number.value.data) if isinstance(number, IntegerAttr) else None
        if isinstance(op, linalg.GenericOp):
            layer = names.take(_generic_name(op, origin))
            op.attributes[LAYER] = StringAttr(layer)
            if origin is not None:
                places[layer] = (origin.place(),)
        elif origin is not None and _moves_data(op):
            op.attributes[LAYER] = StringAttr(_join(origin.path, origin.op))
        if origin is not None and LAYER in op.attributes:
            op.attributes[SOURCE] = StringAttr(origin.operation())
    return places


def _generic_name(op: linalg.GenericOp, origin: Origin | None) -> str:
    if origin is None:
        return "op"
    if not op.inputs:  # a tensor filled with a constant
        return _join(_join(origin.path, origin.op), "init")
    if origin.op in _COMPOSITE or (origin.is_onnx_node and origin.op in _PRODUCTS):
        whole = origin.path and (origin.is_library_module or origin.is_onnx_node)
        layer = origin.path if whole else _join(origin.path, origin.op)
        if any(kind.data is IteratorType.REDUCTION for kind in op.iterator_types):
            return layer
        body = list(op.body.block.ops)
        if len(body) == 1 and op.inputs:
            return _join(layer, "weight")
        return _join(layer, "bias" if isinstance(body[-2], arith.AddfOp) else origin.op)
    if origin.is_onnx_node and origin.path.rpartition(".")[2].lower().startswith(origin.op):
        return origin.path  # "Relu" needs no "relu" behind it
    return _join(origin.path, origin.op)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _moves_data(op: Operation) -> bool:
    return not op.name.startswith(("arith.", "func.")) and op.name != "tensor.empty"
