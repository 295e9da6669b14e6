"""The JSON Schemas of what reports and searches print, as docs/ holds them. What both have stands in the report's."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from penstock.compiler.evidence import EVIDENCE, EVIDENCE_KINDS
from penstock.compiler.package.report import Report, SearchResult
from penstock.compiler.package.verdict import ModelVerdict
from penstock.compiler.search_space import EvaluatedSettings, SpaceInfo

_DIALECT = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
_REPORT = "report.schema.json"


def report_schema() -> str:
    """The report's. Kinds of evidence are one definition in it, which says what each of them means."""
    document = _shared_evidence(Report.model_json_schema(mode="serialization"))
    meanings = "; ".join(f"{name}: {kind.meaning}" for name, kind in EVIDENCE_KINDS.items())
    document["$defs"]["Evidence"] = {"enum": list(EVIDENCE), "type": "string", "description": meanings}
    return _text(document)


def explore_schema() -> str:
    """What `penstock explore --json` prints: its parts are those of a report."""
    document = SearchResult.model_json_schema(mode="serialization", ref_template=f"{_REPORT}#/$defs/{{model}}")
    del document["$defs"]
    return _text(document)


def check_schema() -> str:
    """What `penstock check --json` prints."""
    return _text(ModelVerdict.model_json_schema(mode="serialization"))


def space_schema() -> str:
    """What `penstock space --json` prints."""
    return _text(SpaceInfo.model_json_schema(mode="serialization"))


def evaluate_schema() -> str:
    """What `penstock evaluate --json` prints."""
    return _text(EvaluatedSettings.model_json_schema(mode="serialization"))


SCHEMAS: Mapping[str, Callable[[], str]] = {
    _REPORT: report_schema, "explore.schema.json": explore_schema, "check.schema.json": check_schema,
    "space.schema.json": space_schema, "evaluate.schema.json": evaluate_schema,
}  # fmt: skip


def _shared_evidence(value: Any) -> Any:
    """The same with every list of all kinds of evidence as a reference to the one definition."""
    if isinstance(value, list):
        return [_shared_evidence(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(value, dict):
        return value
    found: dict[str, Any] = {name: _shared_evidence(one) for name, one in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if found.get("enum") == list(EVIDENCE):
        del found["enum"], found["type"]
        found["$ref"] = "#/$defs/Evidence"
    return found


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps({**_DIALECT, **document}, indent=1) + "\n"
