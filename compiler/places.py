"""Where the user wrote each layer of a model: the line of a file, as a page can show it beside the layer's kernel.

Names of layers change on their way through the passes: two that are fused are one, and a pass that adds an operation
names it after the layer that it adds it to. `places_of` finds the lines all the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, cast

FILE = "places.json"
LONGEST_LINE = 200
_MOST_LINES = 4
"""Of one kernel: what is fused from more names the first ones."""
_AGAIN = re.compile(r"_\d+$")


@dataclass(frozen=True)
class WrittenPlace:
    """`file` is the file's own name, without folders; empty where there is no line, as of a node of an ONNX file."""

    file: str
    line: int
    text: str
    """The line as it stands there."""
    layer: str
    """The path of the module in the model; empty at its top level."""
    operation: str


LayerPlaces = Mapping[str, tuple[WrittenPlace, ...]]
"""By layer."""


def shown_line(text: str) -> str:
    """A line of anybody's file as a page may have it."""
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()[:LONGEST_LINE]


def places_of(places: LayerPlaces, layer: str) -> tuple[WrittenPlace, ...]:
    """Of the layer, or of the one that it was named after: `fc1.relu.requantise_2` belongs to `fc1.relu`."""
    name = layer
    while name:
        for wanted in (name, _AGAIN.sub("", name)):
            if wanted in places:
                return places[wanted]
        name = name.rpartition(".")[0]
    return ()


def joined(places: LayerPlaces, layers: Sequence[str]) -> tuple[WrittenPlace, ...]:
    """Of an operation that was made of several."""
    found = (place for layer in layers for place in places_of(places, layer))
    return tuple(dict.fromkeys(found))[:_MOST_LINES]


def of_file(source: str) -> tuple[str, int]:
    """File and line of `file.py:12`; no file where there is no such end."""
    file, _, line = source.rpartition(":")
    return (shown_line(file), int(line)) if file and line.isdecimal() else ("", 0)


def save_places(places: LayerPlaces, folder: Path) -> None:
    lines = list(dict.fromkeys(place for found in places.values() for place in found))
    at = {place: number for number, place in enumerate(lines)}
    document = {
        "lines": [astuple(place) for place in lines],
        "layers": {layer: [at[place] for place in found] for layer, found in places.items()},
    }
    (folder / FILE).write_text(json.dumps(document) + "\n")


def load_places(folder: Path) -> dict[str, tuple[WrittenPlace, ...]]:
    """What `save_places` wrote, by whoever wrote it: of the right types, or a ValueError."""
    document: dict[str, Any] = json.loads((folder / FILE).read_text())
    lines = [_place(row) for row in document["lines"]]
    return {str(layer): tuple(lines[int(n)] for n in numbers) for layer, numbers in document["layers"].items()}


def _place(row: object) -> WrittenPlace:
    match row:
        case [str() as file, int() as line, str() as text, str() as layer, str() as operation] if line >= 0:
            if "/" in file or len(text) > LONGEST_LINE:
                raise ValueError(f"{FILE} has a line {cast(object, row)!r:.80} of its own making")
            return WrittenPlace(file, line, text, layer, operation)
        case _:
            raise ValueError(f"{FILE} has a line that is none: {row!r:.80}")
