"""How long operations take on a target at a clock: stages by the operator tables, chained delays by their kind.

Multi-cycle operators of these tables fill their first and last cycle, so whatever uses a result does so a cycle later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from penstock.compiler.analysis.digits import signed_digits
from penstock.compiler.hls_in.addresses import AddressPlan
from penstock.compiler.hls_in.float_functions import FUNCTIONS
from penstock.compiler.hls_in.graph import KernelValue
from penstock.compiler.hls_in.integers import width_of
from penstock.compiler.hls_in.storage import KernelArray
from penstock.compiler.schedule.library import ChainRules, Operator, OperatorLibrary, chains_seen, load_library

_NAMES = {
    "add": "arith.addf", "sub": "arith.subf", "mul": "arith.mulf", "div": "arith.divf", "fcompare": "arith.cmpf",
    "widen": "arith.extf", "narrow": "arith.truncf", "toint": "arith.fptosi", "fromint": "arith.sitofp",
    "pow": "math.powf", "rint": "math.roundeven", "recip": "reciprocal",
}  # fmt: skip
REAL = ("half", "float", "double")
# ns at 32 bits of combinational operators, as schedules of the tool print them for this family
_CHAINED = {"add": 0.88, "sub": 0.88, "compare": 0.85, "select": 0.35, "logic": 0.29, "not": 0.0, "and": 0.29,
            "or": 0.29, "xor": 0.29, "shl": 1.0, "shr": 1.0, "negate": 0.29, "abs": 0.0}  # fmt: skip
_MULTIPLY = 2.1
_INTO_SLICE = 1.05
"""What the first stage takes of a product that is added in its slice."""
_MANY = 64
_ALL_PORTS = 1 << 30
"""Of a ROM with as many as are read at once."""
_WIDEST_SUMMED = 34
"""Bits of the widest factor of a product that is added in its DSPs."""
_PRODUCT_STAGES = {18: 0, 34: 1, 64: 4}
"""Of a product of integers by its widest factor: of mul_32s_32s_32_2_1's two, its user stands in the last."""


@dataclass
class Delays:
    """A target's operators at a clock. `reassociate` is config_compile -unsafe_math_optimizations."""

    library: OperatorLibrary
    reassociate: bool = True
    ports: int = 2
    addresses: AddressPlan = field(default_factory=AddressPlan)
    """Of the pipeline at hand, as is `kept`."""
    kept: set[KernelArray] = field(default_factory=set[KernelArray])
    """Memories of which an inner loop meets one word alone, filled in its first iteration: a register."""
    summed: set[KernelValue] = field(default_factory=set[KernelValue])
    """Products of integers that nobody but one addition asks for."""
    _found: dict[tuple[str, int, str | None], Operator] = field(
        default_factory=dict[tuple[str, int, "str | None"], Operator]
    )

    @cached_property
    def budget(self) -> float:
        return self.library.budget_ns

    @cached_property
    def chains(self) -> ChainRules:
        return chains_seen(self.library)

    def row(self, node: KernelValue, quick: bool = False) -> Operator | None:
        """The operator of a floating-point node, a function, or a division of integers."""
        if is_division(node):
            return self.library.find("arith.divsi", max(width_of(arg)[0] for arg in node.args))
        name = _NAMES.get(node.op) or (f"math.{node.op}" if node.op in FUNCTIONS and node.op not in _CHAINED else None)
        of = node.args[0].kind if node.op in ("fcompare", "toint") else node.kind
        if name is None or of not in REAL:
            return None
        if node.op == "div" and node.args[0].value == 1.0 and node.kind == "float":
            name = "reciprocal"
        bits = max(node.bits, *(arg.bits for arg in node.args)) if node.op != "fcompare" else node.args[0].bits
        binding = "fabric" if quick and self.has_quick(node) else None
        return self.library.find(name, bits, binding)

    def has_quick(self, node: KernelValue) -> bool:
        """Adders come in two ways: the one without DSPs has fewer stages."""
        return node.op in ("add", "sub") and node.kind == "float" and not node.usual

    def stages(self, node: KernelValue, quick: bool = False) -> int:
        if node.op == "load":
            inside = 0 if self._in_registers(node) else 1
            return self.library.memory.external_load_latency if _external(node) else inside
        row = self.row(node, quick)
        if row is not None:
            return row.latency
        if not is_product(node):
            return 0
        narrow, wide = sorted(factor_bits(arg) for arg in node.args)
        if node in self.summed and wide <= _WIDEST_SUMMED:
            return self.library.find("mac", wide, narrower=narrow).latency
        return next((stages for bits, stages in _PRODUCT_STAGES.items() if wide <= bits), max(_PRODUCT_STAGES.values()))

    def loop_latency(self, nodes: list[KernelValue], quick: bool, register: bool) -> int:
        """Cycles around a cycle of dependences through these operators.

        A word in a register is used in the cycle after the last; one in a memory is stored in the last cycle, and
        loading takes one more. Adders without DSPs leave time for the next one in their last cycle. What takes no
        cycle of its own, additions of integers for instance, is done in the cycle that stores the word.
        """
        total = 0
        slow = [node for node in nodes if node.op != "load"]
        for node in slow:
            total += self.stages(node, quick=True) if quick and self.has_quick(node) else self.stages(node) + 1
        if register:
            return total
        return max(total, 1) + 1 + bool(quick and slow and self.has_quick(slow[-1]))

    def unit(self, node: KernelValue, quick: bool = False) -> str | None:
        """The name of the operator that a node needs, if it is one that is shared."""
        row = self.row(node, quick)
        return f"{row.ops[0]}:{row.bits}:{row.binding}" if row is not None else None

    def enter(self, node: KernelValue, at: int, offset: float) -> tuple[int, float]:
        """When a node may start that could at this moment."""
        if self.row(node) is not None:
            return (at + 1, 0.0) if offset > 0 else (at, 0.0)
        if node.op == "take":
            return max((at, offset), (self.library.read_stage, 0.0))
        if node.op == "put":
            return (at + 1, 0.0) if offset >= self.chains.token_ns else (at, offset)
        if node.op in ("load", "store"):
            return self._meet(node, at, offset)
        delay = _INTO_SLICE if node in self.summed else self._delay(node)
        return (at + 1, 0.0) if offset + delay > self.budget else (at, offset)

    def ports_of(self, array: KernelArray) -> int:
        """How often a bank may be met in a cycle."""
        return _ALL_PORTS if array.read_by_all else 1 if array.shared else self.ports

    def _in_registers(self, access: KernelValue) -> bool:
        return access.array is not None and (access.array.registers or access.array in self.kept)

    def _meet(self, access: KernelValue, at: int, offset: float) -> tuple[int, float]:
        """When a memory may be met. What adds counters up to the address of a token's word does so when it comes."""
        if access.array in self.kept or _external(access):
            return at, offset
        known, late = self.addresses.ready.get(access, (0, 0.0))
        added = access in self.addresses.added and known <= at
        if added and offset > 0 and access.op == "store" and access.args[0].op == "take":
            return at + 1, 0.0
        at, offset = max((at, offset), (known, late))
        if access.op == "store":
            at, offset = max((at, offset), self.addresses.chosen.get(access, (0, 0.0)))
        stored = 0.0 if self._in_registers(access) else self.chains.store_ns
        into = self.chains.address_ns if access.op == "load" else stored
        return (at + 1, 0.0) if offset + into > self.budget else (at, offset)

    def leave(self, node: KernelValue, at: int, offset: float, quick: bool) -> tuple[int, float]:
        """When a node's value is there."""
        row = self.row(node, quick)
        if row is not None:
            if row.latency == 0:
                return at, offset + row.delay_ns
            return at + row.latency + 1, 0.0
        if node.op == "load":
            if node.array in self.kept:
                return at, offset + _CHAINED["select"]
            if self._in_registers(node):
                return at, offset + self.chains.register_ns
            return max((at + self.stages(node), self.chains.word_ns), self.addresses.chosen.get(node, (0, 0.0)))
        if node.op == "take":
            return at, self.chains.token_ns
        if node.op == "store" and node.array in self.kept:
            return at, offset
        if node.op == "store":
            return at + 1 + (node.array is not None and node.array.in_ultraram), 0.0
        if node.op == "put":
            return at, 0.0
        stages = self.stages(node)
        if stages:
            return at + stages, 0.6
        return at, offset + self._delay(node)

    def _delay(self, node: KernelValue) -> float:
        if node.linear is not None or node.op in ("const", "counter", "input", "phi", "convert"):
            return 0.0
        if node.op == "compare" and all(arg.linear is not None or arg.bits == 1 for arg in node.args):
            return 0.0
        if node.op in ("shl", "shr", "and", "or", "xor") and any(arg.constant for arg in node.args):
            return 0.0  # wires
        if node.op == "mul":
            digits = _digits(node)
            return 0.0 if digits == 1 else _CHAINED["add"] if digits == 2 else _MULTIPLY
        return _CHAINED.get(node.op, 0.5)

    def counts(self, node: KernelValue) -> bool:
        """Whether a node makes the pipeline longer."""
        return node.op in ("load", "store", "take", "put", "select", "fcompare", "phi") or self.row(node) is not None


def is_division(node: KernelValue) -> bool:
    """Of integers that data decide. What counters lead to is worked out with addresses; powers of two are wires."""
    if node.op not in ("div", "rem") or node.kind != "int" or node.constant or node.linear is not None:
        return False
    by = node.args[1]
    return not by.constant or int(by.value or 0).bit_count() != 1


def is_product(node: KernelValue) -> bool:
    """Of integers. By a constant of two binary digits with signs it is an addition, by one of a single digit wires."""
    return node.op == "mul" and node.kind in ("int", "fixed") and node.linear is None and _digits(node) > 2


def _external(access: KernelValue) -> bool:
    return access.array is not None and access.array.external


def _digits(node: KernelValue) -> int:
    """Digits of the constant that integers are multiplied by; many if there is none."""
    if node.kind not in ("int", "fixed"):
        return _MANY
    factors = [(arg, abs(arg.value)) for arg in node.args if arg.value is not None]
    return min((signed_digits(int(v * (1 << a.bits) if a.kind == "fixed" else v)) for a, v in factors), default=_MANY)


def factor_bits(arg: KernelValue) -> int:
    return int(arg.value).bit_length() + 1 if arg.value is not None and arg.kind != "fixed" else arg.bits


def delays_for(clock_mhz: float, reassociate: bool = True, family: str = "vitis-ultrascale-plus") -> Delays:
    return Delays(load_library(family, clock_mhz), reassociate)
