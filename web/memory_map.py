"""Where a design keeps its numbers: tensors in banks outside of the chip, buffers and FIFOs in memories on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.web import text
from penstock.web.dataflow_view import FlowGraph
from penstock.web.text import Document
from penstock.web.treemap import TreemapArea, lay_out

MOST_MEMORIES = 400
"""Rows of the table."""
_MOST_CELLS = 60
_LEAST_PERCENT = 0.6
"""Of a bar, so that a small tensor beside a large one is still seen."""
_KINDS = {
    "registers": "registers", "lutram": "LUT RAM", "srl": "shift registers", "bram": "block RAM", "uram": "UltraRAM",
}  # fmt: skip
_ON_CHIP, _OUTSIDE = "arrays on the chip", "outside of the core"
_SAID = {"input": "input", "parameter": "weights", "output": "output", "buffer": "between two kernels"}


@dataclass(frozen=True)
class TensorRow:
    """A tensor, or a bank's share of it, and its part of the bar of its bank in percent."""

    name: str
    said: str
    kind: str
    port: str
    argument: str
    shape: str
    bytes: str
    last: str
    """The last of its bytes, counted from where it begins, as an address is written."""
    word: str
    kernel: str
    at: float
    width: float
    title: str


@dataclass(frozen=True)
class BankRow:
    name: str
    said: str
    tensors: tuple[TensorRow, ...]


@dataclass(frozen=True)
class ChipMemory:
    name: str
    kernel: str
    die: str
    words: str
    word_bits: str
    banks: int
    copies: int
    bits: int
    kind: str
    style: str
    blocks: str


@dataclass(frozen=True)
class MemoryCell:
    area: TreemapArea
    title: str
    label: str
    style: str
    kernel: str


@dataclass(frozen=True)
class KindRow:
    """All memories of one kind."""

    name: str
    style: str
    count: int
    bits: str
    share: str


@dataclass(frozen=True)
class MemoryMap:
    banks: tuple[BankRow, ...]
    tensors: int
    outside: str
    """Bytes of all tensors."""
    memories: tuple[ChipMemory, ...]
    left_out: int
    kinds: tuple[KindRow, ...]
    cells: tuple[MemoryCell, ...]
    bits: str


def view_memory_map(report: Document, flow: FlowGraph) -> MemoryMap | None:
    """None where a design was not placed."""
    placement = report["placement"]
    if not placement:
        return None
    tensors: Sequence[Document] = placement.get("tensors", ())
    tasks = {task["nest"]: task["kernel"] for task in report["timing"]["kernels"]}
    writers = {
        channel["name"]: edge.source for channel, edge in zip(report["design"]["channels"], flow.edges, strict=True)
    }
    memories = [_memory(one, tasks, writers) for one in placement["memories"]]
    memories.sort(key=lambda one: (-one.bits, one.name))
    whole = sum(one.bits for one in memories)
    return MemoryMap(
        banks=_banks(tensors, placement.get("banks", ()), flow),
        tensors=len({tensor["name"] for tensor in tensors}),
        outside=text.size(sum(tensor["bytes"] for tensor in tensors)),
        memories=tuple(memories[:MOST_MEMORIES]),
        left_out=max(0, len(memories) - MOST_MEMORIES),
        kinds=_kinds(memories, whole),
        cells=_cells(memories),
        bits=f"{whole:,}",
    )


def _banks(tensors: Sequence[Document], banks: Sequence[Document], flow: FlowGraph) -> tuple[BankRow, ...]:
    """The fullest bar is as long as its room; the others are to its scale."""
    by_bank: dict[str, list[Document]] = {}
    for tensor in tensors:
        by_bank.setdefault(tensor["bank"] or (_OUTSIDE if tensor["port"] else _ON_CHIP), []).append(tensor)
    longest = max((sum(one["bytes"] for one in own) for own in by_bank.values()), default=1) or 1
    sizes = {bank["name"]: bank for bank in banks}
    return tuple(
        BankRow(name, _said_of_bank(own, sizes.get(name)), tuple(_rows_of(own, longest, flow)))
        for name, own in sorted(by_bank.items(), key=lambda item: _in_order(item[0]))
    )


def _in_order(bank: str) -> tuple[str, int]:
    """`HBM[10]` comes after `HBM[9]`."""
    kind, _, number = bank.rstrip("]").partition("[")
    return kind, int(number) if number.isdecimal() else 0


def _said_of_bank(own: Sequence[Document], bank: Document | None) -> str:
    used = sum(tensor["bytes"] for tensor in own)
    return f"{text.size(used)} of {text.size(bank['bytes'])}" if bank else text.size(used)


def _rows_of(own: Sequence[Document], longest: int, flow: FlowGraph) -> list[TensorRow]:
    found: list[TensorRow] = []
    at = 0.0
    for tensor in own:
        width = min(100 - at, max(_LEAST_PERCENT, 100 * tensor["bytes"] / longest))
        share = tensor["share"]
        said = _SAID[tensor["kind"]] + (f", share {share[0] + 1} of {share[1]}" if share else "")
        size, shape = text.size(tensor["bytes"]), " × ".join(map(str, tensor["shape"])) or "one number"
        found.append(
            TensorRow(
                tensor["name"], said, tensor["kind"], tensor["port"] or "–", tensor["argument"],
                f"{shape} {tensor['dtype']}", size, f"0x{max(0, tensor['bytes'] - 1):x}", f"{tensor['word_bytes']:,}",
                _kernel_of(tensor["name"], flow), round(at, 3), round(max(0.0, width), 3),
                f"{tensor['name']}: {said}, {size}",
            )
        )  # fmt: skip
        at = min(100.0, at + width)
    return found


def _kernel_of(tensor: str, flow: FlowGraph) -> str:
    """Who loads or stores it, as the drawing calls that."""
    return next((key for key in (f"memory {tensor}", tensor, f"load.{tensor}") if flow.node(key)), "")


def _memory(one: Document, tasks: Mapping[str, str], writers: Mapping[str, str]) -> ChipMemory:
    bits = one["words"] * one["word_bits"] * one["banks"] * one["copies"]
    kernel = writers.get(one["name"]) or tasks.get(one["name"].partition(".")[0], "")
    kind: str = one["kind"]
    return ChipMemory(
        one["name"], kernel, one["die"], f"{one['words']:,}", f"{one['word_bits']:,}", one["banks"], one["copies"],
        bits, _KINDS.get(kind, kind), kind, one["blocks"],
    )  # fmt: skip


def _kinds(memories: Sequence[ChipMemory], whole: int) -> tuple[KindRow, ...]:
    bits, count = Counter[str](), Counter[str]()
    for one in memories:
        bits[one.style] += one.bits
        count[one.style] += 1
    return tuple(
        KindRow(_KINDS.get(kind, kind), kind, count[kind], f"{held:,}", text.percent(held / whole) if whole else "–")
        for kind, held in bits.most_common()
    )


def _cells(memories: Sequence[ChipMemory]) -> tuple[MemoryCell, ...]:
    """The largest by name, all others as one."""
    shown, rest = memories[:_MOST_CELLS], memories[_MOST_CELLS:]
    known = {one.name: one for one in shown}
    left = sum(one.bits for one in rest)
    cells: list[MemoryCell] = []
    for area in lay_out([*((one.name, float(one.bits)) for one in shown), ("", float(left))]):
        one = known.get(area.key)
        name = one.name if one else f"{len(rest)} smaller ones"
        fits = area.width > 2 + 1.5 * len(name) and area.height > 9
        built = f" bits, {one.kind}{' on ' + one.die if one.die else ''}" if one else " bits"
        cells.append(
            MemoryCell(
                area, f"{name}: {one.bits if one else left:,}{built}", name if fits else "",
                one.style if one else "rest", one.kernel if one else "",
            )
        )  # fmt: skip
    return tuple(cells)
