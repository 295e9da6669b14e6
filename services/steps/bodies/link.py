"""Link: the bitstream of the verified design, by v++. It may fail: the package then comes without, and says why."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from penstock.compiler.package.bitstream import FOLDER
from penstock.compiler.platforms import load_platform
from penstock.services.bitstreams import bitstream_target
from penstock.services.jobs.link import LinkBench, Target, link_for_card
from penstock.services.step_kinds import LINK, VERIFY
from penstock.services.steps.bodies.tools import Telling, build_folder, build_limits, licences
from penstock.services.steps.bodies.verify import EMITTED, read_design
from penstock.services.steps.context import StepContext
from penstock.services.steps.registry import step_kind
from penstock.services.steps.result import Output, StepResult
from penstock.services.store import TREE_MEDIA_TYPE

BITSTREAM, INFO = FOLDER, "bitstream.json"


@step_kind(LINK)
def link(context: StepContext) -> StepResult:
    """What v++ compiled, and links that stopped on the way, stay in the service's folder for the next try."""
    design = read_design(context)
    asked = bitstream_target(context.options)
    target: Target = "hw" if asked == "hw" else "hw_emu"
    bench = LinkBench(
        context.tools, build_folder(context), build_limits(context.settings),
        lambda text: context.progress(None, text), Telling(lambda text: context.progress(None, text)),
    )  # fmt: skip
    emitted = context.input_tree(VERIFY, EMITTED)
    with licences(context):
        built = link_for_card(
            emitted, load_platform(design.platform), design.clock_mhz, target, bench, context.folder / "results"
        )
    context.check()
    outputs = {INFO: Output(built.info.model_dump_json(indent=1).encode(), "application/json")}
    if built.files:
        outputs[BITSTREAM] = Output(_laid_out(context, built.files), TREE_MEDIA_TYPE)
    return StepResult(built.info.model_dump(mode="json"), outputs)


def _laid_out(context: StepContext, files: Mapping[str, bytes]) -> Path:
    """The files of the package's folder, below one of this step."""
    folder = context.folder / "package"
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder
