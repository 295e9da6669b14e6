"""Reads platform files. Whatever a file gets wrong is refused with the file's and the field's name."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from penstock.compiler.errors import PenstockError
from penstock.compiler.platforms.board import SIGNALS, Board, BoardPin
from penstock.compiler.platforms.families import FAMILIES, Family
from penstock.compiler.platforms.platform import Die, DieLink, ExternalMemory, Platform
from penstock.compiler.platforms.resources import RESOURCE_NAMES, Resources
from penstock.compiler.platforms.toml_fields import Fields, parse_toml

_CODE = "bad-platform-file"
_FOLDER = files("penstock.compiler.platforms").joinpath("data")
ARGUMENTS = ("external", "arrays")


@cache
def platform_names() -> tuple[str, ...]:
    """The known platforms: the names of the files, without `.toml`."""
    return tuple(sorted(f.name.removesuffix(".toml") for f in _FOLDER.iterdir() if f.name.endswith(".toml")))


@cache
def load_platform(name: str) -> Platform:
    """The platform of that name, or an error that lists the known ones."""
    if name not in platform_names():
        raise PenstockError(
            code="unknown-platform", what=f"there is no platform {name!r}",
            limit="known are " + ", ".join(platform_names()), hint="pass one of these names",
        )  # fmt: skip
    text = _FOLDER.joinpath(f"{name}.toml").read_text()
    platform = parse_platform(text, f"platform {name}")
    if platform.name != name:
        raise _bad(f"platform {name}", f"its field 'name' says {platform.name!r}", "name the file after it")
    return platform


def parse_platform(text: str, where: str) -> Platform:
    """The platform that a TOML text describes."""
    fields = parse_toml(text, where, _CODE)
    name, part = fields.text("name"), fields.text("part")
    platform = Platform(
        name=name,
        title=fields.text("title"),
        part=part,
        shell=fields.text("shell"),
        family=_family(fields.text("family"), where),
        clock_mhz=fields.number("clock_mhz", above=0),
        max_clock_mhz=fields.number("max_clock_mhz", above=0),
        fill=_fill(fields.table("fill")),
        dies=tuple(_die(f) for f in fields.tables("die")),
        memories=tuple(_memory(f) for f in fields.tables("memory")),
        links=tuple(_link(f) for f in fields.tables("link")),
        board=_board(fields.optional_table("board"), name, part),
        arguments=fields.text("arguments") if fields.has("arguments") else ARGUMENTS[0],
    )
    fields.finish()
    if platform.arguments not in ARGUMENTS:
        raise _bad(where, f"field 'arguments' is {platform.arguments!r}", f"it is one of {', '.join(ARGUMENTS)}")
    _check_names(platform, where)
    return platform


def _family(name: str, where: str) -> Family:
    if name not in FAMILIES:
        raise _bad(where, f"there is no family {name!r}", "known families: " + ", ".join(FAMILIES))
    return FAMILIES[name]


def _fill(fields: Fields) -> tuple[tuple[str, float], ...]:
    shares = tuple((name, fields.number(name, above=0)) for name in RESOURCE_NAMES)
    for name, share in shares:
        if share > 1:
            raise _bad(fields.where, f"field {name!r} is {share:g}", "a share of at most 1 fills a device")
    fields.finish()
    return shares


def _die(fields: Fields) -> Die:
    reserved = fields.optional_table("reserved")
    die = Die(
        name=fields.text("name"),
        position=fields.counts("position"),
        resources=_resources(fields.table("resources")),
        reserved=_resources(reserved) if reserved else Resources(),
    )
    fields.finish()
    for name, left in die.available.items():
        if left < 0:
            raise _bad(fields.where, f"more {name} is reserved than there is", "lower 'reserved'")
    return die


def _resources(fields: Fields) -> Resources:
    result = Resources(**{name: fields.count(name) for name in RESOURCE_NAMES})
    fields.finish()
    return result


def _memory(fields: Fields) -> ExternalMemory:
    memory = ExternalMemory(
        name=fields.text("name"),
        kind=fields.text("kind"),
        die=fields.text("die"),
        gigabytes=fields.number("gigabytes", above=0),
        ports=fields.count("ports", at_least=1),
        port_gb_s=fields.number("port_gb_s", above=0),
        port_bits=fields.count("port_bits", at_least=8),
    )
    fields.finish()
    return memory


def _link(fields: Fields) -> DieLink:
    ends = fields.texts("between")
    if len(ends) != 2:
        raise _bad(fields.where, f"field 'between' names {len(ends)} dies", "name the two that it connects")
    link = DieLink(between=(ends[0], ends[1]), wires=fields.count("wires", at_least=1))
    fields.finish()
    return link


def _board(fields: Fields | None, name: str, part: str) -> Board | None:
    if fields is None:
        return None
    board = Board(
        name=name,
        part=part,
        oscillator_mhz=fields.number("oscillator_mhz", above=0),
        baud=fields.count("baud", at_least=1200),
        leds_active_low=fields.flag("leds_active_low"),
        reset_active_low=fields.flag("reset_active_low"),
        load=fields.texts("load"),
        pins=tuple(_pin(f) for f in fields.tables("pin")),
    )
    fields.finish()
    _check_pins(board, fields.where)
    return board


def _pin(fields: Fields) -> BoardPin:
    pin = BoardPin(fields.text("signal"), fields.text("site"), fields.text("io_type"), fields.text("pull"))
    fields.finish()
    if pin.pull not in ("UP", "DOWN", "NONE"):
        raise _bad(fields.where, f"field 'pull' is {pin.pull!r}", "it is UP, DOWN or NONE")
    return pin


def _check_pins(board: Board, where: str) -> None:
    """Every signal of the shell on a pin of its own, LEDs counted from led0, and a command that loads."""
    signals, sites = [pin.signal for pin in board.pins], [pin.site for pin in board.pins]
    expected = (*SIGNALS, *(f"led{i}" for i in range(3, board.leds)))
    for signal in expected:
        if signals.count(signal) != 1:
            raise _bad(where, f"signal {signal!r} is on {signals.count(signal)} pins", "give it one [[board.pin]]")
    for signal, site in zip(signals, sites, strict=True):
        if signal not in expected:
            raise _bad(where, f"there is no signal {signal!r}", f"signals are {', '.join(SIGNALS)}, led3, led4, …")
        if sites.count(site) > 1:
            raise _bad(where, f"site {site!r} is used twice", "a pin carries one signal")
    if not board.load or not all("{bitstream}" in command for command in board.load):
        raise _bad(where, "field 'load' names no command with '{bitstream}'", "say how the board is loaded")


def _check_names(platform: Platform, where: str) -> None:
    """At least one die; dies named once; memories and links attached to dies that exist; clocks in order."""
    dies = [die.name for die in platform.dies]
    if not dies:
        raise _bad(where, "no [[die]] is described", "add one with its resources")
    for name in dies:
        if dies.count(name) > 1:
            raise _bad(where, f"two dies are called {name!r}", "give each a name of its own")
    if len({len(die.position) for die in platform.dies}) > 1:
        raise _bad(where, "the dies' positions differ in length", "give all of them the same dimensions")
    attached = [(f"memory {m.name!r}", m.die) for m in platform.memories]
    attached += [(f"link {link.between}", end) for link in platform.links for end in link.between]
    for what, die in attached:
        if die not in dies:
            raise _bad(where, f"{what} names die {die!r}", f"known dies: {', '.join(dies)}")
    if platform.clock_mhz > platform.max_clock_mhz:
        raise _bad(where, "'clock_mhz' is above 'max_clock_mhz'", "lower it")


def _bad(where: str, what: str, hint: str) -> PenstockError:
    return PenstockError(code=_CODE, what=what, where=where, hint=hint)
