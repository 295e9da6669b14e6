"""Complex numbers inside a model become two real tensors each: rotations of positions, spectra, state-space kernels.

What does not depend on the inputs is computed here, with PyTorch's own complex numbers, and kept as its two parts.
"""

# torch's operations and classes come without types
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind
from torch.fx import Node
from torch.utils import _pytree as pytree

from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.fourier import MOST_POINTS, Fourier
from penstock.compiler.frontend.graph_calls import add_constant, call_as, draws, replace_node
from penstock.compiler.frontend.lift import state_value
from penstock.compiler.frontend.origins import op_name, origin_of

aten = torch.ops.aten
RealPart = Node | float | None
"""Of a complex tensor: a tensor, one number, or zero."""
ComplexParts = tuple[RealPart, RealPart]

_ALIKE = {
    "view", "reshape", "permute", "transpose", "t", "unsqueeze", "squeeze", "expand", "slice", "select", "cat", "stack",
    "index_select", "index", "clone", "alias", "repeat", "flip", "roll", "sum", "neg", "constant_pad_nd", "detach",
    "lift_fresh_copy", "slice_scatter", "select_scatter", "unsafe_view", "movedim", "resolve_conj", "to_copy",
}  # fmt: skip
"""What is done to each part as it is done to a complex tensor."""


def replace_complex_numbers(program: ExportedProgram, name: str) -> None:
    """In place. What has no form in real numbers is refused by name."""
    if not any(_is_complex(node) for node in program.graph.nodes):
        return
    rewriter = _Rewriter(program, name)
    for node in list(program.graph.nodes):
        if node.op == "call_function":
            rewriter.look_at(node)
        elif node.op == "output":
            _check_results(node, name)
    program.graph.eliminate_dead_code()
    _drop_unread_state(program)
    program.graph_module.recompile()


class _Rewriter:
    def __init__(self, program: ExportedProgram, name: str) -> None:
        self.program, self.name = program, name
        self.pairs: dict[Node, ComplexParts] = {}
        self.values: dict[Node, Any] = {}
        self.constants: dict[tuple[str, tuple[int, ...], bytes], Node] = {}
        self.dependent = _dependent(program)

    def look_at(self, node: Node) -> None:
        if not _is_complex(node) and not any(_is_complex(x) for x in node.all_input_nodes):
            return
        if node not in self.dependent:
            if not _is_complex(node) and any(user in self.dependent or user.op == "output" for user in node.users):
                self._replace(node, self._constant(self._value(node), node.name))
            return
        write = getattr(self, f"_{op_name(node)}", None)
        with self.program.graph.inserting_before(node):
            self.node, self.call, self.origin = node, call_as(self.program, node), origin_of(node)
            if write is None and op_name(node) not in _ALIKE:
                raise self._refused(f"{self.origin.operation()} on complex numbers is not supported")
            made: Any = write() if write else self._alike()
        if isinstance(made, Node):
            self._replace(node, made)
        else:
            self.pairs[node] = made

    def _refused(self, what: str) -> PenstockError:
        return PenstockError(
            code="unsupported-dtype", what=what, where=self.origin.describe(self.name),
            limit="the accelerator computes with real numbers, two for each complex one, as far as that has a form",
            hint="write it with real and imaginary parts of their own",
        )  # fmt: skip

    # ---- what there is

    def _replace(self, node: Node, other: Node) -> None:
        if other in self.dependent or node in self.dependent:
            self.dependent.add(other)
        replace_node(self.program, node, other)

    def _value(self, node: Node) -> Any:
        if node not in self.values:
            if node.op == "placeholder":
                found: Any = state_value(self.program, _targets(self.program)[node.name])
            else:
                args, named = pytree.tree_map_only(Node, self._value, (node.args, dict(node.kwargs)))
                target: Any = node.target
                with torch.no_grad():
                    found = target(*args, **named)
            self.values[node] = found
        return self.values[node]

    def _constant(self, value: torch.Tensor, name: str) -> Node:
        value = value.resolve_conj().detach().contiguous().clone()
        numbers = b"" if type(value) is not torch.Tensor else value.numpy().tobytes()
        key = (name if not numbers else "", tuple(value.shape), numbers)
        if key not in self.constants:
            self.constants[key] = add_constant(self.program, name, value)
        return self.constants[key]

    def _pair(self, x: Any) -> ComplexParts:
        """Of a complex tensor or number, or of a real one."""
        if isinstance(x, complex):
            return x.real or None, x.imag or None
        if not isinstance(x, Node):
            return (float(x) or None), None
        if not _is_complex(x):
            return x, None
        if x not in self.pairs:
            if x in self.dependent:
                raise self._refused(f"the complex {x.name!r} is kept from call to call")
            value = self._value(x)
            self.pairs[x] = self._constant(value.real, f"{x.name}.real"), self._constant(value.imag, f"{x.name}.imag")
        return self.pairs[x]

    # ---- arithmetic on parts

    def _times(self, a: RealPart, b: RealPart) -> RealPart:
        if a is None or b is None:
            return None
        if isinstance(a, Node) or isinstance(b, Node):
            first, second = (a, b) if isinstance(a, Node) else (b, a)
            return self.call(aten.mul.Tensor, first, second)
        return a * b

    def _plus(self, a: RealPart, b: RealPart, *, minus: bool = False) -> RealPart:
        if b is None:
            return a
        if a is None:
            return self._times(b, -1.0) if minus else b
        if not isinstance(a, Node) and not isinstance(b, Node):
            return a - b if minus else a + b
        if isinstance(a, Node):
            return self.call(aten.sub.Tensor if minus else aten.add.Tensor, a, b)
        assert isinstance(b, Node)
        return self.call(aten.add.Tensor, self.call(aten.neg.default, b) if minus else b, a)

    def _product(
        self, a: ComplexParts, b: ComplexParts, times: Callable[[RealPart, RealPart], RealPart]
    ) -> ComplexParts:
        real = self._plus(times(a[0], b[0]), times(a[1], b[1]), minus=True)
        return real, self._plus(times(a[0], b[1]), times(a[1], b[0]))

    def _whole(self, part: RealPart, shape: list[int] | None = None) -> Node:
        """A part as a tensor of the shape of the operation's result."""
        shape = list(self.node.meta["val"].shape) if shape is None else shape
        if not isinstance(part, Node):
            return self._constant(torch.full(shape, part or 0.0), f"{self.node.name}.number")
        return part if list(part.meta["val"].shape) == shape else self.call(aten.expand.default, part, shape)

    def _broadcast(self, pair: ComplexParts) -> ComplexParts:
        real, imaginary = (None if part is None else self._whole(part) for part in pair)
        return real, imaginary

    # ---- operations, by their names

    def _alike(self) -> ComplexParts | Node:
        leaves = [self._pair(x) for x in pytree.tree_leaves(self.node.args) if isinstance(x, Node) and _is_complex(x)]
        shapes = {x: list(x.meta["val"].shape) for x in self.node.all_input_nodes}
        named = {k: v for k, v in self.node.kwargs.items() if k != "dtype"}
        if op_name(self.node) == "to_copy":
            return self._to_copy()

        def part(place: int) -> RealPart:
            if place and all(pair[1] is None for pair in leaves):
                return None

            def of(x: Node) -> Node:
                if x.meta["val"].dtype in (torch.int64, torch.int32, torch.bool):
                    return x
                return self._whole(self._pair(x)[place], shapes[x])

            args: Any = pytree.tree_map_only(Node, of, self.node.args)
            return self.call(self.node.target, *args, **named)

        return part(0), part(1)

    def _to_copy(self) -> ComplexParts | Node:
        pair = self._pair(self.node.args[0])
        return pair if _is_complex(self.node) else self._whole(pair[0])

    _convert_element_type = _to_copy

    def _view_as_complex(self) -> ComplexParts:
        x = self.node.args[0]
        return self.call(aten.select.int, x, -1, 0), self.call(aten.select.int, x, -1, 1)

    def _view_as_real(self) -> Node:
        shape = list(self.node.meta["val"].shape)[:-1]
        parts = [self.call(aten.unsqueeze.default, self._whole(p, shape), -1) for p in self._pair(self.node.args[0])]
        return self.call(aten.cat.default, parts, -1)

    def _complex(self) -> ComplexParts:
        return self._broadcast((self.node.args[0], self.node.args[1]))  # pyright: ignore[reportArgumentType]

    def _polar(self) -> ComplexParts:
        size, angle = self.node.args
        turned = self.call(aten.cos.default, angle), self.call(aten.sin.default, angle)
        return self._broadcast(self._product((size, None), turned, self._times))  # pyright: ignore[reportArgumentType]

    def _real(self) -> Node:
        return self._whole(self._pair(self.node.args[0])[0])

    def _imag(self) -> Node:
        return self._whole(self._pair(self.node.args[0])[1])

    def _conj(self) -> ComplexParts:
        real, imaginary = self._pair(self.node.args[0])
        return real, self._times(imaginary, -1.0)

    _conj_physical = _conj

    def _copy(self) -> ComplexParts | Node:
        """One tensor over another: what was there is not read."""
        pair = self._pair(self.node.args[1])
        return self._broadcast(pair) if _is_complex(self.node) else self._whole(pair[0])

    def _abs(self) -> Node:
        square = self._plus(*(self._times(part, part) for part in self._pair(self.node.args[0])))
        return self.call(aten.sqrt.default, self._whole(square))

    def _mul(self) -> ComplexParts:
        a, b = (self._pair(x) for x in self.node.args)
        return self._broadcast(self._product(a, b, self._times))

    def _mm(self) -> ComplexParts:
        a, b = (self._pair(x) for x in self.node.args)
        target = self.node.target

        def times(a: RealPart, b: RealPart) -> RealPart:
            return None if a is None or b is None else self.call(target, a, b)

        return self._product(a, b, times)

    _bmm = _mm

    def _add(self, *, minus: bool = False) -> ComplexParts:
        a, b = (self._pair(x) for x in self.node.args)
        alpha = self._pair(self.node.kwargs.get("alpha", 1))
        if alpha != (1.0, None):
            b = self._product(b, alpha, self._times)
        return self._broadcast((self._plus(a[0], b[0], minus=minus), self._plus(a[1], b[1], minus=minus)))

    def _sub(self) -> ComplexParts:
        return self._add(minus=True)

    def _div(self) -> ComplexParts:
        a, b = (self._pair(x) for x in self.node.args)
        return self._broadcast(self._quotient(a, b))

    def _reciprocal(self) -> ComplexParts:
        return self._broadcast(self._quotient((1.0, None), self._pair(self.node.args[0])))

    def _quotient(self, a: ComplexParts, b: ComplexParts) -> ComplexParts:
        below, above = b[0], a
        if b[1] is not None:
            above = self._product(a, (b[0], self._times(b[1], -1.0)), self._times)
            below = self._plus(self._times(b[0], b[0]), self._times(b[1], b[1]))
        if not isinstance(below, Node):
            factor = 1 / below if below else math.inf
            return self._times(above[0], factor), self._times(above[1], factor)
        shape = list(below.meta["val"].shape)
        parts = (None if x is None else x if isinstance(x, Node) else self._whole(x, shape) for x in above)
        real, imaginary = (None if x is None else self.call(aten.div.Tensor, x, below) for x in parts)
        return real, imaginary

    def _exp(self) -> ComplexParts:
        real, imaginary = self._pair(self.node.args[0])
        size = None if real is None else self.call(aten.exp.default, self._whole(real))
        if imaginary is None:
            return size, None
        angle = self._whole(imaginary)
        turned = self.call(aten.cos.default, angle), self.call(aten.sin.default, angle)
        return turned if size is None else self._product((size, None), turned, self._times)

    # ---- transforms

    def _fft_r2c(self) -> ComplexParts:
        x, dims, norm, half = _transform(self.node)
        self._check_points([x.meta["val"].shape[dim] for dim in dims])
        return self._fourier().real_to_complex(x, dims, norm, half=half)

    def _fft_c2c(self) -> ComplexParts:
        x, dims, norm, forward = _transform(self.node)
        self._check_points([x.meta["val"].shape[dim] for dim in dims])
        return self._fourier().complex_to_complex(self._parts(x), dims, norm, forward=forward)

    def _fft_c2r(self) -> Node:
        x, dims, norm, size = _transform(self.node)
        self._check_points([*(x.meta["val"].shape[dim] for dim in dims[:-1]), size])
        return self._fourier().complex_to_real(self._parts(x), dims, norm, size)

    def _check_points(self, sizes: list[int]) -> None:
        if max(sizes) > MOST_POINTS:
            raise PenstockError(
                code="unsupported-op", what=f"a Fourier transform of {max(sizes):,} points ({self.origin.operation()})",
                where=self.origin.describe(self.name),
                limit=f"it becomes a product with a matrix, of at most {MOST_POINTS:,} by {MOST_POINTS:,} numbers",
                hint="transform shorter pieces, or convolve (a short kernel needs no transform)",
            )  # fmt: skip

    def _parts(self, x: Any) -> tuple[Node, Node | None]:
        shape = list(x.meta["val"].shape)
        real, imaginary = self._pair(x)
        return self._whole(real, shape), None if imaginary is None else self._whole(imaginary, shape)

    def _fourier(self) -> Fourier:
        return Fourier(self.call, self._constant)


def _check_results(output: Node, name: str) -> None:
    for node in output.all_input_nodes:
        if _is_complex(node):
            origin = origin_of(node)
            raise PenstockError(
                code="unsupported-dtype", what=f"a result is complex: {origin.operation()}",
                where=origin.describe(name), limit="results are real numbers",
                hint="return torch.view_as_real of it",
            )  # fmt: skip


def _transform(node: Node) -> Any:
    """What is transformed, along which dims, by which norm, and how; all of it is there, and has no types."""
    return node.args


def _is_complex(node: Any) -> bool:
    value = node.meta.get("val")
    return isinstance(value, torch.Tensor) and value.is_complex()


def _targets(program: ExportedProgram) -> dict[str, str]:
    specs = program.graph_signature.input_specs
    return {s.arg.name: str(s.target) for s in specs if s.kind is not InputKind.USER_INPUT and s.target is not None}


def _dependent(program: ExportedProgram) -> set[Node]:
    """On the inputs, on buffers that forward changes, or on chance."""
    changed = {s.target for s in program.graph_signature.output_specs if s.kind is OutputKind.BUFFER_MUTATION}
    own = {name for name, target in _targets(program).items() if target not in changed}
    found = set[Node]()
    for node in program.graph.nodes:
        given = node.op == "placeholder" and node.name not in own
        if draws(node) or given or node.op == "output" or any(x in found for x in node.all_input_nodes):
            found.add(node)
    return found


def _drop_unread_state(program: ExportedProgram) -> None:
    """Complex weights whose parts are there in their place."""
    specs = program.graph_signature.input_specs
    for node in [n for n in program.graph.nodes if n.op == "placeholder" and _is_complex(n) and not n.users]:
        specs[:] = [s for s in specs if s.kind is InputKind.USER_INPUT or s.arg.name != node.name]
        if all(s.arg.name != node.name for s in specs):
            program.graph.erase_node(node)
