"""Tables drawn with +, - and | in text reports: headings, merged column heads and rows, as the tools have them.

A line of - between + gives the columns' places; everything else follows from it, so no layout needs to be known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

_BORDER = re.compile(r"\s*\+-[-+]*\+\s*\Z")
_SECTION = re.compile(r"== (\S.*)")
_NUMBERED = re.compile(r"\d+(\.\d+)*\.? (\S.*)")
_BULLET = re.compile(r"(\s*)[+*] (\S[^|]*?):\s*\Z")


@dataclass(frozen=True)
class ReportTable:
    """`headings` from the outermost; `columns` holds the words over each column from the top down."""

    headings: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    first: int
    """How many rows stand above the first line that is drawn between rows: totals come below it."""
    crooked: int
    """Rows that do not fit the columns and were left out."""
    closed: bool

    def column(self, *words: str, without: str = "") -> int | None:
        """The first column whose head has all the words, in any case."""
        for index, head in enumerate(self.columns):
            low = head.lower()
            if all(word in low for word in words) and not (without and without in low):
                return index
        return None

    def cell(self, row: tuple[str, ...], *words: str, without: str = "") -> str | None:
        index = self.column(*words, without=without)
        return None if index is None else row[index].strip()

    def named(self, row: tuple[str, ...]) -> Mapping[str, str | None]:
        """The row by the last word of each column's head."""
        return {head.split()[-1] if head else "": cell.strip() for head, cell in zip(self.columns, row, strict=True)}

    def row(self, first: str) -> tuple[str, ...] | None:
        """The row whose first cell is this."""
        return next((row for row in self.rows if row[0].strip().lower() == first.lower()), None)

    def under(self, *words: str) -> bool:
        """Whether the headings have all these words, in this order."""
        heads = iter(heading.lower() for heading in self.headings)
        return all(any(head.startswith(word) for head in heads) for word in words)


def read_tables(text: str) -> list[ReportTable]:
    """Every table of a text report, with the headings above it."""
    tables: list[ReportTable] = []
    stack: list[tuple[int, str]] = []
    lines = text.split("\n")
    index = 0
    while index < len(lines):
        line = lines[index]
        if _BORDER.match(line):
            table, index = _table(lines, index, tuple(title for _, title in stack))
            if table is not None:
                tables.append(table)
            continue
        if (found := _SECTION.match(line)) or (found := _NUMBERED.match(line)):
            stack = [(-1, found.group(found.lastindex or 1).strip())]
        elif found := _BULLET.match(line):
            indent = len(found.group(1))
            stack = [entry for entry in stack if entry[0] < indent] + [(indent, found.group(2))]
        index += 1
    return tables


def _table(lines: list[str], start: int, headings: tuple[str, ...]) -> tuple[ReportTable | None, int]:
    """The table that begins at this border, and the line after it."""
    places = [place for place, sign in enumerate(lines[start].rstrip()) if sign == "+"]
    groups: list[list[str]] = [[]]
    index = start + 1
    while index < len(lines):
        line = lines[index]
        if _BORDER.match(line):
            groups.append([])
        elif line.lstrip().startswith(("|", "+")):
            groups[-1].append(line)
        else:
            break
        index += 1
    closed = not groups[-1] and len(groups) > 1
    heads = groups[0]
    if not heads:
        return None, index
    for line in heads:  # some borders are drawn over merged heads only
        bars = [place for place, sign in enumerate(line) if sign == "|"]
        places = bars if set(bars) > set(places) else places
    columns = _columns(heads, places)
    straight = all(set(_bars(line)) <= set(places) for line in heads)
    fitting = [[cells for line in group if straight and (cells := _cells(line, places))] for group in groups[1:]]
    rows = tuple(row for group in fitting for row in group)
    crooked = sum(len(group) for group in groups[1:]) - len(rows)
    return ReportTable(headings, columns, rows, len(fitting[0]) if fitting else 0, crooked, closed), index


def _bars(line: str) -> list[int]:
    signs = "+|" if line.lstrip().startswith("+") else "|"
    return [place for place, sign in enumerate(line) if sign in signs]


def _columns(heads: list[str], places: list[int]) -> tuple[str, ...]:
    """The words over each column; a head over several columns belongs to each of them."""
    found: list[list[str]] = [[] for _ in places[1:]]
    for line in heads:
        for left, right in pairwise(_bars(line)):
            words = line[left + 1 : right].strip()
            if not words.strip("-"):
                continue
            for column, (begin, end) in enumerate(pairwise(places)):
                if left <= (begin + end) // 2 <= right:
                    found[column].append(words)
    return tuple(" ".join(words) for words in found)


def _cells(line: str, places: list[int]) -> tuple[str, ...] | None:
    """A row's cells, with the spaces that indent them."""
    line = line.rstrip()
    if len(line) > places[-1] and all(line[place] == "|" for place in places):
        return tuple(line[left + 1 : right] for left, right in pairwise(places))
    parts = line.strip().split("|")
    if len(parts) != len(places) + 1 or parts[0] or parts[-1]:
        return None
    return tuple(parts[1:-1])
