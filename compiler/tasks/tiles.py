"""Values of a task: tiles of numbers, what is computed of them lane by lane, and how they are cast and repeated."""

from __future__ import annotations

import ast
import math

from penstock.compiler.tasks.affine import Affine, Remainder
from penstock.compiler.tasks.kinds import (
    MOST_FRACTION,
    TileKind,
    bits_of,
    fixed,
    fraction_of,
    is_fixed,
    is_float,
    joined,
)
from penstock.compiler.tasks.source import ProgramText, TaskError
from penstock.compiler.tasks.tree import Apply, Const, Expr, Fetch, Fold, Join, Memory, Shuffle, Var
from penstock.compiler.tasks.values import (
    Builtin,
    ReadValue,
    StreamArray,
    TensorArgument,
)

MOST_LANES = 1 << 14
_BITS = 32
LARGEST_FLOAT = 3.4028234663852886e38
"""Of float32."""
RUNTIME = (Const, Var, Fetch, Apply, Shuffle, Join, Fold)


class TileValues:
    """What can be made of values. `names` is what the text's names mean, `trips` the loops around."""

    def __init__(self, source: ProgramText, names: dict[str, ReadValue], trips: dict[int, int]) -> None:
        self.source, self.names, self.trips = source, names, trips

    def error(self, node: ast.AST, what: str, hint: str = "", limit: str = "") -> TaskError:
        return self.source.error(node, what, hint, limit)

    def say(self, value: ReadValue) -> str:
        match value:
            case Affine() | Remainder():
                return "a number that depends on a loop's counter"
            case Memory():
                return f"{value.dtype}{list(value.shape)}"
            case TileKind():
                return f"the type {value}"
            case StreamArray():
                return f"the stream {value.name}"
            case Builtin():
                return f"the word {value.name}"
            case tuple():
                return f"a list of {len(value)} values"
            case _ if isinstance(value, RUNTIME):
                return f"a value of type {value.kind}"
            case _:
                return repr(value)[:60]

    def runtime(self, node: ast.AST, value: ReadValue) -> Expr:
        """The value as one of the task."""
        match value:
            case bool():
                return Const(int(value), TileKind("i1"))
            case int():
                if not -(1 << 31) <= value < 1 << 31:
                    raise self.error(node, f"{value} does not fit 32 bits")
                return Const(value, TileKind("i32"))
            case float():
                if abs(value) > LARGEST_FLOAT:
                    raise self.error(node, f"{value} does not fit float32", limit=f"at most {LARGEST_FLOAT:g}")
                return Const(value, TileKind("f32"))
            case _ if isinstance(value, RUNTIME):
                return value
            case Memory():
                return self.whole(node, value)
            case Affine() | Remainder():
                raise self.error(
                    node, "a loop's counter is no value", "keep a variable of your own and add 1 to it each round"
                )
            case _:
                raise self.error(node, f"{self.say(value)} is no value")

    def whole(self, node: ast.AST, memory: Memory) -> Expr:
        raise self.error(node, f"{memory.name} is no value here")

    def cast(self, node: ast.AST, value: ReadValue, kind: TileKind) -> Expr:
        if isinstance(value, int | float) and not isinstance(value, bool) and not kind.shape:
            number = float(value) if is_float(kind.dtype) else self._steps(value, kind.dtype)
            if isinstance(number, float) and abs(number) > LARGEST_FLOAT:
                raise self.error(node, f"{number} does not fit {kind}", limit=f"at most {LARGEST_FLOAT:g}")
            most = 1 << (bits_of(kind.dtype) - is_fixed(kind.dtype))  # of whole numbers, bit patterns too
            if isinstance(number, int) and not -(1 << (bits_of(kind.dtype) - 1)) <= number < most:
                raise self.error(node, f"{value} does not fit {kind}")
            return Const(_wrapped(number, kind.dtype) if isinstance(number, int) else number, kind)
        made = self.runtime(node, value)
        if kind.shape and made.kind.shape != kind.shape:
            made = self._spread(node, made, kind.shape)
        if made.kind.dtype == kind.dtype:
            return made
        if is_fixed(made.kind.dtype) or is_fixed(kind.dtype):
            return self._moved_point(node, made, kind.dtype)
        if isinstance(made, Const) and not is_float(made.kind.dtype):
            number = float(made.value) if is_float(kind.dtype) else _wrapped(int(made.value), kind.dtype)
            return Const(number, made.kind.of(kind.dtype))
        return Apply("cast", (made,), made.kind.of(kind.dtype))

    def _steps(self, value: float, dtype: str) -> int:
        """The nearest whole number of steps, of two the even one; of integers what stands before the point."""
        return round(value * (1 << fraction_of(dtype))) if is_fixed(dtype) else int(value)

    def _moved_point(self, node: ast.AST, made: Expr, dtype: str) -> Expr:
        """From or to a number with a fixed point: bits that are lost behind it are cut off, those before it wrap."""
        have = made.kind.dtype
        scale = TileKind("f32", made.kind.shape)
        if is_float(dtype):
            number = Apply("cast", (Apply("cast", (made,), made.kind.of("i32")),), made.kind.of("f32"))
            shrunk = Apply("mul", (number, Const(2.0 ** -fraction_of(have), scale)), scale)
            return self.cast(node, shrunk, made.kind.of(dtype))
        if is_float(have):
            number = self.cast(node, made, scale)
            grown = Apply("mul", (number, Const(float(1 << fraction_of(dtype)), scale)), scale)
            return Apply("cast", (Apply("cast", (grown,), made.kind.of("i32")),), made.kind.of(dtype))
        steps: Expr = Apply("cast", (made,), made.kind.of("i32"))
        left = fraction_of(dtype) - fraction_of(have)
        if left:
            by = Const(abs(left), steps.kind)
            steps = Apply("shl" if left > 0 else "shr", (steps, by), steps.kind)
        return Apply("cast", (steps,), made.kind.of(dtype))

    def _product(self, node: ast.AST, one: Expr, other: Expr) -> Expr:
        """Of numbers with a fixed point, or one and a whole number: fractions add up."""
        fraction = fraction_of(one.kind.dtype) + fraction_of(other.kind.dtype)
        if fraction > MOST_FRACTION:
            raise self.error(
                node, f"a product of {one.kind} and {other.kind} has {fraction} bits behind its point",
                "cast one of them to fewer first", f"at most {MOST_FRACTION}",
            )  # fmt: skip
        args = [self.cast(node, value, TileKind(joined(value.kind.dtype, value.kind.dtype))) for value in (one, other)]
        shape = self._common(node, args)
        return Apply("mul", tuple(self._spread(node, a, shape) for a in args), TileKind(fixed(32, fraction), shape))

    def apply(self, node: ast.AST, op: str, values: list[ReadValue]) -> Expr:
        """An operation on values, each lane by itself; the smaller shape is repeated."""
        if op in ("shl", "shr") and isinstance(by := values[1], int) and not 0 <= by < _BITS:
            raise self.error(node, f"a shift by {by}", "shift by fewer bits", f"0 to {_BITS - 1}")
        if op in ("mul", "shl", "shr") and any(self._is_fixed(value) for value in values):
            return self._scaled(node, op, values)
        args = self._alike(node, values, widen=op not in ("and", "or", "xor"))
        dtype = args[0].kind.dtype
        if op in ("exp", "sqrt", "tanh", "sigmoid", "div") and not is_float(dtype):
            raise self.error(
                node, f"{'/' if op == 'div' else op} of {args[0].kind}", "cast it: float32(x)" if op != "div" else
                "use >> for powers of two, or cast to float32",
            )  # fmt: skip
        if op in ("floordiv", "mod", "pow"):
            raise self.error(
                node, f"{op} of values is no part of the language", "divide by powers of two with >>, or in float32"
            )
        if op in ("shl", "shr", "and", "or", "xor") and (is_float(dtype) or is_fixed(dtype)):
            raise self.error(node, f"{op} of {args[0].kind}", "cast it to an integer first")
        shape = self._common(node, args)
        args = [self._spread(node, one, shape) for one in args]
        result = "i1" if op in ("==", "!=", "<", "<=", ">", ">=") else dtype
        return Apply(op, tuple(args), TileKind(result, shape))

    def _is_fixed(self, value: ReadValue) -> bool:
        return (isinstance(value, RUNTIME) and is_fixed(value.kind.dtype)) or (
            isinstance(value, Memory) and is_fixed(value.dtype)
        )

    def _scaled(self, node: ast.AST, op: str, values: list[ReadValue]) -> Expr:
        """A product, or a shift, of a number with a fixed point."""
        if op == "mul":
            if any(is_float(a.kind.dtype) for a, v in zip(self._runtimes(node, values), values, strict=True)
                   if not isinstance(v, float)):  # fmt: skip
                one, other = self._alike(node, values)
                shape = self._common(node, [one, other])
                args = (self._spread(node, one, shape), self._spread(node, other, shape))
                return Apply("mul", args, TileKind("f32", shape))
            return self._product(node, *self._written_as(node, values))
        if self._is_fixed(values[1]):
            raise self.error(node, "a shift by a number with a fixed point", "shift by a whole number")
        value = self.runtime(node, values[0])
        wide = self.cast(node, value, TileKind(joined(value.kind.dtype, value.kind.dtype)))
        by = self.cast(node, values[1], TileKind("i32"))
        shape = self._common(node, [wide, by])
        args = (self._spread(node, wide, shape), self._spread(node, by, shape))
        return Apply(op, args, TileKind(wide.kind.dtype, shape))

    def _runtimes(self, node: ast.AST, values: list[ReadValue]) -> list[Expr]:
        return [self.runtime(node, value) for value in values]

    def _written_as(self, node: ast.AST, values: list[ReadValue]) -> list[Expr]:
        """A fraction that is written takes the type of the number that it meets."""
        own = next(value.kind.dtype for value in self._runtimes(node, values) if is_fixed(value.kind.dtype))
        return [self.cast(node, v, TileKind(own)) if isinstance(v, float) else self.runtime(node, v) for v in values]

    def _alike(self, node: ast.AST, values: list[ReadValue], widen: bool = True) -> list[Expr]:
        """With numbers of one type: a written number takes the type of what it meets."""
        args = [self.runtime(node, value) for value in values]
        own = [
            a.kind.dtype
            for a, v in zip(args, values, strict=True)
            if not isinstance(v, int | float) or isinstance(v, bool)
        ]
        if any(isinstance(v, float) for v in values) and not any(is_fixed(dtype) for dtype in own):
            own.append("f32")
        if not own:
            own = [a.kind.dtype for a in args]
        if set(own) == {"i1"} and not widen:
            dtype = "i1"
        else:
            dtype = own[0]
            for other in own:
                dtype = joined(dtype, other)
            if not widen and len(set(own)) == 1:
                dtype = own[0]
        return [self.cast(node, v if isinstance(v, int | float) and not isinstance(v, bool) else a, TileKind(dtype))
                for a, v in zip(args, values, strict=True)]  # fmt: skip

    def _common(self, node: ast.AST, args: list[Expr]) -> tuple[int, ...]:
        rank = max(len(a.kind.shape) for a in args)
        shape: list[int] = []
        for dim in range(rank):
            sizes = {a.kind.shape[dim - rank] for a in args if len(a.kind.shape) >= rank - dim} - {1}
            if len(sizes) > 1:
                raise self.error(node, f"shapes do not fit: {' and '.join(str(a.kind) for a in args)}")
            shape.append(sizes.pop() if sizes else 1)
        if math.prod(shape) > MOST_LANES:
            raise self.error(
                node, f"{math.prod(shape)} lanes at a time", "loop over parts of it", f"at most {MOST_LANES}"
            )
        return tuple(shape)

    def _spread(self, node: ast.AST, value: Expr, shape: tuple[int, ...]) -> Expr:
        """Repeated along the dims that it lacks, as NumPy does."""
        have = value.kind.shape
        if have == shape:
            return value
        own = (1,) * (len(shape) - len(have)) + have
        if len(own) != len(shape) or any(o not in (1, s) for o, s in zip(own, shape, strict=True)):
            raise self.error(node, f"a value of type {value.kind} does not fill {list(shape)}")
        if isinstance(value, Const):
            return Const(value.value, TileKind(value.kind.dtype, shape))
        lanes = [0]
        for size, goal in zip(own, shape, strict=True):
            lanes = [base * size + (place if size > 1 else 0) for base in lanes for place in range(goal)]
        return Shuffle(value, tuple(lanes), TileKind(value.kind.dtype, shape))

    def _shape(self, node: ast.AST, value: ReadValue) -> tuple[int, ...]:
        match value:
            case Memory() | TensorArgument() if getattr(value, "shape", None) or isinstance(value, TensorArgument):
                return value.shape if isinstance(value, Memory) else value.kind.shape
            case tuple():
                return (len(value),)
            case _ if isinstance(value, RUNTIME) and value.kind.shape:
                return value.kind.shape
            case _:
                raise self.error(node, f"{self.say(value)} has no length")

    def _matmul(self, node: ast.AST, left: ReadValue, right: ReadValue) -> ReadValue:
        a, b = self.runtime(node, left), self.runtime(node, right)
        (m, k), (rows, n) = _matrix(a.kind.shape, row=True), _matrix(b.kind.shape, row=False)
        if len(a.kind.shape) not in (1, 2) or len(b.kind.shape) not in (1, 2) or k != rows:
            raise self.error(node, f"matmul of {a.kind} and {b.kind}: the inner dims differ")
        if m * k * n > MOST_LANES:
            raise self.error(
                node, f"matmul of {a.kind} and {b.kind} is {m * k * n} products at a time",
                "loop over rows, columns or parts of the sum, and multiply smaller tiles", f"at most {MOST_LANES}",
            )  # fmt: skip
        dtype = joined(a.kind.dtype, b.kind.dtype)
        spots = [(i, j, p) for i in range(m) for j in range(n) for p in range(k)]
        shape = (m, n, k)
        one = Shuffle(a, tuple(i * k + p for i, _, p in spots), TileKind(a.kind.dtype, shape))
        other = Shuffle(b, tuple(p * n + j for _, j, p in spots), TileKind(b.kind.dtype, shape))
        if is_fixed(dtype):
            products = self._product(node, one, other)
            dtype = products.kind.dtype
        else:
            factors = (self.cast(node, one, TileKind(dtype)), self.cast(node, other, TileKind(dtype)))
            products = Apply("mul", factors, TileKind(dtype, shape))
        sums = Fold("add", products, 2, TileKind(dtype, (m, n)))
        wanted = a.kind.shape[:-1] + b.kind.shape[1:]
        return sums if wanted == (m, n) else Shuffle(sums, tuple(range(m * n)), TileKind(dtype, wanted))

    def _where(self, node: ast.AST, test: ReadValue, one: ReadValue, other: ReadValue) -> ReadValue:
        if isinstance(test, bool):
            return one if test else other
        condition = self.runtime(node, test)
        if condition.kind.dtype != "i1":
            raise self.error(node, f"where asks a condition, not a value of type {condition.kind}")
        one, other = self._alike(node, [one, other])
        shape = self._common(node, [condition, one, other])
        parts = [self._spread(node, part, shape) for part in (condition, one, other)]
        return Apply("where", tuple(parts), TileKind(one.kind.dtype, shape))

    def _stacked(self, node: ast.AST, many: ReadValue) -> ReadValue:
        if not isinstance(many, tuple) or not many:
            raise self.error(node, "stack takes a list of values")
        values = self._alike(node, list(many))
        if len({v.kind for v in values}) != 1:
            raise self.error(node, "stack takes values of one type", limit=", ".join(str(v.kind) for v in values)[:120])
        return Join(tuple(values), TileKind(values[0].kind.dtype, (len(values), *values[0].kind.shape)))


def _wrapped(number: int, dtype: str) -> int:
    bits = bits_of(dtype)
    return number & 1 if bits == 1 else (number + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


def _matrix(shape: tuple[int, ...], *, row: bool) -> tuple[int, int]:
    if len(shape) == 2:
        return shape[0], shape[1]
    size = shape[0] if shape else 0
    return (1, size) if row else (size, 1)
