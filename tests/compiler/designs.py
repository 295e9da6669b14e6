"""Random canonical programs and random legal designs for them: what the property tests of the compiler draw from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from compiler.analysis.graph import TensorOp, read_graph
from compiler.design import Design, KernelDesign
from compiler.frontend.context import make_context
from compiler.program import Port, Program, Signature

KINDS = ("int8", "float32")
_SCALARS = {
    "int8": ("i8", "i32", "%a = arith.extsi %x : i8 to i32\n%b = arith.extsi %w : i8 to i32\n%p = arith.muli %a, %b : i32", "arith.addi"),
    "float32": ("f32", "f32", "%p = arith.mulf %x, %w : f32", "arith.addf"),
}  # fmt: skip


@dataclass(frozen=True)
class Dense:
    """One dense layer of a drawn network: width, whether its weight is stored transposed, whether it is skipped over."""

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
            st.builds(Dense, st.sampled_from([1, 2, 4, 5, 6, 8]), st.booleans(), st.booleans()), min_size=1, max_size=3
        )
    )
    seed = draw(st.integers(0, 2**16))
    return build_network(kind, batch, first, tuple(layers), seed)


def build_network(kind: str, batch: int | None, first: int, layers: tuple[Dense, ...], seed: int) -> Program:
    """The program as text, parsed: dense -> bias, relu and narrowing -> (sum with the layer's input) -> ..."""
    scalar, wide, product, add = _SCALARS[kind]
    generator = np.random.default_rng(seed)
    params: dict[str, np.ndarray] = {}
    arguments = [f'%in: tensor<{_shape(batch, first)}{scalar}> {{penstock.name = "x", penstock.kind = "input"}}']
    body: list[str] = []
    value, width = "%in", first
    rows, ij = ("i, ", "(i, j)") if batch else ("", "(j)")
    parallel = '"parallel", ' if batch else ""
    for index, layer in enumerate(layers):
        name, outputs = f"fc{index}", layer.width
        weight_shape = (width, outputs) if layer.transposed else (outputs, width)
        weight_map = "(k, j)" if layer.transposed else "(j, k)"
        params[f"{name}.weight"] = _values(generator, kind, weight_shape)
        params[f"{name}.bias"] = _values(generator, kind, (outputs,), wide=True)
        dims = "x".join(str(d) for d in weight_shape)
        arguments += [
            f'%{name}w: tensor<{dims}x{scalar}> {{penstock.name = "{name}.weight", penstock.kind = "param"}}',
            f'%{name}b: tensor<{outputs}x{wide}> {{penstock.name = "{name}.bias", penstock.kind = "param"}}',
        ]
        shape = _shape(batch, outputs)
        zero = "0.0" if kind == "float32" else "0"
        body.append(f"""
  %{name}z = arith.constant {zero} : {wide}
  %{name}e = tensor.empty() : tensor<{shape}{wide}>
  %{name}f = linalg.fill ins(%{name}z : {wide}) outs(%{name}e : tensor<{shape}{wide}>) -> tensor<{shape}{wide}>
  %{name}m = linalg.generic {{indexing_maps = [affine_map<({rows}j, k) -> ({rows}k)>, affine_map<({rows}j, k) -> {weight_map}>, affine_map<({rows}j, k) -> {ij}>], iterator_types = [{parallel}"parallel", "reduction"]}} ins({value}, %{name}w : tensor<{_shape(batch, width)}{scalar}>, tensor<{dims}x{scalar}>) outs(%{name}f : tensor<{shape}{wide}>) attrs = {{penstock.layer = "{name}"}} {{
  ^bb0(%x: {scalar}, %w: {scalar}, %acc: {wide}):
    {product}
    %s = {add} %acc, %p : {wide}
    linalg.yield %s : {wide}
  }} -> tensor<{shape}{wide}>
  %{name}o = tensor.empty() : tensor<{shape}{scalar}>
  %{name}r = linalg.generic {{indexing_maps = [affine_map<{ij} -> {ij}>, affine_map<{ij} -> (j)>, affine_map<{ij} -> {ij}>], iterator_types = [{parallel}"parallel"]}} ins(%{name}m, %{name}b : tensor<{shape}{wide}>, tensor<{outputs}x{wide}>) outs(%{name}o : tensor<{shape}{scalar}>) attrs = {{penstock.layer = "{name}.relu"}} {{
  ^bb0(%x: {wide}, %b: {wide}, %old: {scalar}):
    %t = {add} %x, %b : {wide}
    {_relu(kind)}
    linalg.yield %y : {scalar}
  }} -> tensor<{shape}{scalar}>""")
        if layer.skip and width == outputs:
            sum_op = "arith.addi" if kind == "int8" else "arith.addf"
            body.append(f"""
  %{name}se = tensor.empty() : tensor<{shape}{scalar}>
  %{name}s = linalg.generic {{indexing_maps = [affine_map<{ij} -> {ij}>, affine_map<{ij} -> {ij}>, affine_map<{ij} -> {ij}>], iterator_types = [{parallel}"parallel"]}} ins(%{name}r, {value} : tensor<{shape}{scalar}>, tensor<{shape}{scalar}>) outs(%{name}se : tensor<{shape}{scalar}>) attrs = {{penstock.layer = "{name}.sum"}} {{
  ^bb0(%x: {scalar}, %b: {scalar}, %old: {scalar}):
    %t = {sum_op} %x, %b : {scalar}
    linalg.yield %t : {scalar}
  }} -> tensor<{shape}{scalar}>""")
            value = f"%{name}s"
        else:
            value = f"%{name}r"
        width = outputs
    result = f"tensor<{_shape(batch, width)}{scalar}>"
    text = f"func.func @main({', '.join(arguments)}) -> {result} {{{''.join(body)}\n  func.return {value} : {result}\n}}"
    module = Parser(make_context(), text).parse_module()
    module.verify()
    ports = [Port("x", _dims(batch, first), kind), Port("output", _dims(batch, width), kind)]
    return Program("drawn", module, params, Signature((ports[0],), (ports[1],)))


@st.composite
def designs(draw: st.DrawFn, module: ModuleOp) -> Design:
    """A legal design: any divisors, any order, weights on the chip or streamed."""
    kernels = {operation.layer: draw(_kernels(operation)) for operation in read_graph(module).operations}
    return Design(platform="u55c", clock_mhz=300.0, kernels=kernels)


@st.composite
def _kernels(draw: st.DrawFn, operation: TensorOp) -> KernelDesign:
    tile = tuple(draw(st.sampled_from(divisors(t))) for t in operation.trips)
    unroll = tuple(draw(st.sampled_from(divisors(t))) for t in tile)
    order = tuple(draw(st.permutations(range(len(tile)))))
    return KernelDesign(tile, unroll, order, draw(st.sampled_from(["rom", "stream"])))


def divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def _relu(kind: str) -> str:
    if kind == "float32":
        return "%c = arith.constant 0.0 : f32\n%y = arith.maximumf %t, %c : f32"
    return "%c = arith.constant 0 : i32\n%u = arith.maxsi %t, %c : i32\n%h = arith.constant 5 : i32\n%v = arith.shrsi %u, %h : i32\n%y = arith.trunci %v : i32 to i8"


def _values(generator: np.random.Generator, kind: str, shape: tuple[int, ...], *, wide: bool = False) -> np.ndarray:
    if kind == "float32":
        return generator.standard_normal(shape).astype(np.float32)
    limit = 1000 if wide else 127
    return generator.integers(-limit, limit, shape, endpoint=True).astype(np.int32 if wide else np.int8)


def _dims(batch: int | None, width: int) -> tuple[int, ...]:
    return (batch, width) if batch else (width,)


def _shape(batch: int | None, width: int) -> str:
    return "".join(f"{d}x" for d in _dims(batch, width))
