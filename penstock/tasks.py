"""The language of task programs: what a file imports that describes a dataflow of its own. docs/tasks.md teaches it.

A task program is read by Penstock and never executed, so nothing here computes: these are the words of the language,
for editors and type checkers, and so that such a file can be imported. `penstock compile file.py` is what runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NoReturn, TypeVar, overload

__all__ = [
    "Layout", "Stream", "Tile", "bfloat16", "block", "broadcast", "bundle", "chain", "collect", "exp", "feed", "fit",
    "fixed", "float16", "float32", "grid", "implements",
    "inject", "matmul", "place_on", "program", "sigmoid", "sqrt", "stack", "tanh", "task", "transpose", "unroll",
    "where",
    "int2", "int3", "int4", "int5", "int6", "int7", "int8", "int9", "int10", "int11", "int12", "int13",
    "int14", "int15", "int16", "int17", "int18", "int19", "int20", "int21", "int22", "int23", "int24", "int25",
    "int26", "int27", "int28", "int29", "int30", "int31", "int32",
]  # fmt: skip

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _described(*_: Any, **__: Any) -> NoReturn:
    raise TypeError("a task program is described, not executed: penstock compile FILE.py")


class Tile:
    """A number or a tile of numbers inside a task."""

    T: Tile
    shape: tuple[int, ...]

    def __getitem__(self, index: Any) -> Tile:
        _described()

    def __setitem__(self, index: Any, value: Any) -> None:
        _described()

    def _with(self, other: Any) -> Tile:
        _described()

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _with
    __matmul__ = __rshift__ = __lshift__ = __and__ = __or__ = __xor__ = _with
    __lt__ = __le__ = __gt__ = __ge__ = _with

    def __neg__(self) -> Tile:
        _described()

    def __abs__(self) -> Tile:
        _described()

    def __bool__(self) -> bool:
        """What lets min and max choose between tiles; no other condition may be a tile's."""
        _described()


class Layout:
    """A letter a dim: R lies with every instance, S0 is cut along the first axis of the task's grid."""

    def __init__(self, *letters: str) -> None:
        self.letters = "".join(letters)


class Number:
    """A type of numbers; with a shape, of tiles: int8[16, 16]. Called, it casts."""

    def __init__(self, name: str, shape: tuple[int, ...] = ()) -> None:
        self.name, self.shape = name, shape

    def __getitem__(self, shape: int | tuple[int, ...]) -> Number:
        return Number(self.name, shape if isinstance(shape, tuple) else (shape,))

    def __matmul__(self, layout: Layout) -> Number:
        return self

    def __call__(self, value: Any) -> Tile:
        _described()


class Channel:
    """One stream, which one task puts into and one task gets from."""

    def put(self, value: Any) -> None:
        """Waits for a free place, and puts a token in."""
        _described()

    def get(self) -> Tile:
        """Waits for a token, and takes it out."""
        _described()


class Channels(Channel):
    """A stream, or with sizes behind it an array of streams."""

    def __init__(self, kind: Any, sizes: tuple[int, ...] = ()) -> None:
        self.kind, self.sizes = kind, sizes

    def __getitem__(self, index: Any) -> Channels:
        return Channels(self.kind, self.sizes)


class _Streams(type):
    def __getitem__(cls, kind: Any) -> Channels:
        return Channels(kind)


class Stream(metaclass=_Streams):
    """`Stream[T]`, `Stream[T, shape]`, `Stream[T, shape, depth]`; an array of them with sizes behind it."""


def fixed(bits: int, whole: int) -> Any:
    """A number with a fixed point: all its bits, and those before the point, with the sign."""
    return Number(f"fixed({bits}, {whole})")


def program(function: _Function) -> _Function:
    """Marks the function that declares streams and tasks; its arguments are the tensors."""
    return function


def implements(*layers: str) -> Callable[[_Function], _Function]:
    """Names the layers of a model in whose place a program stands: `MODEL#program.py` puts it there."""
    return lambda one: one


@overload
def task(function: _Function) -> _Function: ...
@overload
def task(*, grid: tuple[int, ...] = ()) -> Callable[[_Function], _Function]: ...
def task(function: Any = None, *, grid: tuple[int, ...] = ()) -> Any:
    """Marks a task; with a grid, one instance for each of its places, which are the first arguments."""
    return function if function is not None else lambda one: one


def grid(*sizes: int) -> Iterable[Any]:
    """Nested loops over all of these."""
    _described(sizes)


def unroll(*bounds: int) -> Iterable[Any]:
    """A loop that is written out, so that its counter is a plain number."""
    _described(bounds)


def block(model: str, *ends: Any, layers: str | tuple[str, ...] = (), lanes: int = 1, name: str = "") -> None:
    """Layers of a model as tasks between these streams and tensors: what goes in, then what comes out."""
    _described(model, ends, layers, lanes, name)


def feed(tensor: Any, stream: Any) -> None:
    """A task of its own sends the tensor into the stream: in order, by elements or tiles as its tokens are."""
    _described(tensor, stream)


def collect(stream: Any, tensor: Any) -> None:
    """A task of its own stores what comes out of the stream: the tensor in order, by elements or tiles."""
    _described(stream, tensor)


def bundle(task: Callable[..., Any], count: int = 0, *, inside: int = 0) -> None:
    """So many neighbours of a task's grid share an element, all of them without a count; `inside` so many loops."""
    _described(task, count, inside)


def place_on(*, rows: int, columns: int, links: int = 0, neighbours: bool = False) -> None:
    """Elements stand on a grid: of its links, each carries so many streams; or streams lead to neighbours alone."""
    _described(rows, columns, links, neighbours)


def chain(*tasks: Callable[..., Any]) -> None:
    """Each instance and the one that it sends to share an element, and their stream stays in it."""
    _described(tasks)


def fit(*, elements: int = 0, ports: int = 0, memory_bits: int = 0) -> None:
    """A search is to find which instances share elements: so many elements, of so many ports and bits each."""
    _described(elements, ports, memory_bits)


def inject(
    task: Callable[..., Any],
    name: str,
    *,
    reads: Mapping[str, int],
    writes: Mapping[str, int],
    ii: int,
    depth: int,
    systemverilog: str = "",
    module: str = "",
    cpp: str = "",
    function: str = "",
    stalls: str = "",
    lut: int = 0,
    ff: int = 0,
    dsp: int = 0,
    bram: int = 0,
) -> None:
    """A body written by hand for a task, under a name, with its contract; the task's own text stays what it means."""
    _described(task, name, reads, writes, ii, depth, systemverilog, module, cpp, function, stalls, lut, ff, dsp, bram)


def where(condition: Any, one: Any, other: Any) -> Tile:
    """The one value where the condition holds, the other elsewhere."""
    _described(condition, one, other)


def matmul(left: Any, right: Any) -> Tile:
    """All products of two tiles at a time, summed along the inner dim."""
    _described(left, right)


def transpose(value: Any) -> Tile:
    """Rows as columns."""
    _described(value)


def stack(values: Sequence[Any]) -> Tile:
    """Values of one shape as one with a first dim that counts them."""
    _described(values)


def broadcast(value: Any, shape: Any) -> Tile:
    """The value repeated to fill a shape."""
    _described(value, shape)


def exp(value: Any) -> Tile:
    """e to the power of each."""
    _described(value)


def sqrt(value: Any) -> Tile:
    """The root of each."""
    _described(value)


def tanh(value: Any) -> Tile:
    """The hyperbolic tangent of each."""
    _described(value)


def sigmoid(value: Any) -> Tile:
    """1 / (1 + exp(-x)) of each."""
    _described(value)


float32: Any = Number("float32")
bfloat16: Any = Number("bfloat16")
float16: Any = Number("float16")
int2: Any = Number("int2")
int3: Any = Number("int3")
int4: Any = Number("int4")
int5: Any = Number("int5")
int6: Any = Number("int6")
int7: Any = Number("int7")
int8: Any = Number("int8")
int9: Any = Number("int9")
int10: Any = Number("int10")
int11: Any = Number("int11")
int12: Any = Number("int12")
int13: Any = Number("int13")
int14: Any = Number("int14")
int15: Any = Number("int15")
int16: Any = Number("int16")
int17: Any = Number("int17")
int18: Any = Number("int18")
int19: Any = Number("int19")
int20: Any = Number("int20")
int21: Any = Number("int21")
int22: Any = Number("int22")
int23: Any = Number("int23")
int24: Any = Number("int24")
int25: Any = Number("int25")
int26: Any = Number("int26")
int27: Any = Number("int27")
int28: Any = Number("int28")
int29: Any = Number("int29")
int30: Any = Number("int30")
int31: Any = Number("int31")
int32: Any = Number("int32")
