"""Programs with one mistake each: right ones with a line spoilt, or with lines that cannot be right."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.tasks.generated import right_program

HEAD = 4
"""Lines before a program's own."""


@dataclass(frozen=True)
class Spoilt:
    """A wrong program. `lines` are those of which one must be named; without any, it is a simulator that refuses it."""

    kind: str
    text: str
    lines: frozenset[int]
    said: str = ""


def wrong_program(seed: int) -> Spoilt:
    """A program that must not be taken, or must be seen to stop."""
    chosen = random.Random(seed)
    lines = right_program(seed).text.splitlines()
    return _MISTAKES[seed % len(_MISTAKES)](lines, chosen)


def _made(kind: str, lines: list[str], named: range, said: str = "") -> Spoilt:
    return Spoilt(kind, "\n".join(lines) + "\n", frozenset(number + 1 for number in named), said)


def _span(lines: list[str], at: int) -> range:
    """The task around a line."""
    first = max(number for number in range(at + 1) if lines[number].lstrip().startswith("@task"))
    later = (number for number in range(first + 1, len(lines)) if not lines[number].strip())
    return range(first, next(later, len(lines)))


def _unequal(lines: list[str], chosen: random.Random) -> Spoilt:
    """A loop that makes a round more, or less, than the task at the other end."""
    loops = [i for i, line in enumerate(lines) if re.search(r"for \w+ in range\((\d+)\):", line)]
    at = chosen.choice(loops)
    count = int(re.findall(r"range\((\d+)\)", lines[at])[0])
    lines[at] = lines[at].replace(f"range({count})", f"range({count + (1 if count < 2 else chosen.choice((1, -1)))})")
    return _made("unequal", lines, _span(lines, at))


def _more(lines: list[str], declared: list[str], body: list[str], kind: str, said: str = "") -> Spoilt:
    """With a stream and tasks more."""
    first = next(i for i, line in enumerate(lines) if not line.strip() and i > HEAD)
    lines = [*lines[:first], *(f"    {line}" for line in declared), *lines[first:]]
    start = len(lines)
    lines += ["", *(f"    {line}" for line in body)]
    return _made(kind, lines, range(start, len(lines)), said)


def _streams(lines: list[str]) -> list[str]:
    """One channel of each stream of the program."""
    found = [re.match(r"    (\w+) = Stream\[.*?\](\[\d+\])?$", line) for line in lines]
    return [match[1] + ("[0]" if match[2] and not match[0].endswith(")]]") else "") for match in found if match]


def _two_put(lines: list[str], chosen: random.Random) -> Spoilt:
    name = chosen.choice([n for n in _streams(lines) if "[" not in n])
    return _more(lines, [], ["@task", "def again():", f"    {name}.put(1)"], "two producers", "is put into by two")


def _two_get(lines: list[str], chosen: random.Random) -> Spoilt:
    name = chosen.choice([n for n in _streams(lines) if "[" not in n])
    return _more(lines, [], ["@task", "def again():", f"    x = {name}.get()"], "two consumers", "is got from by two")


def _nobody(lines: list[str], chosen: random.Random) -> Spoilt:
    puts = chosen.random() < 0.5
    body = "lost.put(1)" if puts else "x = lost.get()"
    said = "has no reader" if puts else "has no writer"
    return _more(lines, ["lost = Stream[int8]"], ["@task", "def alone():", f"    {body}"], "one end", said)


def _crossed(lines: list[str], chosen: random.Random) -> Spoilt:
    """Tasks in a circle, each of which waits for the one before."""
    size, rounds = chosen.randint(2, 4), chosen.randint(1, 5)
    if chosen.random() < 0.5:
        body = [f"@task(grid=({size},))", "def around(g):", f"    for i in range({rounds}):"]
        body += [f"        ring[(g + 1) % {size}].put(ring[g].get())"]
        return _more(lines, [f"ring = Stream[int8][{size}]"], body, "crossed waits", "wait for each other")
    body: list[str] = []
    for number in range(size):
        body += ["@task", f"def around{number}():", f"    for i in range({rounds}):"]
        body += [f"        ring[{(number + 1) % size}].put(ring[{number}].get())", ""]
    return _more(lines, [f"ring = Stream[int8][{size}]"], body[:-1], "crossed waits", "wait for each other")


def _shard(lines: list[str], chosen: random.Random) -> Spoilt:
    """A layout that does not fit the grid or the tensor."""
    match = re.search(r"(A\d+): (int\d+\[([\d, ]+)\])", lines[3])
    assert match is not None
    name, kind, sizes = match[1], match[2], [int(size) for size in match[3].split(",")]
    rest = "R" * (len(sizes) - 1)
    grid, layout = chosen.choice([
        (sizes[0] + 1, f"S0{rest}"), (5, f"S0{rest}") if sizes[0] % 5 else (7, f"S0{rest}"), (2, f"S1{rest}"),
        (2, f"S0{rest}R"), (2, "Q" + rest),
    ])  # fmt: skip
    body = [f"@task(grid=({grid},))", f'def cut(g, {name}: {kind} @ Layout("{layout}")):', "    pass"]
    return _more(lines, [], body, "wrong shard")


def _too_far(lines: list[str], chosen: random.Random) -> Spoilt:
    loads = [i for i, line in enumerate(lines) if re.search(r"[AB]\d+\[i", line)]
    at = chosen.choice(loads)
    once = "range(1)" in lines[at - 1]  # the first of one element is the last as well
    other = r"\1i + 1" if once else chosen.choice((r"\1i + 1", r"\1i - 1", r"\1i * 2"))
    lines[at] = re.sub(r"([AB]\d+\[)i", other, lines[at])
    return _made("too far", lines, range(at, at + 1), "reaches")


def _too_shallow(lines: list[str], chosen: random.Random) -> Spoilt:
    """All of one stream is put before any of the other, and they are got the other way round."""
    rounds = chosen.randint(6, 12)
    depth = chosen.randint(1, rounds - 4)
    output = f"{lines[3][:-2]}, LATE: int32[{rounds}]):"
    lines[3] = output
    put = [f"    for i in range({rounds}):", "        first.put(3)", f"    for i in range({rounds}):"]
    get = [f"    held: int32[{rounds}] = 0", f"    for i in range({rounds}):", "        held[i] = second.get()"]
    body = [
        "@task", "def before():", *put, "        second.put(4)", "",
        "@task", "def after():", *get, f"    for i in range({rounds}):", "        LATE[i] = held[i] + first.get()",
    ]  # fmt: skip
    declared = [f"first = Stream[int8, (), {depth}]", "second = Stream[int8]"]
    made = _more(lines, declared, body, "too shallow")
    return Spoilt(made.kind, made.text, frozenset(), "first")


_MISTAKES: tuple[Callable[[list[str], random.Random], Spoilt], ...] = (
    _unequal, _two_put, _two_get, _nobody, _crossed, _shard, _too_far, _too_shallow, _unequal, _unequal,
)  # fmt: skip
