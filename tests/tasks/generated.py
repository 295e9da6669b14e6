"""Programs that nobody wrote: pipelines of random stages, each with what it must answer worked out beside it in NumPy.

A stage takes streams and makes streams. Of every stream the generator knows all tokens, so that its answer owes nothing
to the interpreter of the language. A wrong program is a right one with one line spoilt, and that line is known.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from penstock.compiler.tasks.interpret import wrapped
from tests.tasks.generated_text import Array, Generated, Stream

_KINDS = ("int8", "int16", "int32", "int5", "int12")
_MOST_TOKENS = 48


class Generator:
    """Makes one program. `seed` decides all of it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random, self.made, self.count = random.Random(seed), Generated(), 0
        self.numbers = np.random.default_rng(seed)
        self.open: list[Stream] = []

    def program(self) -> Generated:
        for _ in range(self.random.randint(1, 2)):
            self.open.append(self._load())
        stages: list[Callable[[Stream], None]] = [
            self._map, self._map, self._fork, self._fold, self._repeat, self._some, self._reversed, self._chain,
            self._spread_out, self._running, self._lanes, self._two, self._bounded,
        ]  # fmt: skip
        for _ in range(self.random.randint(1, 5)):
            if len(self.open) > 1 and self.random.random() < 0.4:
                self._join()
            else:
                self.random.choice(stages)(self._taken())
        if self.seed % 3 == 0:
            self.random.choice((self._asked, self._fed_back))(self._taken())
        if self.seed % 3 == 1:
            self._stepped(self._taken())
        while len(self.open) > 2:
            self._join()
        for one in self.open:
            self._store(one)
        return self.made

    # -- parts of the text

    def _taken(self) -> Stream:
        return self.open.pop(self.random.randrange(len(self.open)))

    def _name(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def _stream(self, kind: str, tokens: Array, dims: str = "") -> Stream:
        name = self._name("s")
        shape = ", ".join(map(str, tokens.shape[1:]))
        kept = wrapped(tokens, f"i{kind[3:]}")
        self.made.declared.append(f"{name} = Stream[{kind}{f', ({shape},)' if shape else ''}]{dims}")
        return Stream(name, kind, kept)

    def _task(self, body: list[str], grid: int = 0) -> None:
        name = self._name("t")
        self.made.lines += ["", f"@task(grid=({grid},))" if grid else "@task", f"def {name}({'g' if grid else ''}):"]
        self.made.lines += [f"    {line}" for line in body]

    def _rounds(self, count: int, body: list[str]) -> list[str]:
        """A loop of so many rounds, or two of which the products are."""
        divisors = [d for d in range(2, count) if count % d == 0]
        if divisors and self.random.random() < 0.4:
            outer = self.random.choice(divisors)
            if self.random.random() < 0.5:
                return [f"for i, j in grid({outer}, {count // outer}):", *(f"    {line}" for line in body)]
            inner = [f"for j in range({count // outer}):", *(f"    {line}" for line in body)]
            return [f"for i in range({outer}):", *(f"    {line}" for line in inner)]
        return [f"for i in range({count}):", *(f"    {line}" for line in body)]

    def _load(self) -> Stream:
        kind = self.random.choice(("int8", "int32"))
        tile = self.random.choice(((), (), (2,), (4,)))
        count = self.random.choice((4, 6, 8, 12))
        name = self._name("A")
        low, high = (-128, 128) if kind == "int8" else (-1000, 1000)
        values = self.numbers.integers(low, high, (count, *tile)).astype(kind)
        self.made.inputs[name] = values
        self.made.arguments.append(f"{name}: {kind}[{', '.join(map(str, values.shape))}]")
        found = self._stream(kind, values)
        place = f"{name}[i]" if not tile else f"{name}[i, :]"
        self._task([f"for i in range({count}):", f"    {found.name}.put({place})"])
        return found

    def _store(self, one: Stream) -> None:
        name, shape = self._name("B"), one.tokens.shape
        self.made.arguments.append(f"{name}: int32[{', '.join(map(str, shape))}]")
        self.made.answers[name] = one.tokens.astype(np.int32)
        place = f"{name}[i]" if not one.tile else f"{name}[i, :]"
        self._task([f"for i in range({len(one)}):", f"    {place} = {one.name}.get()"])

    def _value(self, x: str, tokens: Array) -> tuple[str, Array]:
        """An expression of a variable, and what it comes to for all tokens (as 32-bit numbers that wrap)."""
        wide, number = tokens.astype(np.int64), self.random.randint(-9, 9)
        choices: list[tuple[str, Array]] = [
            (f"{x} + {number}", wide + number), (f"{x} * {x} - {x}", wide * wide - wide),
            (f"{x} * {number}", wide * number), (f"-{x}", -wide), (f"abs({x})", abs(wide)),
            (f"where({x} > {number}, {x}, {number} - {x})", np.where(wide > number, wide, number - wide)),
            (f"max({x}, {number})", np.maximum(wide, number)),
            (f"min({x} >> 1, {number})", np.minimum(wide >> 1, number)),
            (f"int4({x}) + {x}", wrapped(wide, "i4").astype(np.int64) + wide),
            (f"({x} & 7) ^ ({x} | 1)", (wide & 7) ^ (wide | 1)),
            (f"where({x} > 0 and {x} < 50 and {x} != 7, 1, 0)", ((wide > 0) & (wide < 50) & (wide != 7)) * 1),
        ]  # fmt: skip
        text, value = self.random.choice(choices)
        return text, wrapped(value, "i32")

    # -- stages

    def _map(self, one: Stream) -> None:
        text, value = self._value("x", one.tokens)
        out = self._stream(self.random.choice(_KINDS), value)
        self._task(self._rounds(len(one), [f"x = {one.name}.get()", f"{out.name}.put({text})"]))
        self.open.append(out)

    def _bounded(self, one: Stream) -> None:
        """Through a stream of a given depth."""
        out = Stream(self._name("s"), one.kind, one.tokens)
        shape = f"({', '.join(map(str, one.tile))},)" if one.tile else "()"
        depth = self.random.randint(1, 9)
        kind = f"Stream[{one.kind}, {shape}, {depth}]" if one.tile else f"Stream[{one.kind}, 1, {depth}]"
        self.made.declared.append(f"{out.name} = {kind}")
        if not one.tile:
            out = Stream(out.name, one.kind, one.tokens.reshape(-1, 1))
        self._task(self._rounds(len(one), [f"{out.name}.put({one.name}.get())"]))
        self.open.append(out)

    def _fork(self, one: Stream) -> None:
        outs = [self._stream(one.kind, one.tokens) for _ in range(2)]
        self._task(self._rounds(len(one), [f"x = {one.name}.get()", *(f"{out.name}.put(x)" for out in outs)]))
        self.open += outs

    def _fold(self, one: Stream) -> None:
        sizes = [d for d in range(2, len(one) + 1) if len(one) % d == 0]
        if not sizes:
            self._map(one)
            return
        size, tile = self.random.choice(sizes), one.tile
        kind = f"int32[{', '.join(map(str, tile))}]" if tile else "int32"
        if self.random.random() < 0.5:
            out = self._stream("int32", one.tokens.reshape(-1, size, *tile).astype(np.int64).sum(1))
            start, step = "0", f"total += {one.name}.get()"
        else:
            out = self._stream("int32", np.maximum(one.tokens.reshape(-1, size, *tile).max(1), -5))
            start, step = "-5", f"total = max(total, {one.name}.get())"
        body = [f"total: {kind} = {start}", f"for _ in range({size}):", f"    {step}", f"{out.name}.put(total)"]
        self._task([f"for i in range({len(one) // size}):", *(f"    {line}" for line in body)])
        self.open.append(out)

    def _repeat(self, one: Stream) -> None:
        times = self.random.randint(2, 3)
        if len(one) * times > _MOST_TOKENS:
            self._map(one)
            return
        out = self._stream(one.kind, np.repeat(one.tokens, times, axis=0))
        if self.random.random() < 0.5:
            inner = [f"x = {one.name}.get()", f"for k in range({times}):", f"    {out.name}.put(x)"]
            self._task([f"for i in range({len(one)}):", *(f"    {line}" for line in inner)])
        else:
            self._task(self._rounds(len(one), [f"x = {one.name}.get()", *[f"{out.name}.put(x)"] * times]))
        self.open.append(out)

    def _some(self, one: Stream) -> None:
        """Those of some rounds go on."""
        n, number = len(one), self.random.randrange(max(1, len(one) - 1))
        rounds = np.arange(n)
        tests = [("i % 2 == 0", rounds % 2 == 0), ("i % 3 != 1", rounds % 3 != 1), (f"i >= {number}", rounds >= number),
                 (f"i != {number}", rounds != number), (f"i <= {number}", rounds <= number),
                 ("i > 0 and i % 2 == 0", (rounds > 0) & (rounds % 2 == 0))]  # fmt: skip
        test, kept = self.random.choice(tests)
        if not kept.any():
            self._map(one)
            return
        text, other = self._value("x", one.tokens)
        out = self._stream(one.kind, one.tokens[kept])
        body = [f"x = {one.name}.get()", f"if {test}:", f"    {out.name}.put(x)"]
        if not kept.all() and self.random.random() < 0.5:  # the others go their own way
            rest = self._stream("int32", other[~kept])
            body += ["else:", f"    {rest.name}.put({text})"]
            self.open.append(rest)
        self._task([f"for i in range({n}):", *(f"    {line}" for line in body)])
        self.open.append(out)

    def _reversed(self, one: Stream) -> None:
        """Kept in a memory, and sent the other way round."""
        n, shape = len(one), ", ".join(map(str, one.tokens.shape))
        tail = ", :" * len(one.tile)
        out = self._stream(one.kind, one.tokens[::-1])
        self._task([
            f"kept: {one.kind}[{shape}] = 0", f"for i in range({n}):", f"    kept[i{tail}] = {one.name}.get()",
            f"for i in range({n}):", f"    {out.name}.put(kept[{n - 1} - i{tail}])",
        ])  # fmt: skip
        self.open.append(out)

    def _chain(self, one: Stream) -> None:
        """Through a grid of instances, the ends of which differ."""
        grid = self.random.randint(2, 4)
        value = wrapped(one.tokens.astype(np.int64) + sum(range(grid)), f"i{one.kind[3:]}")
        hops = self._stream(one.kind, value, f"[{grid}]")
        last = self._stream(one.kind, value)
        self._task([
            f"for i in range({len(one)}):",
            "    if g == 0:", f"        x = {one.name}.get()",
            "    else:", f"        x = {hops.name}[g].get()",
            f"    if g + 1 < {grid}:", f"        {hops.name}[g + 1].put(x + g)",
            "    else:", f"        {last.name}.put(x + g)",
        ], grid)  # fmt: skip
        self.open.append(last)

    def _spread_out(self, one: Stream) -> None:
        """Dealt out to a grid of workers, and gathered again."""
        sizes = [d for d in (2, 3, 4) if len(one) % d == 0]
        if not sizes:
            self._map(one)
            return
        grid = self.random.choice(sizes)
        rounds = len(one) // grid
        text, value = self._value("x", one.tokens)
        given, back = self._stream(one.kind, one.tokens, f"[{grid}]"), self._stream("int32", value, f"[{grid}]")
        out = self._stream("int32", value)
        by_counter = self.random.random() < 0.5
        over = f"for q in {'range' if by_counter else 'unroll'}({grid}):"
        self._task([f"for i in range({rounds}):", f"    {over}", f"        {given.name}[q].put({one.name}.get())"])
        self._task(self._rounds(rounds, [f"x = {given.name}[g].get()", f"{back.name}[g].put({text})"]), grid)
        self._task([f"for i in range({rounds}):", f"    {over}", f"        {out.name}.put({back.name}[q].get())"])
        self.open.append(out)

    def _running(self, one: Stream) -> None:
        """A sum that is never reset."""
        out = self._stream("int32", wrapped(np.cumsum(one.tokens.astype(np.int64), axis=0), "i32"))
        kind = f"int32[{', '.join(map(str, one.tile))}]" if one.tile else "int32"
        body = [f"total += {one.name}.get()", f"{out.name}.put(total)"]
        self._task([f"total: {kind} = 0", *self._rounds(len(one), body)])
        self.open.append(out)

    def _asked(self, one: Stream) -> None:
        """Each token goes to another task, and what comes of it is waited for: in its round, or some rounds later."""
        text, value = self._value("y", one.tokens)
        ask, answer = self._stream(one.kind, one.tokens), self._stream("int32", value)
        out = self._stream("int32", wrapped(value.astype(np.int64) * 3, "i32"))
        n, ahead = len(one), self.random.choice((0, 0, 1, 2))
        put, get = f"{ask.name}.put({one.name}.get())", f"{out.name}.put({answer.name}.get() * 3)"
        if ahead:
            steps = [f"if i < {n}:", f"    {put}", f"if i >= {ahead}:", f"    {get}"]
            body = [f"for i in range({n + ahead}):", *(f"    {line}" for line in steps)]
        else:
            body = self._rounds(n, [put, get])
        tasks = [body, self._rounds(n, [f"y = {ask.name}.get()", f"{answer.name}.put({text})"])]
        for task in tasks if self.random.random() < 0.5 else tasks[::-1]:
            self._task(task)
        self.open.append(out)

    def _fed_back(self, one: Stream) -> None:
        """What comes of each token is needed for the next, by way of another task, which puts the first."""
        one = self._summed(one)
        if len(one) == 1:
            self._map(one)
            return
        state, found = np.int64(7), list[Array]()
        for token in one.tokens:
            found.append(wrapped(state * 3 + token, "i32"))
            state = found[-1].astype(np.int64) >> 1
        tokens = np.array(found, np.int32)
        there, back, out = (self._stream("int32", tokens) for _ in range(3))
        n = len(one)
        tasks = [
            [f"for i in range({n}):", f"    z = {back.name}.get() * 3 + {one.name}.get()", f"    {out.name}.put(z)",
             f"    if i + 1 < {n}:", f"        {there.name}.put(z)"],
            [f"for i in range({n}):", "    if i == 0:", f"        {back.name}.put(7)", "    else:",
             f"        {back.name}.put({there.name}.get() >> 1)"],
        ]  # fmt: skip
        for task in tasks if self.random.random() < 0.5 else tasks[::-1]:
            self._task(task)
        self.open.append(out)

    def _stepped(self, one: Stream) -> None:
        """Through numbers with a fixed point."""
        bits, point = self.random.choice(((16, 8), (12, 5), (20, 11), (32, 15)))
        kind, shape = f"fixed({bits}, {bits - point})", f", {one.tile}" if one.tile else ""
        scaled = _wide(_wide(one.tokens.astype(np.int64) << point, bits) * (3 << point - 2), 32)  # by 0.75
        sent, name = _wide(scaled >> point, bits), self._name("s")
        self.made.declared.append(f"{name} = Stream[{kind}{shape}]")
        both = np.where(sent > 1 << point, _wide(sent * sent, 32), _wide(sent << point, 32))
        out = self._stream("int32", both >> 2 * point)
        self._task(self._rounds(len(one), [f"{name}.put({kind}({one.name}.get()) * 0.75)"]))
        self._task(self._rounds(len(one), [f"x = {name}.get()", f"{out.name}.put(int32(where(x > 1, x * x, x)))"]))
        self.open.append(out)

    def _lanes(self, one: Stream) -> None:
        if len(one.tile) != 1:
            self._map(one)
            return
        (size,), wide = one.tile, one.tokens.astype(np.int64)
        choices = [
            (f"stack([x[{size - 1} - n] for n in range({size})])", wide[:, ::-1]),
            ("sum(x) + x", wide.sum(1, keepdims=True) + wide),
            ("x[0] * x", wide[:, :1] * wide),
            ("broadcast(max(x), (3,))", np.repeat(wide.max(1, keepdims=True), 3, axis=1)),
            ("sum(x)", wide.sum(1)), ("matmul(x, x)", (wide * wide).sum(1)),
        ]  # fmt: skip
        text, value = self.random.choice(choices)
        out = self._stream("int32", wrapped(value, "i32"))
        self._task(self._rounds(len(one), [f"x = {one.name}.get()", f"{out.name}.put({text})"]))
        self.open.append(out)

    def _two(self, one: Stream) -> None:
        """Two loops one after the other."""
        if len(one) < 3:
            self._map(one)
            return
        first = self.random.randint(1, len(one) - 1)
        text, value = self._value("x", one.tokens)
        out = self._stream("int32", np.concatenate([one.tokens[:first].astype(np.int32), value[first:]]))
        self._task([
            f"for i in range({first}):", f"    {out.name}.put({one.name}.get())",
            f"for i in range({len(one) - first}):", f"    x = {one.name}.get()", f"    {out.name}.put({text})",
        ])  # fmt: skip
        self.open.append(out)

    def _summed(self, one: Stream) -> Stream:
        """Tiles as the sums of their lanes."""
        if not one.tile:
            return one
        out = self._stream("int32", wrapped(one.tokens.astype(np.int64).sum(1), "i32"))
        self._task(self._rounds(len(one), [f"x = {one.name}.get()", f"{out.name}.put(sum(x))"]))
        return out

    def _join(self) -> None:
        """Two streams as one: added where they fit, else one after the other, or in turns."""
        one, other = self._taken(), self._taken()
        if one.tile != other.tile:
            one, other = self._summed(one), self._summed(other)
        if len(one) == len(other) and self.random.random() < 0.7:
            if self.random.random() < 0.5:
                tokens = wrapped(one.tokens.astype(np.int64) * 3 + other.tokens, "i32")
                out = self._stream("int32", tokens)
                body = [f"x = {one.name}.get()", f"y = {other.name}.get()", f"{out.name}.put(x * 3 + y)"]
                self._task(self._rounds(len(one), body))
            else:
                even = (np.arange(len(one)) % 2 == 0).reshape(-1, *[1] * len(one.tile))
                out = self._stream("int32", np.where(even, one.tokens, other.tokens).astype(np.int32))
                self._task([
                    f"for i in range({len(one)}):", f"    x = {one.name}.get()", f"    y = {other.name}.get()",
                    f"    {out.name}.put(x if i % 2 == 0 else y)",
                ])  # fmt: skip
        else:
            out = self._stream("int32", np.concatenate([one.tokens.astype(np.int32), other.tokens.astype(np.int32)]))
            self._task([
                f"for i in range({len(one)}):", f"    {out.name}.put({one.name}.get())",
                f"for i in range({len(other)}):", f"    {out.name}.put({other.name}.get())",
            ])  # fmt: skip
        self.open.append(out)


def _wide(values: Array, bits: int) -> Array:
    return wrapped(values, f"i{bits}").astype(np.int64)


def right_program(seed: int) -> Generated:
    """A program that must be taken, and its answers."""
    return Generator(seed).program()
