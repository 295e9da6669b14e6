"""The steps of a run as an SVG drawing: boxes from left to right, and one small cell for each trial."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH, HEIGHT = 1180, 124
BOX_HEIGHT = 72
BOX_WIDTH = 138
GAP = 34
LEAST_FOR_TRIALS = 190
MOST_CELLS = 600


@dataclass(frozen=True)
class GraphNode:
    """One step, or all trials together."""

    name: str
    state: str
    line: str
    title: str
    lasted: str = ""


@dataclass(frozen=True)
class GraphBox:
    node: GraphNode
    x: float
    y: float
    width: float
    height: float
    cells: tuple[Cell, ...] = ()

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


@dataclass(frozen=True)
class Cell:
    x: float
    y: float
    side: float
    state: str
    title: str


@dataclass(frozen=True)
class GraphEdge:
    start: float
    end: float
    y: float
    done: bool


@dataclass(frozen=True)
class GraphDrawing:
    boxes: tuple[GraphBox, ...]
    edges: tuple[GraphEdge, ...]
    width: int = WIDTH
    height: int = HEIGHT


def draw_graph(
    before: Sequence[GraphNode],
    trials: Sequence[tuple[str, str]],
    trials_node: GraphNode | None,
    after: Sequence[GraphNode],
) -> GraphDrawing:
    """Places the steps before the fan-out, the trials (state and title of each), and the steps after it."""
    narrow = len(before) + len(after)
    count = narrow + (trials_node is not None)
    taken = 4 + narrow * BOX_WIDTH + (count - 1) * GAP
    width = max(WIDTH, taken + LEAST_FOR_TRIALS)  # a long graph is drawn smaller as a whole
    wide = width - taken if trials_node is not None else 0
    boxes: list[GraphBox] = []
    x = 2.0
    y = (HEIGHT - BOX_HEIGHT) / 2
    for node in before:
        boxes.append(GraphBox(node, x, y, BOX_WIDTH, BOX_HEIGHT))
        x += BOX_WIDTH + GAP
    if trials_node is not None:
        boxes.append(_trials_box(trials_node, trials, x, wide))
        x += wide + GAP
    for node in after:
        boxes.append(GraphBox(node, x, y, BOX_WIDTH, BOX_HEIGHT))
        x += BOX_WIDTH + GAP
    edges = tuple(
        GraphEdge(left.x + left.width, right.x, HEIGHT / 2, left.node.state == "succeeded")
        for left, right in itertools.pairwise(boxes)
    )
    return GraphDrawing(tuple(boxes), edges, width)


def joint_state(states: Sequence[str]) -> str:
    """One state for many trials; a few that failed do not make the exploration a failure."""
    present = Counter(states)
    done = present["succeeded"] + present["infeasible"] + present["failed"]
    if done and done == len(states):
        return "failed" if present["failed"] == done else "succeeded"
    if present["running"] or (done and present["queued"] + present["pending"]):
        return "running"
    return next((state for state in ("cancelled", "queued", "failed") if present[state]), "pending")


def _trials_box(node: GraphNode, trials: Sequence[tuple[str, str]], x: float, width: float) -> GraphBox:
    top, height = 6.0, HEIGHT - 12.0
    inner_x, inner_y = x + 12, top + 46
    inner_width, inner_height = width - 24, height - 56
    shown = trials[-MOST_CELLS:]
    side, columns = _cell_side(len(shown), inner_width, inner_height)
    cells = tuple(
        Cell(
            round(inner_x + index % columns * (side + 2), 1),
            round(inner_y + index // columns * (side + 2), 1),
            side,
            state,
            title,
        )
        for index, (state, title) in enumerate(shown)
    )
    return GraphBox(node, x, top, width, height, cells)


def _cell_side(count: int, width: float, height: float) -> tuple[float, int]:
    """The largest square, up to 14 pixels, of which `count` fit with a gap of two."""
    for side in (14.0, 12.0, 10.0, 8.0, 6.0, 5.0, 4.0, 3.0, 2.0):
        columns = max(1, math.floor((width + 2) / (side + 2)))
        rows = max(1, math.floor((height + 2) / (side + 2)))
        if columns * rows >= count:
            return side, columns
    return 2.0, max(1, math.floor((width + 2) / 4))
