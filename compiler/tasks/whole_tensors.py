"""`feed(A, a)` and `collect(c, C)` in a program: the task that sends a tensor into a stream, or stores all of one.

Tokens go in the order of the tensor: its elements, or its tiles of the token's shape, row by row. Of an array of
streams, each gets what lies at its index in the tensor's first dims. The task is written here as a person would write
it, and mistakes in it are told at the call.
"""

from __future__ import annotations

import ast

from penstock.compiler.tasks.blocks import placed
from penstock.compiler.tasks.expressions import Expressions
from penstock.compiler.tasks.kinds import TileKind, name_of
from penstock.compiler.tasks.source import ProgramText
from penstock.compiler.tasks.values import Builtin, StreamArray, TensorArgument

FEED, COLLECT = "feed", "collect"


class WholeTensors:
    """What such calls put into a program."""

    def __init__(self, source: ProgramText, expressions: Expressions) -> None:
        self.source, self.expressions = source, expressions

    def statements(self, call: ast.Call) -> list[ast.stmt] | None:
        """The task that a call stands for; None of another call."""
        word = call.func.id if isinstance(call.func, ast.Name) else ""
        if word not in (FEED, COLLECT) or self.expressions.names.get(word) != Builtin(word):
            return None
        usual = "feed(A, a): a tensor, then a stream" if word == FEED else "collect(c, C): a stream, then a tensor"
        if len(call.args) != 2 or call.keywords:
            raise self.source.error(call, f"{word} takes two arguments, by place", f"write {usual}")
        tensor_at, stream_at = call.args if word == FEED else reversed(call.args)
        tensor, stream = self.expressions.value(tensor_at), self.expressions.value(stream_at)
        for node, found, wanted in ((tensor_at, tensor, TensorArgument), (stream_at, stream, StreamArray)):
            if not isinstance(found, wanted) or not isinstance(node, ast.Name):
                what = "tensor of the program" if wanted is TensorArgument else "stream, or array of streams"
                said = ast.unparse(node)[:40] if isinstance(found, wanted) else self.expressions.say(found)
                raise self.source.error(node, f"{said} is no {what}", f"write {usual}")
        assert isinstance(tensor, TensorArgument)
        assert isinstance(stream, StreamArray)
        for known in ("range", "task"):
            if self.expressions.names.get(known) != Builtin(known):
                raise self.source.error(call, f"{known!r} means something else here, and {word} needs it")
        return placed(ast.parse(self._task(call, word, tensor, stream)).body, call)

    def _task(self, call: ast.Call, word: str, tensor: TensorArgument, stream: StreamArray) -> str:
        kind, token, first = tensor.kind, stream.kind, len(stream.dims)
        if token.dtype != kind.dtype:
            raise self.source.error(
                call, f"{stream.name} carries {token}, and {tensor.name} is {kind}",
                f"write {stream.name} = {_stream(TileKind(kind.dtype, token.shape), stream.dims)}, or write the task "
                "and cast in it",
            )  # fmt: skip
        plain = len(kind.shape) - len(token.shape)
        tiles = (1,) * max(plain, 0) + token.shape
        if kind.shape[:first] != stream.dims or plain < first or any(
            size % tile for size, tile in zip(kind.shape, tiles, strict=False)
        ):  # fmt: skip
            raise self.source.error(
                call, f"{tensor.name}, {kind}, does not come apart into tokens {token} of {stream.name}"
                + (f", an array of {list(stream.dims)}" if stream.dims else ""),
                "let the token's dims divide the tensor's last, or write the task with loops of its own",
                "an array of streams has the tensor's first dims",
            )  # fmt: skip
        lines = ["@task", f"def {word}_{tensor.name}():"]
        index: list[str] = []
        for dim, (size, tile) in enumerate(zip(kind.shape, tiles, strict=True)):
            lines.append(f"{'    ' * (dim + 1)}for i{dim} in range({size // tile}):")
            index.append(f"i{dim}" if dim < plain else f"i{dim} * {tile} : i{dim} * {tile} + {tile}")
        block = f"{tensor.name}[{', '.join(index)}]"
        end = f"{stream.name}[{', '.join(index[:first])}]" if first else stream.name
        said = f"{end}.put({block})" if word == FEED else f"{block} = {end}.get()"
        return "\n".join([*lines, "    " * (len(kind.shape) + 1) + said])


def _stream(kind: TileKind, dims: tuple[int, ...]) -> str:
    shape = f", {kind.shape}" if kind.shape else ""
    return f"Stream[{name_of(kind.dtype)}{shape}]" + (f"[{', '.join(map(str, dims))}]" if dims else "")
