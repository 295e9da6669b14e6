"""One row of the benchmark `llm` in a process of its own: `python -m benchmarks.language.part NAME SECONDS`.

The row is the last line that it prints, as JSON. It ends itself after so many seconds of processor time, whatever else
the machine does. A mistake of the model's or the search's is a row with its `reason`.
"""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.compile_blocks import MODES, compile_block
from benchmarks.language.published import LENGTHS
from benchmarks.registry import WALL_CLOCK, Value
from penstock.compiler.platforms import RESOURCE_NAMES
from penstock.dse.support.budgets import SIMULATIONS

QUANTISED = "w8a8"
"""The published designs have weights of four bits. Here those lie in one bank each, which is slower than eight bits."""
LAYERS = 2
"""That are imported: the accelerator is the same for two as for 24, and the import takes a twelfth."""
SHARES = {"layer/64": 0.835, "layer/64/2": 0.835, "layer/512/2": 0.835, "head/gpt2": 0.165, "prefill/gpt2/32": 0.85}
"""Of the card's resources that accelerators may take: a layer's and the head's lie on one card together."""
FAMILIES = ("gpt2", "llama", "qwen", "gemma")
PREFILL, FEW = 128, 2
"""Tokens of the blocks of which memory is asked, and trials of blocks whose search takes long."""
PREFILLS = (32,)
FEW_BITS = ("latency", "fifo_bits")
"""The objectives where memory is asked of: `--objective latency --objective fifo_bits`. FIFOs hold what one input needs
then, and nothing so that the next one follows sooner, which it cannot: it is the next layer's."""
MANY_RUNS, SLACK = 1600, 1.0
"""`--fifo-simulations` there: four times the usual, of which a block's long runs leave a few dozen; and `--fifo-slack`,
one percent of a run."""


@dataclass(frozen=True)
class Text:
    """So many tokens of a prompt, and as many written, by accelerators of a layer and of the head."""

    tokens: int
    layer: str

    @property
    def chunk(self) -> int:
        """Tokens that a call reads. One that is written is a call of its own, which then has room for more."""
        return chunk_of(self.layer)

    @property
    def needs(self) -> list[str]:
        """The rows that it is made of."""
        return [self.layer, "head/gpt2"]


def chunk_of(layer: str) -> int:
    """`layer/64/2`: with 64 places, two tokens a call; of `layer/64`, one."""
    return int(layer.split("/")[2]) if layer.count("/") > 1 else 1


TEXTS = {
    "text/32": Text(32, "layer/64/2"),
    "text/32/one": Text(32, "layer/64"),
    **{f"text/{tokens}": Text(tokens, "layer/512/2") for tokens in LENGTHS[1:]},
}
"""Weights pass once a call, whether it reads one token or two: a prompt of two a call takes half as many calls, each of
which has twice the products in it. One a call is what memory can hardly bring faster."""
MODELS = Path(__file__).with_name("models.py")


def names() -> list[str]:
    """All rows that are computed by themselves; `benchmarks.llm` makes others of these."""
    return [
        *(f"compile/{family}/{mode}" for family in FAMILIES for mode in MODES),
        *dict.fromkeys(text.layer for text in TEXTS.values()),
        "head/gpt2",
        "share/2",
        "share/4",
        *(f"prefill/gpt2/{n}" for n in PREFILLS),
        *(f"memory/{family}" for family in FAMILIES),
    ]


def model_of(name: str) -> str:
    """The reference of the model that a row compiles."""
    part, _, which = name.partition("/")
    if part == "compile":
        family, mode = which.split("/")
        return f"zoo:{family}?size=real&{MODES[mode]}"
    if part == "layer":
        places = which.partition("/")[0]
        return f"zoo:gpt2_text?size=medium&layers={LAYERS}&cache={places}&chunk={chunk_of(name)}#h"
    if part == "head":
        return f"{MODELS}:head"
    if part == "share":
        return f"{MODELS}:{ {'2': 'half', '4': 'quarter'}[which] }#h"
    family, _, tokens = which.partition("/")
    return f"zoo:{family}?size=real&mode=prefill&seq={tokens or PREFILL}"


def limits_of(name: str) -> list[str]:
    share = SHARES.get(name)
    return [] if share is None else [f"{one}<={share}" for one in RESOURCE_NAMES]


def row_of(name: str) -> Mapping[str, Value]:
    model = model_of(name)
    if name.startswith("compile/"):
        return {"evidence": WALL_CLOCK, **compile_block(model)}
    from benchmarks.searched import TRIALS, Searched  # after the compile rows: it loads the whole search
    from penstock.compiler.feeds import feeds_of
    from penstock.services.jobs.model import load_program

    began = time.process_time()
    program = load_program(model, QUANTISED)
    trials = FEW if name.startswith(("memory/", "prefill/")) else TRIALS
    objectives, runs, slack = (FEW_BITS, MANY_RUNS, SLACK) if name.startswith("memory/") else ((), SIMULATIONS, 0.0)
    found = Searched.of(program, QUANTISED, trials, limits_of(name), objectives, runs, slack)
    reason = {} if found.cycles is not None else {"reason": "the design deadlocks"}
    return {
        "evidence": "simulated", "model": _without_folders(model),
        "by_list": bool(feeds_of(program).ports),
        "memories": len(program.signature.inputs) + len(program.signature.outputs),
        "quantize": QUANTISED, "fifo_simulations": runs, "fifo_slack": slack, "limits": ", ".join(limits_of(name)),
        **found.figures, **reason,
        "cpu_s": round(time.process_time() - began, 1),
    }  # fmt: skip


def _without_folders(text: str) -> str:
    return text.replace(str(MODELS), f"benchmarks/language/{MODELS.name}")


def main(name: str, seconds: int) -> None:
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    from penstock.compiler.errors import PenstockError

    try:
        row = row_of(name)
    except PenstockError as error:
        row = {"evidence": None, "reason": _without_folders(error.one_line())}
    print(json.dumps(row))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
