"""Text that knows its indentation, and the small spellings that all emitters share."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod

from xdsl.ir import Attribute

from penstock.compiler.backend.hls.pragmas import UNROLL
from penstock.compiler.backend.hls.scalar_cpp import cpp_type
from penstock.compiler.dialects.types import vector_type

_LONGEST = 116


@dataclass
class CppLines:
    """Pragmas stand at the margin, as people write them."""

    indent: int = 0
    text: list[str] = field(default_factory=list[str])

    def add(self, *lines: str) -> None:
        for line in lines:
            self.text.append(line if line.startswith("#") or not line else "    " * self.indent + line)

    @contextmanager
    def block(self, head: str) -> Generator[None]:
        self.add(head + " {")
        self.indent += 1
        yield
        self.indent -= 1
        self.add("}")

    @contextmanager
    def function(self, head: str, parameters: Sequence[str]) -> Generator[None]:
        """A function's block; long lists of parameters get a line each."""
        line = f"{head}({', '.join(parameters)})"
        if len(line) <= _LONGEST:
            with self.block(line):
                yield
            return
        self.add(f"{head}(")
        for position, parameter in enumerate(parameters):
            self.add(f"    {parameter}{',' if position < len(parameters) - 1 else ') {'}")
        self.indent += 1
        yield
        self.indent -= 1
        self.add("}")

    @contextmanager
    def lanes(self, shape: Sequence[int]) -> Generator[list[str]]:
        """Unrolled loops over the lanes of a vector; yields an index expression for every dim."""
        index: list[str] = []
        depth = 0
        for dim, extent in enumerate(shape):
            if extent == 1:
                index.append("0")
                continue
            self.add(f"for (int l{dim} = 0; l{dim} < {extent}; ++l{dim}) {{", UNROLL)
            self.indent += 1
            depth += 1
            index.append(f"l{dim}")
        yield index
        for _ in range(depth):
            self.indent -= 1
            self.add("}")

    @contextmanager
    def some_lanes(self, shape: Sequence[int], first: int, last: int) -> Generator[list[str]]:
        """One unrolled loop over consecutive lanes, the innermost dim fastest; yields an index for every dim."""
        dims = [dim for dim, extent in enumerate(shape) if extent > 1]
        name = f"l{dims[0]}" if len(dims) == 1 else "lane"
        self.add(f"for (int {name} = {first}; {name} < {last}; ++{name}) {{", UNROLL)
        self.indent += 1
        if len(dims) > 1:
            strides = {dim: prod(shape[dim + 1 :]) for dim in dims}
            places = {dim: name if stride == 1 else f"{name} / {stride}" for dim, stride in strides.items()}
            wrapped = [f"l{dim} = {places[dim]}" + (f" % {shape[dim]}" if dim != dims[0] else "") for dim in dims]
            self.add(f"const int {', '.join(wrapped)};")
        yield [f"l{dim}" if extent > 1 else "0" for dim, extent in enumerate(shape)]
        self.indent -= 1
        self.add("}")


def word_type(kind: Attribute) -> str:
    """What one token or one word of memory is in C++: a scalar for one lane, hls::vector for more."""
    vector = vector_type(kind)
    return lanes_word(vector.element_type, prod(vector.get_shape()))


def lanes_word(element: Attribute, lanes: int) -> str:
    """The same of so many elements."""
    scalar = cpp_type(element)
    return scalar if lanes == 1 else f"hls::vector<{scalar}, {lanes}>"


def extents(shape: Sequence[int]) -> str:
    """Array extents of a lane vector; unit dims vanish, so that a single lane is a plain scalar."""
    return "".join(f"[{s}]" for s in shape if s > 1)


def subscripts(shape: Sequence[int], index: Sequence[str]) -> str:
    return "".join(f"[{i}]" for s, i in zip(shape, index, strict=True) if s > 1)
