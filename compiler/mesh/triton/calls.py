"""Calls within a kernel: the functions of `tl`, those of Triton, and the few of Python that a kernel has."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import cast

from penstock.compiler.mesh.program import MeshAccess, MeshBound, MeshLoad, MeshStore
from penstock.compiler.mesh.triton.expressions import (
    DTYPES,
    MOST_ELEMENTS,
    KernelArguments,
    TritonExpressions,
    plain_index,
    wider,
)
from penstock.compiler.mesh.triton.values import (
    Data,
    Dtype,
    KernelIndex,
    KernelMask,
    Name,
    TritonValue,
    broadcast,
    widened_mask,
)
from penstock.compiler.tasks.affine import Affine

_UNARY = ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "abs", "sigmoid", "sin", "cos", "tanh")
_PAIRS = {"maximum": "max", "minimum": "min", "fdiv": "div"}
_REDUCED = {"sum": "sum", "max": "max", "min": "min"}
_READ = "program_id, arange, load, store, dot, sum, max, exp, where, zeros, full, cdiv, trans, cumsum are"
_MADE = "let the host draw the numbers, and load them as one more tensor"
_TOGETHER = "let one instance store each place once, and add up the parts in a second kernel"
_SAME_TILE = "write the addresses with program_id and tl.arange, and mask them by `<`"
INSTEAD = {
    **dict.fromkeys(("rand", "randn", "randint", "randint4x", "philox"), _MADE),
    **dict.fromkeys(("atomic_add", "atomic_max", "atomic_min", "atomic_cas", "atomic_xchg"), _TOGETHER),
    **dict.fromkeys(("make_block_ptr", "advance", "make_tensor_descriptor"), _SAME_TILE),
    **dict.fromkeys(("sort", "topk", "argmax", "argmin", "histogram", "gather"),
                    "let the host do it, before or after the kernel"),
    **dict.fromkeys(("erf", "libdevice.erf", "extra.libdevice.erf"),
                    "for GELU take x * tl.sigmoid(1.5957691 * (x + 0.044715 * x * x * x)), within 0.001 of it"),
    **dict.fromkeys(("reshape", "view", "ravel", "join", "split", "interleave", "permute", "cat"),
                    "load the tile in the shape in which it is used"),
    **dict.fromkeys(("device_print", "static_print", "device_assert", "debug_barrier"), "leave it out"),
}  # fmt: skip
"""What to write instead of functions that people use and that are not read."""


class KernelExpressions(TritonExpressions):
    """Expressions with their calls; `_call_NAME` reads `tl.NAME`. `inlined` reads a call of one of `helpers`."""

    helpers: Mapping[str, ast.FunctionDef] = MappingProxyType({})
    inlined: Callable[[ast.Call, ast.FunctionDef, list[TritonValue], KernelArguments], TritonValue]

    def call(self, node: ast.Call) -> TritonValue:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            asked = [*node.args, *(one.value for one in node.keywords if one.arg == "dtype")]
            return self._cast(node, self.value(node.func.value), self.value(asked[0]) if asked else None)
        if isinstance(node.func, ast.Name) and node.func.id in self.helpers and node.func.id not in self.names:
            given = [self.value(one) for one in node.args]
            named = {one.arg: self.value(one.value) for one in node.keywords if one.arg}
            return self.inlined(node, self.helpers[node.func.id], given, named)
        called = self.value(node.func)
        path = called.path if isinstance(called, Name) else ""
        name = path.removeprefix("tl.").removeprefix("triton.").removeprefix("math.")
        given = [self.value(one) for one in node.args]
        named = {one.arg: self.value(one.value) for one in node.keywords if one.arg}
        try:
            return self._called(node, path, name, given, named)
        except (IndexError, KeyError):
            raise self.text.error(node, f"{name} lacks an argument", "see Triton's documentation") from None

    def _called(
        self, node: ast.Call, path: str, name: str, given: list[TritonValue], named: KernelArguments
    ) -> TritonValue:
        function = getattr(self, f"_call_{name}", None)
        if name in _UNARY:
            data = self.data(node, given[0])
            return self.emitter.compute(name, (data,), data.shape, data.dtype)
        if name in _PAIRS:
            return self.pairwise(node, _PAIRS[name], given[0], given[1])
        if name in _REDUCED and (path.startswith("tl.") or isinstance(given[0], Data)):
            return self._reduced(node, _REDUCED[name], given, named)
        if function is None:
            raise self.text.error(node, f"{path or 'this'} is no function that is read", INSTEAD.get(name, _READ))
        return cast(TritonValue, function(node, given, named))

    def _call_program_id(self, node: ast.Call, given: list[TritonValue], named: KernelArguments) -> TritonValue:
        axis = self.whole(node, given[0] if given else named["axis"], "the axis")
        if not 0 <= axis < len(self.grid):
            raise self.text.error(
                node, f"program_id({axis}) of a grid of {len(self.grid)} dims", "give the grid that dim"
            )
        return plain_index(KernelIndex(self.emitter.resolved(Affine.counter(self.grid[axis]))))

    def _call_num_programs(self, node: ast.Call, given: list[TritonValue], named: KernelArguments) -> TritonValue:
        return self.extents[self.whole(node, given[0] if given else named["axis"], "the axis")]

    def _call_arange(self, node: ast.Call, given: list[TritonValue], named: KernelArguments) -> TritonValue:
        low, high = (self.whole(node, value, "arange's end") for value in given[:2])
        if not 0 < high - low <= MOST_ELEMENTS:
            raise self.text.error(
                node, f"arange({low}, {high}) has no places, or too many", "", f"1 to {MOST_ELEMENTS}"
            )
        return KernelIndex(Affine(low), (1,), (high - low,))

    def _call_cdiv(self, node: ast.Call, given: list[TritonValue], named: KernelArguments) -> TritonValue:
        value, by = given[0], self.whole(node, given[1], "the divisor")
        if by <= 0:
            raise self.text.error(node, "cdiv by what is not above 0", "")
        if isinstance(value, KernelIndex):
            found = self.emitter.divided(self.number(node, value).base.plus(Affine(by - 1)), by)
            if found is None:
                raise self.text.error(node, "this cdiv is not affine", "let the blocks divide")
            return plain_index(KernelIndex(found[0]))
        return -(-self.whole(node, value, "cdiv's first number") // by)

    def _call_min(self, node: ast.Call, given: list[TritonValue], named: KernelArguments) -> TritonValue:
        return self._least(node, given, 0)

    def _call_max(self, node: ast.Call, given: list[TritonValue], named: KernelArguments) -> TritonValue:
        return self._least(node, given, 1)

    def _least(self, node: ast.Call, given: list[TritonValue], which: int) -> TritonValue:
        """The least (or largest) of numbers, where it is the same one for all instances."""
        left, right = self.number(node, given[0]), self.number(node, given[1])
        low, high = self.emitter.extremes(left.base.plus(right.base, -1))
        if low >= 0 or high <= 0:
            return plain_index((right, left)[which] if low >= 0 else (left, right)[which])
        raise self.text.error(
            node, "which of both is less differs from instance to instance", "let blocks and groups divide the sizes"
        )

    def _call_float(self, node: ast.Call, given: list[TritonValue], named: KernelArguments) -> TritonValue:
        if given[0] in ("inf", "-inf"):
            return math.inf if given[0] == "inf" else -math.inf
        return float(given[0]) if isinstance(given[0], int | float) else self.whole(node, given[0], "float's number")

    def _call_constexpr(self, node: ast.Call, given: list[TritonValue], named: KernelArguments) -> TritonValue:
        return given[0]

    def _nothing(self, node: ast.Call, given: list[TritonValue], named: KernelArguments) -> TritonValue:
        return given[0] if given else None

    _call_multiple_of = _call_max_contiguous = _call_static_assert = _call_assume = _nothing

    def _call_zeros(self, node: ast.Call, given: list[TritonValue], named: KernelArguments) -> TritonValue:
        return self._call_full(node, [given[0] if given else named["shape"], 0.0, *given[1:2]], named)

    def _call_full(self, node: ast.Call, given: list[TritonValue], named: KernelArguments) -> TritonValue:
        asked = given[0]
        sizes = asked if isinstance(asked, tuple) else (asked,)
        shape = tuple(self.whole(node, size, "a tile's size") for size in sizes)
        dtype = named.get("dtype", given[2] if len(given) > 2 else Dtype("float32"))
        fill = given[1]
        if not isinstance(fill, int | float) or math.prod(shape) > MOST_ELEMENTS or min(shape, default=1) < 1:
            raise self.text.error(
                node, "a tile is filled with no known number, or is too large", "", str(MOST_ELEMENTS)
            )
        return self.emitter.compute(
            "full", (), shape, dtype.name if isinstance(dtype, Dtype) else "float32", float(fill)
        )

    def _call_zeros_like(self, node: ast.Call, given: list[TritonValue], named: KernelArguments) -> TritonValue:
        data = self.data(node, given[0])
        return self.emitter.compute("full", (), data.shape, data.dtype, 0.0)

    def _call_where(self, node: ast.Call, given: list[TritonValue], named: KernelArguments) -> TritonValue:
        like = next((v.dtype for v in given[1:] if isinstance(v, Data)), "float32")
        parts = self.data(node, given[0]), self.data(node, given[1], like), self.data(node, given[2], like)
        shape = broadcast(broadcast(parts[0].shape, parts[1].shape) or (), parts[2].shape)
        if shape is None:
            raise self.text.error(node, "tl.where of shapes that do not go together", "")
        return self.emitter.compute("where", parts, shape, wider(parts[1].dtype, parts[2].dtype))

    def _call_trans(self, node: ast.Call, given: list[TritonValue], named: KernelArguments) -> TritonValue:
        data = self.data(node, given[0])
        return self.emitter.compute("trans", (data,), data.shape[::-1], data.dtype)

    def _call_dot(self, node: ast.Call, given: list[TritonValue], named: KernelArguments) -> TritonValue:
        return self.dot(node, dict(zip(("input", "other", "acc"), given, strict=False)) | named)

    def dot(self, node: ast.AST, given: KernelArguments) -> Data:
        a, b = self.data(node, given["input"]), self.data(node, given["other"])
        if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0]:
            raise self.text.error(
                node, f"tl.dot of {a.shape} and {b.shape}", "columns of the first are rows of the other"
            )
        shape, dtype = (a.shape[0], b.shape[1]), "int32" if a.dtype == "int8" else "float32"
        made = self.emitter.compute("dot", (a, b), shape, dtype, inner=a.shape[1])
        acc = given.get("acc")
        return made if acc is None else self.pairwise(node, "add", acc, made)

    def _reduced(self, node: ast.Call, kind: str, given: list[TritonValue], named: KernelArguments) -> Data:
        data = self.data(node, given[0])
        asked = named.get("axis", given[1] if len(given) > 1 else None)
        axes = tuple(range(len(data.shape))) if asked is None else (self._axis(node, asked, data),)
        shape = tuple(size for i, size in enumerate(data.shape) if i not in axes)
        return self.emitter.compute(f"reduce_{kind}", (data,), shape, data.dtype, axes)

    def _axis(self, node: ast.Call, asked: TritonValue, data: Data) -> int:
        axis, rank = self.whole(node, asked, "the axis"), len(data.shape)
        if not -rank <= axis < rank:
            raise self.text.error(node, f"axis {axis} of a tile of {rank} dims", "count from 0")
        return axis % rank

    def _call_cumsum(self, node: ast.Call, given: list[TritonValue], named: KernelArguments) -> TritonValue:
        data = self.data(node, given[0])
        axis = self._axis(node, named.get("axis", given[1] if len(given) > 1 else 0), data)
        return self.emitter.compute("cumsum", (data,), data.shape, data.dtype, (axis,))

    def _cast(self, node: ast.Call, value: TritonValue, to: TritonValue) -> TritonValue:
        if isinstance(value, KernelIndex | int) and isinstance(to, Dtype) and "int" in to.name:
            return value  # places are as wide as they must be
        data = self.data(node, value)
        if isinstance(to, Name):
            return data  # `.to(pointer.dtype.element_ty)`: the store rounds
        if not isinstance(to, Dtype) or to.name not in DTYPES:
            raise self.text.error(node, "cast to what is no type", f"tl.{', tl.'.join(DTYPES)}")
        return self.emitter.compute("cast", (data,), data.shape, to.name)

    def _access(self, node: ast.Call, address: TritonValue, mask: TritonValue) -> MeshAccess:
        if not isinstance(address, KernelIndex) or not address.pointer:
            what = "the address depends on data" if isinstance(address, Data) else "this is no address"
            raise self.text.error(
                node, f"{what}: it is not affine", "add program_id, arange and loop counters to a tensor argument"
            )
        if isinstance(mask, Data):
            raise self.text.error(
                node, "the mask depends on data", "mask by places only, and select what was loaded with tl.where"
            )
        bounds: tuple[MeshBound, ...] = ()
        if isinstance(mask, KernelMask):
            shape = broadcast(mask.shape, address.shape)
            if shape != address.shape:
                raise self.text.error(node, f"a mask of {mask.shape} for a tile of {address.shape}", "")
            bounds = widened_mask(mask, address.shape).bounds
        elif mask is False:
            bounds = (MeshBound(Affine(0), (0,) * len(address.shape)),)
        return MeshAccess(address.pointer, address.base, address.strides, address.shape, bounds)

    def _call_load(self, node: ast.Call, given: list[TritonValue], named: KernelArguments) -> TritonValue:
        access = self._access(node, given[0], named.get("mask", given[1] if len(given) > 1 else None))
        other = named.get("other", given[2] if len(given) > 2 else 0.0)
        if not isinstance(other, int | float):
            raise self.text.error(node, "`other` must be a known number", "use 0.0 or -float('inf')")
        made = self.emitter.data(access.shape, self.dtypes[access.tensor])
        self.emitter.body.append(MeshLoad(made.id, access, float(other), self.text.line_of(node)))
        return made

    def _call_store(self, node: ast.Call, given: list[TritonValue], named: KernelArguments) -> TritonValue:
        access = self._access(node, given[0], named.get("mask", given[2] if len(given) > 2 else None))
        data = self.data(node, given[1], self.dtypes[access.tensor])
        shape = broadcast(data.shape, access.shape)
        if shape != access.shape:
            raise self.text.error(node, f"a tile of {data.shape} is stored to places of {access.shape}", "")
        self.emitter.body.append(MeshStore(access, data.id, self.text.line_of(node)))
        return None
