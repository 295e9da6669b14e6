"""Operator libraries: what an operator costs and how long it takes on a target at a clock. Data only."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.resources import files

from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms import Resources
from penstock.compiler.platforms.toml_fields import Fields, parse_toml
from penstock.compiler.scalars.operations import BY_NAME

_CODE = "bad-operator-library"
_FOLDER = files("penstock.compiler.schedule").joinpath("operators")
_EVIDENCE = ("report", "measured", "estimate")
_PERIOD_TOLERANCE = 1.005  # 300 MHz is 3.333 ns, its table is called 3.33


@dataclass(frozen=True)
class Operator:
    """One implementation of some operators for operands of up to `bits` bits. Latency in register stages.

    Of a product, the narrower factor has at most `narrower` bits where the row says so: slices are not square.
    """

    ops: tuple[str, ...]
    bits: int
    binding: str
    latency: int
    delay_ns: float
    lut: int
    lut_per_bit: float
    ff: int
    ff_per_bit: float
    dsp: int
    bram18: int
    evidence: str
    lanes: int = 1
    """How many lanes share one, where they find each other (`analysis/pairs.py`)."""
    narrower: int = 0
    result_ns: float = 0.0
    """Nanoseconds into the stage in which the result of several stages is there; 0: it fills the last one."""
    choice_ns: float = 0.0
    """What follows `delay_ns` and may be in the next stage: the choice behind the comparison of a minimum."""

    @property
    def key(self) -> tuple[tuple[str, ...], int, int, str]:
        """What sets rows of one library apart."""
        return self.ops, self.bits, self.narrower, self.binding

    def holds(self, bits: int, narrower: int | None) -> bool:
        """Whether operands of these widths fit; without the narrower factor's, it is taken to be as wide."""
        return bits <= self.bits and (bits if narrower is None else narrower) <= (self.narrower or self.bits)

    def area(self, bits: int) -> Resources:
        return Resources(
            lut=self.lut + round(self.lut_per_bit * bits),
            ff=self.ff + round(self.ff_per_bit * bits),
            dsp=self.dsp,
            bram18=self.bram18,
        )


@dataclass(frozen=True)
class ControlCost:
    """Area of a nest's counters and handshakes."""

    lut: int
    lut_per_counter_bit: int
    ff: int
    ff_per_counter_bit: int
    lut_per_flushing_stage: int
    ff_per_flushing_stage: int


@dataclass(frozen=True)
class MemoryRules:
    """How memories are built: in LUTs up to a size, in block RAM above; latencies and ports."""

    load_latency: int
    store_latency: int
    ports: int
    lut_words: int
    lut_max_words: int
    lut_max_rom_words: int
    bram_power_of_two_words: int
    own_modules: bool
    """Whether memories are modules of our own: every load reads a copy of its own, the blocks of a channel lie in one
    memory, and what is built of what follows from the number of words. Else a memory has two ports, and is what is
    asked for."""
    external_load_latency: int


@dataclass(frozen=True)
class ChainRules:
    """What of a stage is used up, in nanoseconds, by what is no operator (`timing.py`)."""

    token_ns: float
    """A token that is read."""
    word_ns: float
    """A word that is loaded, once its stages are over."""
    register_ns: float
    """A word that is chosen from registers."""
    address_ns: float
    """The address of a load, behind the counters that it follows from; and each addition that makes one."""
    store_ns: float
    counters_ns: float
    """Until the counters of several loops in one pipeline are known."""


@dataclass(frozen=True)
class FifoRules:
    """How FIFOs are built: registers, shift registers in LUTs, block RAM."""

    register_depth: int
    shift_words: int
    shift_max_depth: int
    lut: int
    ff: int
    widest_bits: int
    """Of one FIFO; a wider token is several FIFOs side by side. 0: any width is one."""


@dataclass(frozen=True)
class OperatorLibrary:
    """Every figure that scheduling and area estimation need of one target at one clock period."""

    name: str
    period_ns: float
    uncertainty: float
    read_stage: int
    write_in_last_stage: bool
    flushing: bool
    """Whether every pipeline goes on with what has entered while its next iteration waits for input."""
    flushing_alone: bool
    """Whether those of II 1 are asked to, where they read streams and no external memory."""
    block_entry: int | None
    """Cycles that a loop over blocks takes around each run of the pipeline inside it; None: they are one pipeline."""
    control: ControlCost
    memory: MemoryRules
    chains: ChainRules | None
    """None: what is built has no delays but operators' own."""
    fifo: FifoRules
    operators: tuple[Operator, ...]

    @property
    def budget_ns(self) -> float:
        """What of a period combinational logic may use."""
        return self.period_ns * (1 - self.uncertainty)

    def fills(self, row: Operator) -> bool:
        """Whether an operator fills its first and its last stage: then its result is used in the stage after."""
        return self.chains is not None and row.latency > 0 and row.result_ns == 0

    def stages(self, row: Operator) -> int:
        """From an operator's start to the first stage that may use its result."""
        return row.latency + self.fills(row)

    @property
    def version(self) -> str:
        return f"{self.name}-{self.period_ns:.2f}ns"

    def knows(self, op: str) -> bool:
        return any(op in row.ops for row in self.operators)

    def find(self, op: str, bits: int, binding: str | None = None, narrower: int | None = None) -> Operator:
        """The first row for the operator that is wide enough and has the binding, if one is asked for."""
        key = (op, bits, binding, narrower)
        if key not in self._found:
            self._found[key] = _find(self, *key)
        return self._found[key]

    @cached_property
    def _found(self) -> dict[tuple[str, int, str | None, int | None], Operator]:
        """Rows that were asked for before; a cache of functions would hash all of the library each time."""
        return {}


def _find(library: OperatorLibrary, op: str, bits: int, binding: str | None, narrower: int | None) -> Operator:
    rows = [row for row in library.operators if op in row.ops]
    for row in rows:
        if row.holds(bits, narrower) and (binding is None or binding == row.binding):
            return row
    known = ", ".join(f"{row.binding} up to {row.bits} bits" for row in rows)
    raise PenstockError(
        code="unknown-operator",
        what=f"no figures for {op} on {bits}-bit operands" + (f" in {binding}" if binding else ""),
        where=f"operator library {library.version}",
        limit=f"known: {known}" if known else "the operator is not in the library at all",
        hint="change the model's arithmetic or add a row with a source to the library",
    )


@cache
def library_names() -> tuple[str, ...]:
    return tuple(sorted({library.name for library in _all()}))


def load_library(name: str, clock_mhz: float) -> OperatorLibrary:
    """The library's table for the slowest characterised period that is at least as fast as the clock.

    An operator that meets a short period meets a longer one; the reverse would be extrapolation.
    """
    tables = [library for library in _all() if library.name == name]
    if not tables:
        raise PenstockError(
            code="unknown-library", what=f"there is no operator library {name!r}",
            limit="known are " + ", ".join(library_names()), hint="correct its platform's family",
        )  # fmt: skip
    period = 1000 / clock_mhz
    fast_enough = [t for t in tables if t.period_ns <= period * _PERIOD_TOLERANCE]
    if not fast_enough:
        fastest = min(t.period_ns for t in tables)
        raise PenstockError(
            code="clock-out-of-range", what=f"no figures at {clock_mhz:g} MHz",
            where=f"operator library {name}", limit=f"characterised up to {1000 / fastest:.0f} MHz",
            hint="ask for a slower clock",
        )  # fmt: skip
    return max(fast_enough, key=lambda t: t.period_ns)


def chains_seen(library: OperatorLibrary) -> ChainRules:
    """The library's own rules of chains; for a target that has none, those of the family that they were seen on."""
    found = library.chains or next(one.chains for one in _all() if one.chains is not None)
    assert found is not None
    return found


@cache
def _all() -> tuple[OperatorLibrary, ...]:
    paths = sorted((f for f in _FOLDER.iterdir() if f.name.endswith(".toml")), key=lambda f: f.name)
    return tuple(parse_library(f.read_text(), f"operator library {f.name}") for f in paths)


def parse_library(text: str, where: str) -> OperatorLibrary:
    """The library that a TOML text describes."""
    fields = parse_toml(text, where, _CODE)
    if fields.has("base"):
        return _at_another_period(fields)
    control, memory, fifo = fields.table("control"), fields.table("memory"), fields.table("fifo")
    library = OperatorLibrary(
        name=fields.text("name"),
        period_ns=fields.number("period_ns", above=0),
        uncertainty=fields.number("uncertainty"),
        read_stage=fields.count("read_stage"),
        write_in_last_stage=fields.flag("write_in_last_stage"),
        flushing=fields.flag("flushing"),
        flushing_alone=fields.flag("flushing_alone"),
        block_entry=fields.count("block_entry") if fields.has("block_entry") else None,
        control=ControlCost(
            lut=control.count("lut"),
            lut_per_counter_bit=control.count("lut_per_counter_bit"),
            ff=control.count("ff"),
            ff_per_counter_bit=control.count("ff_per_counter_bit"),
            lut_per_flushing_stage=control.count("lut_per_flushing_stage"),
            ff_per_flushing_stage=control.count("ff_per_flushing_stage"),
        ),
        memory=MemoryRules(
            load_latency=memory.count("load_latency", at_least=1),
            store_latency=memory.count("store_latency", at_least=1),
            ports=memory.count("ports", at_least=1),
            lut_words=memory.count("lut_words", at_least=1),
            lut_max_words=memory.count("lut_max_words"),
            lut_max_rom_words=memory.count("lut_max_rom_words"),
            bram_power_of_two_words=memory.count("bram_power_of_two_words"),
            own_modules=memory.flag("own_modules"),
            external_load_latency=memory.count("external_load_latency"),
        ),
        chains=_chains(fields.table("chains")) if fields.has("chains") else None,
        fifo=FifoRules(
            register_depth=fifo.count("register_depth"),
            shift_words=fifo.count("shift_words", at_least=1),
            shift_max_depth=fifo.count("shift_max_depth"),
            lut=fifo.count("lut"),
            ff=fifo.count("ff"),
            widest_bits=fifo.count("widest_bits", default=0),
        ),
        operators=tuple(_operator(f) for f in fields.tables("operator")),
    )
    for table in (control, memory, fifo, fields):
        table.finish()
    return library


def _chains(fields: Fields) -> ChainRules:
    names = ("token_ns", "word_ns", "register_ns", "address_ns", "store_ns", "counters_ns")
    rules = ChainRules(**{name: fields.number(name) for name in names})
    fields.finish()
    return rules


def _at_another_period(fields: Fields) -> OperatorLibrary:
    """A table that says what differs from another one: the period, and rows in place of those for the same."""
    name = fields.text("base")
    base = parse_library(_FOLDER.joinpath(name).read_text(), f"operator library {name}")
    period, rows = (
        fields.number("period_ns", above=0),
        {row.key: row for row in map(_operator, fields.tables("operator"))},
    )
    fields.finish()
    if unknown := set(rows) - {row.key for row in base.operators}:
        raise PenstockError(
            code=_CODE, what=f"a row of {', '.join(min(unknown)[0])} is in place of none", where=fields.where,
            limit=f"it is one of {name}, with the same operators, bits and binding", hint="add it to that table first",
        )  # fmt: skip
    return replace(base, period_ns=period, operators=tuple(rows.get(row.key, row) for row in base.operators))


def _with_sharers(ops: tuple[str, ...]) -> tuple[str, ...]:
    """And the operations that are built of one of these, as `math.log2` of `math.log`: no table names them."""
    sharing = (row.name for row in BY_NAME.values() if row.operator in ops and row.operator in BY_NAME)
    return tuple(dict.fromkeys((*ops, *sharing)))


def _operator(fields: Fields) -> Operator:
    row = Operator(
        ops=_with_sharers(fields.texts("ops")),
        bits=fields.count("bits", at_least=1),
        binding=fields.text("binding"),
        latency=fields.count("latency"),
        delay_ns=fields.number("delay_ns", default=0.0),
        lut=fields.count("lut", default=0),
        lut_per_bit=fields.number("lut_per_bit", default=0.0),
        ff=fields.count("ff", default=0),
        ff_per_bit=fields.number("ff_per_bit", default=0.0),
        dsp=fields.count("dsp", default=0),
        bram18=fields.count("bram18", default=0),
        evidence=fields.text("evidence"),
        lanes=fields.count("lanes", default=1),
        narrower=fields.count("narrower", default=0),
        result_ns=fields.number("result_ns", default=0.0),
        choice_ns=fields.number("choice_ns", default=0.0),
    )
    fields.finish()
    if row.evidence not in _EVIDENCE:
        raise PenstockError(
            code=_CODE, what=f"field 'evidence' is {row.evidence!r}", where=fields.where,
            limit="it is one of " + ", ".join(_EVIDENCE), hint="say where the row's figures come from",
        )  # fmt: skip
    return row
