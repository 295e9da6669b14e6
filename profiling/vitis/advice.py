"""What `penstock doctor` says of the Vitis tools: what will be used, how, and what is missing for what."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.profiling.vitis.detect import SETTING, VitisTools

_FORMS = {
    "classic": "HLS by `vitis_hls -f run_hls.tcl`",
    "unified": "HLS by `v++ -c --mode hls` and `vitis-run --mode hls`, with hls_config.cfg",
    "tcl": "HLS by `vitis-run --mode hls --tcl run_hls.tcl`",
}
_PLATFORMS_NAMED = 4


@dataclass(frozen=True)
class Advice:
    """One line: what it is about, whether all of it is there, what is there, and what to do where it is not."""

    name: str
    complete: bool
    what: str
    hint: str = ""


def advise(tools: VitisTools) -> tuple[Advice, ...]:
    """The lines about HLS, about linking and about running; the last two only where there is HLS or a linker."""
    hls = _hls(tools)
    if tools.form is None and "v++" not in tools.programs:
        return (hls,)
    return (hls, _link(tools), _run(tools))


def _hls(tools: VitisTools) -> Advice:
    if tools.form is None:
        return Advice(
            "vitis", False, "absent: no csynth or cosim figures and no xclbin from here",
            f"set {SETTING} to the folder of Vitis, or put its settings64.sh into the environment; "
            "without it AMD devices have modelled and simulated figures; ECP5 boards need no Vitis",
        )  # fmt: skip
    release = f"Vitis {tools.release}" if tools.release else "Vitis of an unknown release"
    program = tools.programs["vitis_hls" if tools.form == "classic" else "vitis-run"]
    lacks = [line for line in tools.missing if line.startswith("no vivado")]
    return Advice("vitis", not lacks, f"{release}, {_FORMS[tools.form]} ({program})", "; ".join(lacks))


def _link(tools: VitisTools) -> Advice:
    lacks = [
        line for line in tools.missing if line.startswith(("no v++", "no platform", "no licence", "no xclbinutil"))
    ]
    if "v++" not in tools.programs:
        return Advice("v++", False, lacks[0])
    names = sorted(tools.platforms)
    shown = ", ".join(names[:_PLATFORMS_NAMED]) + (
        f" and {len(names) - _PLATFORMS_NAMED} more" if len(names) > _PLATFORMS_NAMED else ""
    )
    licence = f"; licence by {', '.join(tools.licences)}" if tools.licences else ""
    return Advice("v++", not lacks, f"{tools.programs['v++']}; platforms: {shown or 'none'}{licence}", "; ".join(lacks))


def _run(tools: VitisTools) -> Advice:
    if tools.xrt is None:
        return Advice("xrt", False, "absent: bitstreams that are built here run on another machine")
    return Advice("xrt", True, f"XRT {tools.xrt_version or 'of an unknown version'} ({tools.xrt})")
