"""The program behind every stand-in executable: `main.py INSTALLATION RELEASE PROGRAM words…`."""

from __future__ import annotations

import json
import os
import sys

sys.path.insert(0, os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")))

from tests.standin import playback, tables
from tests.standin.command_line import Unknown, parse
from tests.standin.generations import style_of
from tests.standin.hls_tool import Project, run_tcl
from tests.standin.vpp_tool import Vpp, hls_config, read_container


def main(root: str, release: str, program: str, words: list[str]) -> int:
    with open(os.path.join(root, "installation.json"), encoding="utf-8") as file:
        installation = json.load(file)
    behaviour = installation["behaviour"]
    with open(os.path.join(root, "calls.log"), "a", encoding="utf-8") as file:
        file.write(json.dumps([program, *words]) + "\n")
    programs = {"vitis_hls": vitis_hls, "vitis-run": vitis_run, "emconfigutil": emconfigutil, "xclbinutil": xclbinutil}
    try:
        if program == "v++":
            return Vpp(release, behaviour, installation["platforms"]).main(words)
        return programs[program](release, behaviour, words)
    except Unknown as error:
        print(error, flush=True)
        return 2


def vitis_hls(release: str, behaviour: dict[str, object], words: list[str]) -> int:
    for word in words:
        if word.startswith("-") and word not in tables.VITIS_HLS:
            print(f"ERROR: [HLS 200-101] Unknown option '{word}'", flush=True)
            return 1
    given, _ = parse(words, tables.VITIS_HLS, tables.release_of(release), "vitis_hls")
    name = "Vitis HLS - High-Level Synthesis from C, C++ and OpenCL"
    print(playback.banner(name, style_of(release)))
    if "-version" in given:
        return 0
    project = Project(release, behaviour, "vitis_hls")
    if tables.release_of(release) >= (2024, 1):
        project.say(
            "WARNING: [HLS 200-2053] The vitis_hls executable is deprecated. Consider using vitis-run --mode hls --tcl"
        )
    return _end(project, run_tcl(project, given["-f"][0]))


def vitis_run(release: str, behaviour: dict[str, object], words: list[str]) -> int:
    given, _ = parse(words, tables.VITIS_RUN, tables.release_of(release), "vitis-run")
    if "--version" in given:
        print(playback.banner("vitis-run", style_of(release)))
        return 0
    if given.get("--mode") != ["hls"]:
        raise Unknown("ERROR: [vitis-run 60-1520] ***Exception: the option '--mode' is required but missing")
    if "--tcl" in given:
        print(playback.banner("vitis-run", style_of(release)))
        project = Project(release, behaviour, "vitis-run")
        project.say(f"Sourcing Tcl script '{os.path.abspath(given['--tcl'][0])}'")
        code = _end(project, run_tcl(project, given["--tcl"][0]))
        print("INFO: [vitis-run 60-791] Total elapsed time: 0h 0m 35s", flush=True)
        return code
    steps = {"--csim": "csim", "--cosim": "cosim", "--package": "export", "--impl": "implement"}
    chosen = [step for option, step in steps.items() if option in given]
    if len(chosen) != 1:
        raise Unknown(
            "ERROR: [vitis-run 60-1520] ***Exception: one of --csim, --cosim, --package, --impl or --tcl is required"
        )
    return hls_config(release, behaviour, "vitis-run", given, chosen[0])


def emconfigutil(release: str, _behaviour: dict[str, object], words: list[str]) -> int:
    given, _ = parse(words, tables.EMCONFIGUTIL, tables.release_of(release), "emconfigutil")
    with open(os.path.join(given.get("--od", ["."])[0], "emconfig.json"), "w", encoding="utf-8") as file:
        json.dump({"Platform": {"Boards": []}}, file)
    print(
        "INFO: [ConfigUtil 60-1032] Extracting hardware platform\n"
        "emulation configuration file `emconfig.json` is created"
    )
    return 0


def xclbinutil(_release: str, _behaviour: dict[str, object], words: list[str]) -> int:
    if words[:2] != ["--info", "--input"] or len(words) != 3:
        print(f"ERROR: unrecognised option '{' '.join(words)}'")
        return 1
    content = read_container(words[2])
    if content is None:
        print(f"ERROR: Unable to determine the file type: {words[2]}")
        return 1
    print(f"XRT Build Version: 2.16.204\n\nxclbin Information\n   Kernels: {', '.join(content['kernels'])}")
    return 0


def _end(project: Project, code: int) -> int:
    project.say(playback.TOTAL)
    return 1 if project.behaviour.get("exit-1") else code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
