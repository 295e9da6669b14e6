"""Which body does which kind of step, and when an earlier result may be used again."""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.db.schema.records import Json
from penstock.services.steps.context import StepContext
from penstock.services.steps.result import StepResult

Body = Callable[[StepContext], StepResult]
ReuseKey = Callable[[StepContext], Json]

_kinds: dict[str, StepBody] = {}


@dataclass(frozen=True)
class StepBody:
    """`reuse_key` names everything that the result depends on; None means that it is never used again."""

    name: str
    body: Body
    reuse_key: ReuseKey | None

    def input_hash(self, context: StepContext, version: str) -> str | None:
        if self.reuse_key is None:
            return None
        document: dict[str, Any] = {"kind": self.name, "version": version, **self.reuse_key(context)}
        return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def step_kind(name: str, *, reuse_key: ReuseKey | None = None) -> Callable[[Body], Body]:
    """Register the decorated function as the body of all steps of this kind."""

    def register(body: Body) -> Body:
        known = _kinds.get(name)
        if known is not None and known.body is not body:
            raise ValueError(f"two bodies for steps of kind {name!r}: {known.body} and {body}")
        _kinds[name] = StepBody(name, body, reuse_key)
        return body

    return register


def load(modules: Sequence[str]) -> None:
    """Import the modules that register bodies."""
    for module in modules:
        importlib.import_module(module)


def find(name: str) -> StepBody | None:
    return _kinds.get(name)
