"""The design record: every decision that turns a model into one accelerator, frozen, serialisable, hashable."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from dataclasses import fields as dataclass_fields
from pathlib import Path
from typing import Any, Literal

from penstock.compiler.errors import PenstockError

SCHEMA = "penstock.design/1"
WeightStore = Literal["rom", "stream", "keep"]
_ALLOCATED = ("dies", "memories", "allocated_for")
PREFETCH_BITS = 1 << 17
"""What a load's FIFO may hold where nothing else is decided: seven block RAMs, so that small tensors come at once."""
LONGEST_INTERVAL = 4096
"""Cycles between two iterations that a design may ask for: more than any pipeline is long."""
WIDEST_PORT = 1024
"""Bits of the widest data bus of m_axi."""
MEMORY_KINDS = ("registers", "lutram", "srl", "bram", "uram")


@dataclass(frozen=True)
class KernelDesign:
    """How one tensor operation is walked. Tuples are indexed by its iteration dims.

    `tile` splits a dim into an outer tile loop and an inner point loop, `unroll` splits the point loop
    into steps and parallel lanes, `order` lists the dims of the tile loops from the outermost in.
    `weights` says where its parameters lie: on the chip, or in external memory, sent for every tile or once and kept.
    `bindings` says what an operator is built of where there is a choice: {"arith.addf": "fabric"}. Iterations are at
    least `interval` cycles apart, so that a pipeline that stops as a whole holds few of them. What others have read of
    the model's inputs long before is loaded for it once more (`reload`), not held.
    """

    tile: tuple[int, ...]
    unroll: tuple[int, ...]
    order: tuple[int, ...]
    weights: WeightStore = "rom"
    bindings: Mapping[str, str] = field(default_factory=dict[str, str])
    interval: int = 1
    reload: bool = False

    @property
    def lanes(self) -> int:
        """How many scalar operations run in parallel."""
        product = 1
        for factor in self.unroll:
            product *= factor
        return product


@dataclass(frozen=True)
class Design:
    """All decisions for one model on one platform.

    `groups` puts layers (by default all into 0) into kernels that run one after the other, with external memory
    between them. `fifo_depths` is by channel name; others get `default_depth`.
    """

    platform: str
    clock_mhz: float
    kernels: Mapping[str, KernelDesign]
    quantize: str | None = None
    groups: Mapping[str, int] = field(default_factory=dict[str, int])
    fifo_depths: Mapping[str, int] = field(default_factory=dict[str, int])
    default_depth: int = 2
    port_bits: int = 512
    """The width of a port to external memory: tensors there are packed into words of at most so many bits."""
    stripes: int = 1
    """Over how many banks a tensor may be striped; with more than one, loads share the memory's ports in turn."""
    few_banks: bool = False
    """A tensor takes no more banks than its reader takes words of a port a cycle, also where banks bring less than a
    word a cycle: slower alone, and with half of the wires for kernels that read at the same time."""
    prefetch_bits: int = PREFETCH_BITS
    """How much a load may fetch ahead of its reader; what covers an access to memory it always may."""
    equalisation: int = 0
    """How far FIFOs are sized for tasks slower than they are, in percent: at 0 (normal) no FIFO costs time, at 100
    (conservative) all FIFOs together cost as much as if every task kept the pace of the slowest."""
    mapping: tuple[str, ...] = ()
    """How a task program's instances share elements, by steps: "bundle(worker, 4)". Without any, as it says itself."""
    dies: Mapping[str, str] = field(default_factory=dict[str, str])
    """The die that a task stands on; tasks that are not listed stand where the tools put them."""
    memories: Mapping[str, str] = field(default_factory=dict[str, str])
    """What a buffer or FIFO is built of, one of `MEMORY_KINDS`; the tools choose for those that are not listed."""
    allocated_for: str = ""
    """The `basis` that depths, dies and memories were found for; empty where a person decided them."""

    def with_fifo_depths(self, depths: Mapping[str, int]) -> Design:
        return replace(self, fifo_depths=dict(depths))

    def with_placement(self, dies: Mapping[str, str], memories: Mapping[str, str]) -> Design:
        return replace(self, dies=dict(dies), memories=dict(memories))

    def allocated(self) -> Design:
        """The same record, saying that depths, dies and memories were found for it as it is."""
        return replace(self, allocated_for=self.basis())

    def unallocated(self) -> Design:
        """The record without memories that were found for the chip as a whole: with other FIFOs, or on dies, they are
        found again."""
        return replace(self, memories={}, allocated_for="") if self.allocated_for else self

    def current(self) -> Design:
        """The record without depths, dies and memories that were found for other kernels than it has now."""
        if self.allocated_for in ("", self.basis()):
            return self
        return replace(self, fifo_depths={}, dies={}, memories={}, allocated_for="")

    def basis(self) -> str:
        """A hash of everything that depths, dies and memories follow from."""
        document = replace(self, fifo_depths={}, dies={}, memories={}, allocated_for="").to_json()
        del document["fifo_depths"]
        return _digest(document)[:16]

    def to_json(self) -> dict[str, Any]:
        """The record. Placements, bindings and limits that were not decided are left out."""
        document: dict[str, Any] = {"schema": SCHEMA, **asdict(self)}
        for kernel in document["kernels"].values():
            if not kernel["bindings"]:
                del kernel["bindings"]
            if kernel["interval"] == 1:
                del kernel["interval"]
            if not kernel["reload"]:
                del kernel["reload"]
        if self.prefetch_bits == PREFETCH_BITS:
            del document["prefetch_bits"]
        if self.stripes == 1:
            del document["stripes"]
        if not self.few_banks:
            del document["few_banks"]
        if not self.equalisation:
            del document["equalisation"]
        document["mapping"] = list(self.mapping)
        if not self.mapping:
            del document["mapping"]
        return {name: value for name, value in document.items() if value or name not in _ALLOCATED}

    def digest(self) -> str:
        """A content hash: equal designs have equal digests, whatever the order of their keys."""
        return _digest(self.to_json())

    @staticmethod
    def from_json(document: Any, where: str = "design") -> Design:
        """Read a record that a person may have edited; what does not fit is named."""
        if not isinstance(document, Mapping):
            raise _error(where, "a design record is a JSON object")
        fields: dict[str, Any] = {str(k): v for k, v in document.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        if fields.pop("schema", None) != SCHEMA:
            raise _error(where, "the record's schema is missing or unknown", limit=f"this version reads {SCHEMA}")
        known = {
            "platform", "clock_mhz", "kernels", "quantize", "groups", "fifo_depths", "default_depth", "port_bits",
            "stripes", "few_banks", "prefetch_bits", "equalisation", "mapping", *_ALLOCATED,
        }  # fmt: skip
        if unknown := sorted(set(fields) - known):
            raise _error(where, f"unknown field {unknown[0]!r}", limit="fields: " + ", ".join(sorted(known)))
        if missing := sorted({"platform", "clock_mhz", "kernels"} - set(fields)):
            raise _error(where, f"field {missing[0]!r} is missing")
        clock = fields["clock_mhz"]
        if isinstance(clock, bool) or not isinstance(clock, int | float) or clock <= 0:
            raise _error(f"{where}.clock_mhz", f"{clock!r} is not a positive number")
        if fields.get("quantize") not in (None, "w8a8", "w4a8"):
            raise _error(f"{where}.quantize", f"{fields['quantize']!r} is unknown", limit="null, 'w8a8' or 'w4a8'")
        groups = _object(fields.get("groups", {}), f"{where}.groups")
        for layer, group in groups.items():
            _positive(group, f"{where}.groups.{layer}", 0)
        depths = _object(fields.get("fifo_depths", {}), f"{where}.fifo_depths")
        for channel, depth in depths.items():
            _positive(depth, f"{where}.fifo_depths.{channel}")
        dies = _object(fields.get("dies", {}), f"{where}.dies")
        for task, die in dies.items():
            if not isinstance(die, str):
                raise _error(f"{where}.dies.{task}", f"{die!r} is not the name of a die")
        memories = _object(fields.get("memories", {}), f"{where}.memories")
        for memory, kind in memories.items():
            if kind not in MEMORY_KINDS:
                raise _error(
                    f"{where}.memories.{memory}", f"{kind!r} is unknown", limit="one of " + ", ".join(MEMORY_KINDS)
                )
        if not isinstance(fields.get("few_banks", False), bool):
            raise _error(f"{where}.few_banks", f"{fields['few_banks']!r} is neither true nor false")
        if not isinstance(fields.get("allocated_for", ""), str):
            raise _error(f"{where}.allocated_for", f"{fields['allocated_for']!r} is not a text")
        kernels = _object(fields["kernels"], f"{where}.kernels")
        return Design(
            platform=str(fields["platform"]),
            clock_mhz=float(clock),
            kernels={name: _kernel(k, f"{where}.kernels.{name}") for name, k in kernels.items()},
            quantize=fields.get("quantize"),
            groups=groups,
            fifo_depths=depths,
            default_depth=_positive(fields.get("default_depth", 2), f"{where}.default_depth"),
            port_bits=_positive(fields.get("port_bits", 512), f"{where}.port_bits", 8, WIDEST_PORT),
            stripes=_positive(fields.get("stripes", 1), f"{where}.stripes"),
            few_banks=fields.get("few_banks", False),
            prefetch_bits=_positive(fields.get("prefetch_bits", PREFETCH_BITS), f"{where}.prefetch_bits", 0),
            equalisation=_positive(fields.get("equalisation", 0), f"{where}.equalisation", 0, 100),
            mapping=_texts(fields.get("mapping", []), f"{where}.mapping"),
            dies=dies,
            memories=memories,
            allocated_for=fields.get("allocated_for", ""),
        )

    def save(self, path: Path) -> None:
        path.write_text(json.dumps(self.to_json(), indent=1, sort_keys=True) + "\n")

    @staticmethod
    def load(path: Path) -> Design:
        try:
            document = json.loads(path.read_text())
        except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
            raise _error(str(path), f"cannot read the design record: {error}") from error
        return Design.from_json(document, path.name)


def _kernel(document: Any, where: str) -> KernelDesign:
    fields = _object(document, where)
    known = {spec.name for spec in dataclass_fields(KernelDesign)}
    if unknown := sorted(set(fields) - known):
        raise _error(where, f"unknown field {unknown[0]!r}", limit="fields: " + ", ".join(sorted(known)))
    if fields.get("weights", "rom") not in ("rom", "stream", "keep"):
        raise _error(f"{where}.weights", f"{fields['weights']!r} is unknown", limit="'rom', 'stream' or 'keep'")
    sizes = {name: _numbers(fields.get(name), f"{where}.{name}", least) for name, least in _LEAST.items()}
    bindings = _object(fields.get("bindings", {}), f"{where}.bindings")
    for operation, choice in bindings.items():
        if not isinstance(choice, str):
            raise _error(f"{where}.bindings.{operation}", f"{choice!r} is not the name of an implementation")
    interval = _positive(fields.get("interval", 1), f"{where}.interval", most=LONGEST_INTERVAL)
    if not isinstance(fields.get("reload", False), bool):
        raise _error(f"{where}.reload", f"{fields['reload']!r} is neither true nor false")
    kernel = KernelDesign(
        **sizes, weights=fields.get("weights", "rom"), bindings=bindings, interval=interval,
        reload=fields.get("reload", False),
    )  # fmt: skip
    if not len(kernel.tile) == len(kernel.unroll) == len(kernel.order):
        raise _error(where, "tile, unroll and order differ in length", hint="give one number an iteration dim")
    if sorted(kernel.order) != list(range(len(kernel.order))):
        raise _error(f"{where}.order", f"{list(kernel.order)} is not a permutation of the dims from 0")
    for dim, (tile, unroll) in enumerate(zip(kernel.tile, kernel.unroll, strict=True)):
        if tile % unroll:
            raise _error(
                where,
                f"cannot unroll tile {tile} of dim {dim} by {unroll}",
                limit=f"{tile} % {unroll} = {tile % unroll}",
            )
    return kernel


def _digest(document: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


_LEAST = {"tile": 1, "unroll": 1, "order": 0}


def _object(document: Any, where: str) -> dict[str, Any]:
    if not isinstance(document, Mapping):
        raise _error(where, f"{document!r} is not a JSON object")
    return {str(k): v for k, v in document.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _texts(value: Any, where: str) -> tuple[str, ...]:
    items: list[Any] = list(value) if isinstance(value, list | tuple) else [None]  # pyright: ignore[reportUnknownArgumentType]
    if not all(isinstance(item, str) for item in items):
        raise _error(where, f"{value!r} is not a list of texts")
    return tuple(items)


def _numbers(value: Any, where: str, least: int) -> tuple[int, ...]:
    if not isinstance(value, list | tuple):
        raise _error(where, f"{value!r} is not a list of whole numbers")
    items: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
    return tuple(_positive(item, where, least) for item in items)


def _positive(value: Any, where: str, least: int = 1, most: int | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise _error(where, f"{value!r} is not a whole number of at least {least}")
    if most is not None and value > most:
        raise _error(where, f"{value} is too much", limit=f"at most {most}")
    return value


def _error(where: str, what: str, limit: str = "", hint: str = "") -> PenstockError:
    return PenstockError(
        code="bad-design",
        what=what,
        where=where,
        limit=limit,
        hint=hint or "see docs/design.md for the record's fields",
    )
