"""The kinds of steps that a run is made of, and how a step is called within its run.

One table: queues, pages and documentation follow it. Light to import, since the API and the settings need it; what a
step does lies in `bodies/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

IMPORT, EXPLORE, TRIAL, SELECT, VERIFY, PACKAGE = "import", "explore", "trial", "select", "verify", "package"
SHORTLIST, MEASURE, LINK, REPLAY, CHECK = "shortlist", "measure", "link", "replay", "check"
WHAT_IF, KERNEL, ARRAY = "what-if", "kernel", "array"
VITIS_HLS, VIVADO = "vitis_hls", "vivado"

SPACE = "space"
"""In the result of the explore step: what can be decided, for programs that search by themselves."""
TO_BE_TOLD = "to-be-told"
"""The queue of trials whose setting an agent is still to tell: no worker serves it."""
TOLD = "told"
"""In the payload of such a trial: its setting, once it was told."""
EXPLAINED = ("explanation", "constraints")
"""In the result of a trial's step."""
FIRST_TURN = 1
"""Trials that are added after a design was chosen begin another turn: its choice, its check and its package."""


@dataclass(frozen=True)
class StepFacts:
    """What is to be known of one kind of step."""

    does: str
    queue: str
    outputs: str = ""
    chooses: bool = False
    """It comes after the trials, and once more whenever some were added after a choice."""
    many: bool = False
    """A run has one for each trial or design; they are told apart by number, and a picture shows them as one."""
    may_fail: bool = False
    """One that fails costs itself, not the run."""
    held_by_pause: bool = False
    licence: str | None = None
    """Of which tool it takes a licence while it runs."""
    delivers: bool = False
    """What it makes is what people fetch."""


STEP_KINDS: Mapping[str, StepFacts] = {
    IMPORT: StepFacts(
        "the user's model → program, behind a fence: no network, no files of the machine, limits of everything",
        "import", "`program` (tree)"
    ),
    EXPLORE: StepFacts(
        "quantises and simplifies; opens the study; fans out into trials", "explore", "`prepared` (tree)"
    ),
    TRIAL: StepFacts(
        "ask, evaluate, tell", "explore", "a row of `trials`", many=True, may_fail=True, held_by_pause=True
    ),
    SHORTLIST: StepFacts("the designs that a tool is to look at; fans out into measurements", "explore", chooses=True),
    MEASURE: StepFacts(
        "what the tool says of one trial's design; a failure is noted on the trial", "profile",
        chooses=True, many=True, may_fail=True, licence=VITIS_HLS,
    ),
    SELECT: StepFacts(
        "closes the study; ranks the best trials by the evidence asked for; sizes the chosen one's FIFOs and places "
        "it; in queue `profile`, where it has HLS synthesise it again with these FIFOs", "explore",
        "`design.json`, `exploration.json`, `synthesis.json`, `dies.svg`, `memories.svg`", chooses=True,
    ),
    VERIFY: StepFacts(
        "lowers, emits C++, runs every level against the others", "build", "`emitted`, `checked` (trees)",
        chooses=True,
    ),
    LINK: StepFacts(
        "the bitstream by v++, for platforms with a shell; if it fails the package says why", "build",
        "`bitstream` (tree), `bitstream.json`", chooses=True, may_fail=True, licence=VIVADO,
    ),
    PACKAGE: StepFacts(
        "report and archive", "build", "`*.penstock.zip`, `report.json`, `report.html`", chooses=True, delivers=True
    ),
    REPLAY: StepFacts("the only step of a run of its own: evaluates a trial of another run again", "explore"),
    WHAT_IF: StepFacts(
        "the only step of a run of its own: models and simulates a design of another run with changes", "explore",
        "`design.json`",
    ),
    KERNEL: StepFacts(
        "in a run of a C++ kernel what stands between import and package: tries sources of it behind the fence, each a "
        "trial, and compiles and runs the best one beside what was sent", "explore",
        "the new source, `improved.json`",
    ),
    CHECK: StepFacts(
        "after the import the only step of a run of its own: what is known of a model before any search", "explore"
    ),
    ARRAY: StepFacts(
        "the only step of a run of its own: an array of cores for a Triton kernel in several shapes, found or of a "
        "description, with a program for each; the kernel is read behind the fence", "explore",
        "`array.json`, `array.zip`, `array.toml`",
    ),
}  # fmt: skip
"""In the order in which a run has them."""

SIDE_KINDS = (REPLAY, CHECK, WHAT_IF, ARRAY)
"""Runs that have such a step search nothing and make no package: somebody asked something."""

LICENCES = tuple(dict.fromkeys(kind.licence for kind in STEP_KINDS.values() if kind.licence))
"""What an administrator may count: see `PENSTOCK_LICENCES`."""

QUEUES = tuple(dict.fromkeys(kind.queue for kind in STEP_KINDS.values()))


@dataclass(frozen=True)
class StepKey:
    """What a step is called within its run: `import`, `trial/0007`, and of a later turn `select@2`,
    `measure/0007@2`."""

    kind: str
    number: int | None = None
    turn: int = FIRST_TURN

    def __str__(self) -> str:
        number = "" if self.number is None else f"/{self.number:04d}"
        return f"{self.kind}{number}" + ("" if self.turn == FIRST_TURN else f"@{self.turn}")

    @staticmethod
    def parse(text: str) -> StepKey:
        """The key of any step; what is no number counts as none, since a run may have steps of other packages."""
        name, _, turn = text.partition("@")
        kind, _, number = name.partition("/")
        return StepKey(
            kind,
            int(number) if number.isdecimal() else None,
            int(turn) if turn.isdecimal() else FIRST_TURN,
        )

    def in_turn(self, turn: int) -> StepKey:
        """The same when trials were added after a choice, so that one chooses again. What is done once stays."""
        facts = STEP_KINDS.get(self.kind)
        return replace(self, turn=turn) if facts and facts.chooses else self
