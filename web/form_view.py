"""The form that starts a run: every option of the service's table with its help, filled as another run was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.web import text
from penstock.web.text import Document

USUAL = ("trials", "quantize", "objectives", "limits", "evidence", "name")
"""What most people look at; the rest is folded away."""
_NULL = "null"


@dataclass(frozen=True)
class Field:
    """An option: how it is asked for, and how its value goes into JSON."""

    name: str
    label: str
    help: str
    kind: str
    """number, text, choice, switch, choices or list."""
    value: str
    values: tuple[str, ...]
    choices: tuple[str, ...]
    absent: str
    least: str
    most: str
    whole: bool


@dataclass(frozen=True)
class PlatformRow:
    """A platform with its limits, each beside the largest of all."""

    name: str
    title: str
    chosen: bool
    clock: str
    limits: tuple[tuple[str, str, float], ...]
    memory: str


@dataclass(frozen=True)
class FormView:
    usual: tuple[Field, ...]
    further: tuple[Field, ...]
    platforms: tuple[PlatformRow, ...]
    again: Document | None
    """The run that is to be done again, if it is one."""


def view_form(
    properties: Mapping[str, Document],
    labels: Mapping[str, tuple[str, str]],
    helps: Mapping[str, str],
    platforms: Sequence[Document],
    again: Document | None,
) -> FormView:
    """`properties` are the options as the API describes them, `helps` what the command line says of them."""
    asked: Mapping[str, Any] = again["options"] if again else {}
    fields = [
        _field(name, properties[name], labels, helps.get(name, ""), asked) for name in properties if name != "platform"
    ]
    wanted = asked.get("platform") or properties["platform"]["default"]
    most = {
        name: max((platform["limits"][name] for platform in platforms), default=0)
        for name in (platforms[0]["limits"] if platforms else ())
    }
    return FormView(
        usual=tuple(sorted((f for f in fields if f.name in USUAL), key=lambda f: USUAL.index(f.name))),
        further=tuple(f for f in fields if f.name not in USUAL),
        platforms=tuple(_platform(platform, wanted, most) for platform in platforms),
        again=again,
    )


def _field(
    name: str, described: Document, labels: Mapping[str, tuple[str, str]], said: str, asked: Mapping[str, Any]
) -> Field:
    either = [one for one in described.get("anyOf") or [described] if one.get("type") != _NULL]
    kind = either[0]
    choices = kind.get("enum") or ([kind["const"]] if "const" in kind else ())
    items = kind.get("items") or {}
    value = asked.get(name, described.get("default"))
    if kind["type"] == "array":
        how, choices = ("choices", items["enum"]) if "enum" in items else ("list", ())
    elif choices:
        how = "choice"
    else:
        how = {"integer": "number", "number": "number", "boolean": "switch"}.get(kind["type"], "text")
    label, absent = labels.get(name, (name.replace("_", " "), ""))
    values = tuple(map(str, value)) if isinstance(value, list) else ()  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return Field(
        name=name,
        label=label,
        help=said or described.get("description") or "",
        kind=how,
        value=" ".join(values) if values else "" if value is None or isinstance(value, list) else str(value),
        values=values,
        choices=tuple(map(str, choices)),
        absent=absent or ("as the service decides" if "anyOf" in described else ""),
        least=str(kind.get("minimum", "")),
        most=str(kind.get("maximum", kind.get("maxItems", ""))),
        whole=kind["type"] == "integer",
    )


def _platform(platform: Document, wanted: str, most: Mapping[str, int]) -> PlatformRow:
    return PlatformRow(
        name=platform["name"],
        title=platform["title"],
        chosen=platform["name"] == wanted,
        clock=f"{platform['clock_mhz']:g} MHz",
        limits=tuple(
            (name.upper(), f"{amount:,}", round(100 * amount / most[name], 1) if most[name] else 0.0)
            for name, amount in platform["limits"].items()
        ),
        memory=f"{text.quantity(platform['memory_gb_s'])} GB/s" if platform["memory_gb_s"] else "none",
    )
