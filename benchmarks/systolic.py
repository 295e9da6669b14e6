"""A systolic array as a network of tasks: each processing element hands its operands on to its neighbours.

Element (i, j) reads one value a cycle from its west and its north, adds their product to a sum of its own (output
stationary), sends both on to its east and south, and its sum after the last product. Nothing is broadcast; the skew
between elements comes from their handshakes. What feeds and drains the array is there to make the design whole.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from penstock.profiling.model import parse_module
from penstock.profiling.protocol import ProfileRequest

_FIFO = "!stream.stream<vector<1x{kind}>, depth: 2>"
_BYTES, _SUMS = _FIFO.format(kind="i8"), _FIFO.format(kind="i32")


def systolic_array(size: int, tiles: int, depth: int) -> ModuleOp:
    """`size` × `size` elements that make `tiles` tiles of a product, each of `depth` products a sum."""
    edge = range(size)
    feeds = [f"a{i}" for i in edge] + [f"b{j}" for j in edge]
    count = tiles * depth
    arguments = [f"%{name}: memref<{count}xi8>" for name in feeds] + [
        f"%c{i}: memref<{tiles * size}xi32>" for i in edge
    ]
    names = ", ".join(f'"{name}"' for name in (*feeds, *(f"c{i}" for i in edge)))
    kinds = ", ".join(['"input"'] * len(feeds) + ['"output"'] * size)
    lines = [
        "builtin.module {",
        f'"stream.top"() <{{sym_name = "systolic", argument_names = [{names}], argument_kinds = [{kinds}],',
        f"  layouts = [{', '.join(['unit'] * (len(feeds) + size))}]}}> ({{",
        f"^bb0({', '.join(arguments)}):",
    ]
    for i in edge:
        for j in edge:
            lines += [_channel(f"a{i}_{j}", _BYTES), _channel(f"b{i}_{j}", _BYTES), _channel(f"c{i}_{j}", _SUMS)]
    for i in edge:
        lines += _feed(f"a{i}", f"a{i}_0", count) + _feed(f"b{i}", f"b0_{i}", count)
    for i in edge:
        for j in edge:
            lines += _element(i, j, size, tiles, depth)
    for i in edge:
        lines += _drain(i, size, tiles)
    lines += ["}) : () -> ()", "}"]
    return parse_module(ProfileRequest("systolic", "\n".join(lines), "ecp5-85k", 100.0))


def elements(size: int) -> list[str]:
    return [f"pe{i}_{j}" for i in range(size) for j in range(size)]


def operands(
    left: NDArray[np.int8], right: NDArray[np.int8], size: int
) -> tuple[dict[str, NDArray[np.int8]], dict[str, NDArray[np.int32]]]:
    """What flows in for `left` @ `right`, tile row by tile row, and what must flow out."""
    rows, columns = left.shape[0] // size, right.shape[1] // size
    inputs: dict[str, NDArray[np.int8]] = {}
    for i in range(size):
        inputs[f"a{i}_0"] = np.repeat(left[i::size], columns, axis=0).reshape(-1, 1)
        inputs[f"b0_{i}"] = np.tile(right.T[i::size], (rows, 1)).reshape(-1, 1)
    product = left.astype(np.int32) @ right.astype(np.int32)
    outputs = {f"c{i}_{j}": product[i::size, j::size].reshape(-1, 1) for i in range(size) for j in range(size)}
    return inputs, outputs


def _channel(name: str, kind: str) -> str:
    return f'%{name} = stream.stream "{name}" : {kind}'


def _task(name: str, body: list[str]) -> list[str]:
    head = f'"stream.task"() <{{sym_name = "{name}", layer = "product", group = #builtin.int<0>}}> ({{'
    return [head, *body, "}) : () -> ()"]


def _nest(loops: str, body: list[str]) -> list[str]:
    head = f'"nest.nest"() <{{sym_name = "run", loops = #nest.loops<{loops}>, block_loops = #builtin.int<0>}}> ({{'
    return [head, *body, "}) : () -> ()"]


def _feed(source: str, channel: str, count: int) -> list[str]:
    body = [
        f'%t = "nest.load"(%{source}) <{{address = affine_map<(d0) -> (d0)>, when = #nest.when<>}}> : '
        f"(memref<{count}xi8>) -> vector<1xi8>",
        f'"nest.write"(%t, %{channel}) <{{when = #nest.when<>}}> : (vector<1xi8>, {_BYTES}) -> ()',
    ]
    return _task(f"feed_{source}", _nest(f"n: {count}", body))


def _element(i: int, j: int, size: int, tiles: int, depth: int) -> list[str]:
    lane = "affine_map<(d0) -> (d0)>"
    body = [
        f'%a = "nest.read"(%a{i}_{j}) <{{when = #nest.when<>}}> : ({_BYTES}) -> vector<1xi8>',
        f'%b = "nest.read"(%b{i}_{j}) <{{when = #nest.when<>}}> : ({_BYTES}) -> vector<1xi8>',
    ]
    passes = "<{when = #nest.when<>}> : (vector<1xi8>, " + _BYTES + ") -> ()"
    if j + 1 < size:
        body.append(f'"nest.write"(%a, %a{i}_{j + 1}) {passes}')
    if i + 1 < size:
        body.append(f'"nest.write"(%b, %b{i + 1}_{j}) {passes}')
    first, last = "#nest.when<d1 eq 0>", f"#nest.when<d1 eq {depth - 1}>"
    cell = "<{address = affine_map<(d0, d1) -> (0)>, when = #nest.when<>}>"
    body += [
        f'%p = "nest.map"(%a, %b) <{{lanes = [{lane}, {lane}]}}> ({{',
        "^bb0(%x: i8, %y: i8):",
        "%u = arith.extsi %x : i8 to i32",
        "%v = arith.extsi %y : i8 to i32",
        "%m = arith.muli %u, %v : i32",
        "nest.yield %m : i32",
        "}) : (vector<1xi8>, vector<1xi8>) -> vector<1xi32>",
        '%z = "nest.constant"() <{value = 0 : i32}> : () -> vector<1xi32>',
        f'%o = "nest.load"(%acc) {cell} : (memref<1xi32>) -> vector<1xi32>',
        f'%s = "nest.select"(%z, %o) <{{when = {first}}}> : (vector<1xi32>, vector<1xi32>) -> vector<1xi32>',
        f'%r = "nest.map"(%s, %p) <{{lanes = [{lane}, {lane}]}}> ({{',
        "^bb0(%x: i32, %y: i32):",
        "%m = arith.addi %x, %y : i32",
        "nest.yield %m : i32",
        "}) : (vector<1xi32>, vector<1xi32>) -> vector<1xi32>",
        f'"nest.store"(%r, %acc) {cell} : (vector<1xi32>, memref<1xi32>) -> ()',
        f'"nest.write"(%r, %c{i}_{j}) <{{when = {last}}}> : (vector<1xi32>, {_SUMS}) -> ()',
    ]
    buffer = (
        '%acc = stream.buffer "acc" {directive.banks = #directive.banks<partition: none>, '
        "directive.storage = #directive.storage<registers, any>} : memref<1xi32>"
    )
    return _task(f"pe{i}_{j}", [buffer, *_nest(f"t: {tiles}, k: {depth}", body)])


def _drain(i: int, size: int, tiles: int) -> list[str]:
    body: list[str] = []
    for j in range(size):
        here = f"#nest.when<d1 eq {j}>"
        body += [
            f'%t{j} = "nest.read"(%c{i}_{j}) <{{when = {here}}}> : ({_SUMS}) -> vector<1xi32>',
            f'"nest.store"(%t{j}, %c{i}) <{{address = affine_map<(d0, d1) -> (d0 * {size} + d1)>, when = {here}}}> : '
            f"(vector<1xi32>, memref<{tiles * size}xi32>) -> ()",
        ]
    return _task(f"drain_{i}", _nest(f"t: {tiles}, j: {size}", body))
