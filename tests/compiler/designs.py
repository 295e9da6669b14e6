"""Random canonical programs and random legal designs for them: what the property tests of the compiler draw from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from penstock.compiler.analysis.graph import TensorOp, read_graph
from penstock.compiler.design import Design, KernelDesign
from penstock.compiler.dialects.bindings import mixture
from penstock.compiler.frontend.context import make_context
from penstock.compiler.program import Port, Program, Signature
from penstock.compiler.schedule import implementations, load_library
from penstock.compiler.transforms.pad_dims import Dims

KINDS = ("int8", "float32")
_INT8_PRODUCT = """%a = arith.extsi %x : i8 to i32
    %b = arith.extsi %w : i8 to i32
    %p = arith.muli %a, %b : i32"""
_INT8_RELU = """%c = arith.constant 0 : i32
    %u = arith.maxsi %t, %c : i32
    %h = arith.constant 5 : i32
    %v = arith.shrsi %u, %h : i32
    %y = arith.trunci %v : i32 to i8"""
_FLOAT_RELU = """%c = arith.constant 0.0 : f32
    %y = arith.maximumf %t, %c : f32"""
_SCALARS = {
    "int8": ("i8", "i32", _INT8_PRODUCT, "arith.addi", _INT8_RELU),
    "float32": ("f32", "f32", "%p = arith.mulf %x, %w : f32", "arith.addf", _FLOAT_RELU),
}


@dataclass(frozen=True)
class Dense:
    """One dense layer of a drawn network; `skip` adds its input to its output where the widths agree."""

    width: int
    transposed: bool
    skip: bool


@st.composite
def networks(draw: st.DrawFn) -> Program:
    """A few dense layers with bias and relu, with or without a batch dim, some with a residual sum."""
    kind = draw(st.sampled_from(KINDS))
    batch = draw(st.sampled_from([None, 1, 2, 3]))
    first = draw(st.sampled_from([1, 3, 4, 6, 8]))
    layers = draw(
        st.lists(
            st.builds(Dense, st.sampled_from([1, 2, 4, 5, 6, 8]), st.booleans(), st.booleans()),
            min_size=1,
            max_size=3,
        )
    )
    seed = draw(st.integers(0, 2**16))
    return build_network(kind, batch, first, tuple(layers), seed, tap=draw(st.booleans()), rotate=draw(st.booleans()))


def build_network(
    kind: str,
    batch: int | None,
    first: int,
    layers: tuple[Dense, ...],
    seed: int,
    *,
    tap: bool = False,
    rotate: bool = False,
) -> Program:
    """The program as text, parsed: dense -> bias, relu and narrowing -> (sum with the layer's input) -> ...

    With `tap` the first layer's output is a result of the model too; with `rotate` the halves of the last one
    change places, one of them doubled. There is an input that nothing reads.
    """
    scalar, wide, product, add, relu = _SCALARS[kind]
    generator = np.random.default_rng(seed)
    params: dict[str, np.ndarray] = {}
    arguments = [
        f'%unread: tensor<3x{scalar}> {{penstock.name = "unread", penstock.kind = "input"}}',
        f'%in: tensor<{_shape(batch, first)}{scalar}> {{penstock.name = "x", penstock.kind = "input"}}',
    ]
    body: list[str] = []
    value, width = "%in", first
    tapped, tapped_width = value, width
    rows, ij = ("i, ", "(i, j)") if batch else ("", "(j)")
    outer = '"parallel", ' if batch else ""
    for index, layer in enumerate(layers):
        n, outputs = f"fc{index}", layer.width
        weight_shape = (width, outputs) if layer.transposed else (outputs, width)
        params[f"{n}.weight"] = _values(generator, kind, weight_shape)
        params[f"{n}.bias"] = _values(generator, kind, (outputs,), wide=True)
        weight_map = "(k, j)" if layer.transposed else "(j, k)"
        w = f"tensor<{'x'.join(str(d) for d in weight_shape)}x{scalar}>"
        b, x = f"tensor<{outputs}x{wide}>", f"tensor<{_shape(batch, width)}{scalar}>"
        sums, out = f"tensor<{_shape(batch, outputs)}{wide}>", f"tensor<{_shape(batch, outputs)}{scalar}>"
        arguments += [
            f'%{n}w: {w} {{penstock.name = "{n}.weight", penstock.kind = "param"}}',
            f'%{n}b: {b} {{penstock.name = "{n}.bias", penstock.kind = "param"}}',
        ]
        contraction = _traits(
            [f"({rows}j, k) -> ({rows}k)", f"({rows}j, k) -> {weight_map}", f"({rows}j, k) -> {ij}"],
            f'{outer}"parallel", "reduction"',
        )
        elementwise = [f"{ij} -> {ij}", f"{ij} -> (j)", f"{ij} -> {ij}"]
        zero = "0.0" if kind == "float32" else "0"
        body.append(f"""
  %{n}z = arith.constant {zero} : {wide}
  %{n}e = tensor.empty() : {sums}
  %{n}f = linalg.fill ins(%{n}z : {wide}) outs(%{n}e : {sums}) -> {sums}
  %{n}m = linalg.generic {contraction} ins({value}, %{n}w : {x}, {w}) outs(%{n}f : {sums}) {_layer(n)} {{
  ^bb0(%x: {scalar}, %w: {scalar}, %acc: {wide}):
    {product}
    %s = {add} %acc, %p : {wide}
    linalg.yield %s : {wide}
  }} -> {sums}
  %{n}o = tensor.empty() : {out}
  %{n}r = linalg.generic {_traits(elementwise, f'{outer}"parallel"')}
      ins(%{n}m, %{n}b : {sums}, {b}) outs(%{n}o : {out}) {_layer(f"{n}.relu")} {{
  ^bb0(%x: {wide}, %b: {wide}, %old: {scalar}):
    %t = {add} %x, %b : {wide}
    {relu}
    linalg.yield %y : {scalar}
  }} -> {out}""")
        previous, value = value, f"%{n}r"
        if layer.skip and width == outputs:
            body.append(f"""
  %{n}se = tensor.empty() : {out}
  %{n}s = linalg.generic {_traits([f"{ij} -> {ij}"] * 3, f'{outer}"parallel"')}
      ins({value}, {previous} : {out}, {out}) outs(%{n}se : {out}) {_layer(f"{n}.sum")} {{
  ^bb0(%x: {scalar}, %b: {scalar}, %old: {scalar}):
    %t = {add} %x, %b : {scalar}
    linalg.yield %t : {scalar}
  }} -> {out}""")
            value = f"%{n}s"
        width = outputs
        if index == 0:
            tapped, tapped_width = value, width
    if rotate and width % 2 == 0:
        body.append(_rotation(value, batch, width, scalar, add))
        value = "%turned"
    results = [(value, width)] + ([(tapped, tapped_width)] if tap else [])
    types = ", ".join(f"tensor<{_shape(batch, w)}{scalar}>" for _, w in results)
    head = f"func.func @main({', '.join(arguments)}) -> ({types})"
    values = ", ".join(v for v, _ in results)
    text = f"{head} {{{''.join(body)}\n  func.return {values} : {types}\n}}"
    module = Parser(make_context(), text).parse_module()
    module.verify()
    inputs = (Port("unread", (3,), kind), Port("x", _dims(batch, first), kind))
    outputs_of = tuple(Port(f"output{i}", _dims(batch, w), kind) for i, (_, w) in enumerate(results))
    return Program("drawn", module, params, Signature(inputs, outputs_of))


def _rotation(value: str, batch: int | None, width: int, scalar: str, add: str) -> str:
    whole, half = f"tensor<{_shape(batch, width)}{scalar}>", f"tensor<{_shape(batch, width // 2)}{scalar}>"
    zeros, ones = ("0, ", "1, ") if batch else ("", "")
    sizes = f"[{f'{batch}, ' if batch else ''}{width // 2}] [{ones}1]"
    ij = "(i, j)" if batch else "(j)"
    iterators = '"parallel", "parallel"' if batch else '"parallel"'
    return f"""
  %low = tensor.extract_slice {value}[{zeros}0] {sizes} : {whole} to {half}
  %high = tensor.extract_slice {value}[{zeros}{width // 2}] {sizes} : {whole} to {half}
  %twice0 = tensor.empty() : {half}
  %twice = linalg.generic {_traits([f"{ij} -> {ij}"] * 2, iterators)}
      ins(%high : {half}) outs(%twice0 : {half}) {_layer("twice")} {{
  ^bb0(%x: {scalar}, %old: {scalar}):
    %t = {add} %x, %x : {scalar}
    linalg.yield %t : {scalar}
  }} -> {half}
  %turned = tensor.concat dim({1 if batch else 0}) %twice, %low : ({half}, {half}) -> {whole}"""


def _traits(maps: list[str], iterators: str) -> str:
    return f"{{indexing_maps = [{', '.join(f'affine_map<{m}>' for m in maps)}], iterator_types = [{iterators}]}}"


def _layer(name: str) -> str:
    return f'attrs = {{penstock.layer = "{name}"}}'


@st.composite
def designs(draw: st.DrawFn, module: ModuleOp, *, wide: bool = False) -> Design:
    """A legal design: any divisors, any order, weights on the chip or streamed, any kernels.

    With `wide`, dims are padded, operators are built of anything that Vitis has, and iterations are any cycles apart,
    and inputs are loaded once more.
    """
    graph = read_graph(module)
    operations, dims = graph.operations, Dims(graph)
    sizes = {n: draw(st.sampled_from(sizes_of(dims, n))) if wide else size for n, size in dims.sizes.items()}
    kernels: dict[str, KernelDesign] = {}
    for operation in operations:
        trips = [sizes[dims.of_loop(operation, d)] for d in range(len(operation.trips))]
        kernels[operation.layer] = draw(_kernels(operation, trips, wide))
    groups: dict[str, int] = {}
    group = 0
    if draw(st.booleans()):
        for operation in operations:
            group += draw(st.integers(0, 1))
            groups[operation.layer] = group
    return Design(platform="u55c", clock_mhz=300.0, kernels=kernels, groups=groups)


@st.composite
def _kernels(draw: st.DrawFn, operation: TensorOp, trips: list[int], wide: bool) -> KernelDesign:
    tile = tuple(draw(st.sampled_from(divisors(t))) for t in trips)
    unroll = tuple(draw(st.sampled_from(divisors(t))) for t in tile)
    order = tuple(draw(st.permutations(range(len(tile)))))
    library, bindings = load_library("vitis-ultrascale-plus", 300.0), dict[str, str]()
    for name in dict.fromkeys(op.name for op in operation.op.body.block.ops if wide):
        if len(known := implementations(library, name, 8 if name.endswith("i") else 32)) > 1 and draw(st.booleans()):
            some = draw(st.integers(0, 4))  # of the first implementation, all others of the second
            bindings[name] = mixture(some, *known[:2]) if some else draw(st.sampled_from(known))
    interval = draw(st.sampled_from([1, 3, 40])) if wide else 1
    reload = draw(st.booleans()) if wide else False
    return KernelDesign(tile, unroll, order, draw(st.sampled_from(["rom", "stream"])), bindings, interval, reload)


def sizes_of(dims: Dims, number: int) -> list[int]:
    """What a dim may be padded to, its own size first."""
    size = dims.sizes[number]
    return [size] if number in dims.unfit else list(range(size, min(2 * size, size + 4)))


def divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def _values(generator: np.random.Generator, kind: str, shape: tuple[int, ...], *, wide: bool = False) -> np.ndarray:
    if kind == "float32":
        return generator.standard_normal(shape).astype(np.float32)
    limit = 1000 if wide else 127
    return generator.integers(-limit, limit, shape, endpoint=True).astype(np.int32 if wide else np.int8)


def _dims(batch: int | None, width: int) -> tuple[int, ...]:
    return (batch, width) if batch else (width,)


def _shape(batch: int | None, width: int) -> str:
    return "".join(f"{d}x" for d in _dims(batch, width))
