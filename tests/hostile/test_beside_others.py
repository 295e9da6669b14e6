"""Models that mean harm beside somebody else's run on the same worker: it gets its turns, as many as is its share.

Turns are counted, not seconds: a busy machine makes them longer, and their number no other.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from penstock.db import lifecycle
from penstock.db.schema.records import Event, Run
from penstock.db.schema.states import RUN_TERMINAL, RunState
from penstock.services.steps.fence.probe import fence_problem
from penstock.services.steps.graph import run_steps
from penstock.services.store import ContentStore
from tests.fixtures.processes import working_in
from tests.fixtures.service import Service, assert_legal

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(fence_problem()), reason=f"no fence here: {fence_problem()}"),
]

SLOTS, TRIALS = 2, 4
HOSTILE = {
    "loops": "def model():\n while True: pass",
    "forks, and every child loops": "import os\ndef model():\n while True:\n  try: os.fork()\n  except OSError: pass",
    "holds memory": "def model():\n x = []\n while True: x.append(bytearray(1 << 24))",
    "fills the disk": "def model():\n with open('/tmp/x', 'wb') as f:\n  while True: f.write(bytes(1 << 20))",
    "floods its output": "def model():\n while True: print('x' * 100000)",
}
INNOCENT = (
    "import torch\ndef model():\n torch.manual_seed(1)\n"
    " return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)), (torch.randn(1, 8),)\n"
)
TYPED = ("import-time", "import-memory", "import-failed", "model-function")
LIMITS = {
    "PENSTOCK_CONCURRENCY": str(SLOTS), "PENSTOCK_IMPORT_SECONDS": "20", "PENSTOCK_IMPORT_MEMORY_GB": "1",
    "PENSTOCK_LEASE_SECONDS": "60", "PENSTOCK_HEARTBEAT_SECONDS": "1",
}  # fmt: skip


def test_an_innocent_run_beside_hostile_ones_gets_its_turns(service: Service) -> None:
    hostile = {name: _submit(service, "mal", source) for name, source in HOSTILE.items()}
    service.dispatcher()
    service.worker(**LIMITS)
    explain = lambda: "\n".join(service.explain(run) for run in hostile.values())  # noqa: E731
    service.until(lambda: sum(_imports(service, run) for run in hostile.values()) >= SLOTS, explain)
    innocent = _submit(service, "ben", INNOCENT)
    assert service.wait(innocent).state == RunState.SUCCEEDED, service.explain(innocent)
    for name, run in hostile.items():
        service.until(lambda run=run: service.run_of(run).state in RUN_TERMINAL, explain)
        ended = service.run_of(run)
        assert ended.state == RunState.FAILED, name
        assert ended.error is not None
        assert ended.error["code"] in TYPED, (name, ended.error)
    looping = service.run_of(hostile["loops"]).error or {}
    assert "at the stage 'load the model'" in looping["what"], looping
    assert "train nothing in its function" in looping["hint"]
    own = service.events(innocent)
    assert_legal(own)
    claims = [event.data["key"] for event in own if event.kind == "step.claim"]
    assert len(claims) == len(set(claims)) == TRIALS + 5, "nothing had to be done again"
    others = [event for run in hostile.values() for event in service.events(run)]
    assert _passed_over(own, others) <= SLOTS, "each claim may cross the first word of the innocent run"
    assert working_in(service.home / "work") == []


def _submit(service: Service, owner: str, source: str) -> Run:
    stored = ContentStore(service.home / "store").put_bytes(source.encode())
    options = {"platform": "u55c", "trials": TRIALS, "quantize": "w8a8"}
    with service.database.begin() as tx:
        model = tx.models.create(
            name="m", kind="python", source="m.py:model", sha256=stored.sha256, size=stored.size,
            details={"file": "m.py", "function": "model"},
        )  # fmt: skip
        return lifecycle.submit(
            tx, model_id=model.id, name=owner, steps=run_steps(model, options), options=options, owner=owner
        )


def _imports(service: Service, run: Run) -> bool:
    return any(step.state == "running" for step in service.steps(run).values())


def _passed_over(own: Sequence[Event], others: Sequence[Event]) -> int:
    """How often another's step was begun while this run had one to do, and none of its own was being done."""
    waiting: set[str] = set()
    working: set[str] = set()
    passed = 0
    theirs = {event.id for event in others}
    for event in sorted([*own, *others], key=lambda event: event.id):
        step = str(event.data.get("step", ""))
        if event.id in theirs:
            passed += event.kind == "step.claim" and bool(waiting) and not working
        elif step and "to" in event.data:
            state = event.data["to"]
            (waiting.add if state == "queued" else waiting.discard)(step)
            (working.add if state == "running" else working.discard)(step)
    return passed
