"""Damages reports in every way that disks, kills and other tools do; from a seed, so that a case can be repeated."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

# No digits, blanks or signs of tables: damage of these kinds never writes a figure, so it can never make a 0.
GARBAGE = "abcXYZ?!@#$%^&*(){}[];,.\\\"'_=\u0663\u00e9\u2603"
UNKNOWN = ("", "?", "undef", "-", "NA", "1e9", "-5", "x1f", "9" * 30, "\u0663", "1,234", "nan", "12..7", "<b/>")


def cut(text: str, chance: random.Random) -> str:
    return text[: chance.randrange(len(text))]


def cut_at_line(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(lines[: chance.randrange(len(lines))])


def without_lines(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    first = chance.randrange(len(lines))
    del lines[first : first + chance.choice((1, 1, 2, 5, 40))]
    return "".join(lines)


def swapped_lines(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return "".join(lines)


def garbled(text: str, chance: random.Random) -> str:
    signs = list(text)
    for _ in range(chance.choice((1, 2, 8, 64))):
        signs[chance.randrange(len(signs))] = chance.choice(GARBAGE)
    return "".join(signs)


def unknown_figure(text: str, chance: random.Random) -> str:
    figures = list(re.finditer(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.])", text))
    for figure in sorted(
        chance.sample(figures, min(len(figures), chance.choice((1, 1, 3, 20)))), key=lambda f: -f.start()
    ):
        new = chance.choice(UNKNOWN)
        if chance.random() < 0.5:  # in its place in a table
            new = new.rjust(figure.end() - figure.start())[: max(1, figure.end() - figure.start())]
        text = text[: figure.start()] + new + text[figure.end() :]
    return text


def with_binary(text: str, chance: random.Random) -> str:
    place = chance.randrange(len(text))
    return text[:place] + "\x00\x01\x02" * chance.choice((1, 100)) + text[place + chance.choice((0, 200)) :]


def with_entities(text: str, chance: random.Random) -> str:
    head = '<!DOCTYPE p [<!ENTITY a "7"><!ENTITY b "&a;&a;">]>'
    return head + text.replace(chance.choice(("1", "2")), "&b;", 3)


MUTATIONS: tuple[Callable[[str, random.Random], str], ...] = (
    cut, cut_at_line, without_lines, swapped_lines, garbled, unknown_figure, with_binary, with_entities,
)  # fmt: skip
