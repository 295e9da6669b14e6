"""HLS: projects from Tcl or from a configuration, and the steps csim, csynth, cosim, export and implementation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import NoReturn, cast

from tests.standin import misbehave, playback, results, tables
from tests.standin.dataflow import bundle_errors
from tests.standin.report_xml import Synthesis
from tests.standin.tcl import Interpreter, TclError, TclExit

PARTS = (
    "xcu55c-fsvh2892-2L-e", "xcu280-fsvh2892-2L-e", "xcu200-fsgd2104-2-e", "xcu250-figd2104-2L-e",
    "xczu7ev-ffvc1156-2-e", "xczu3eg-sbva484-1-e",
)  # fmt: skip


class Refused(Exception):
    """The tool ends here; what there is to say has been printed."""


class Project:
    """What the tool knows of a design, and the steps that it can do."""

    def __init__(self, release: str, behaviour: dict[str, object], program: str) -> None:
        self.release, self.behaviour, self.program = release, behaviour, program
        self.version = tables.release_of(release)
        self.top = self.part = ""
        self.period = 10.0
        self.sources: list[str] = []
        self.benches: list[str] = []
        self.folder = ""
        self.output = ""
        # Releases before 2025.1 keep a log beside what they print.
        self.log = open("vitis_hls.log", "w", encoding="utf-8") if self.version < (2025, 1) else None  # noqa: SIM115

    def say(self, text: str) -> None:
        print(text, flush=True)
        if self.log:
            self.log.write(text + "\n")
            self.log.flush()

    def refuse(self, text: str) -> NoReturn:
        self.say(text)
        raise Refused

    def add(self, path: str, bench: bool) -> None:
        if not os.path.exists(path):
            kind = "test bench" if bench else "source"
            self.say(f"WARNING: [HLS 200-40] Cannot find {kind} file '{path}'; skipping it.")
            return
        self.say(f"INFO: [HLS 200-10] Adding {'test bench' if bench else 'design'} file '{path}' to the project")
        (self.benches if bench else self.sources).append(path)

    def set_part(self, part: str) -> None:
        if part not in PARTS:
            self.refuse(f"ERROR: [HLS 200-1023] Part '{part}' is not installed.")
        self.part = part
        self.say(f"INFO: [HLS 200-1611] Setting target device to '{part}'")

    def set_clock(self, text: str) -> None:
        found = re.fullmatch(r"([\d.]+)\s*(ns|MHz)?", text)
        if not found or float(found[1]) <= 0:
            self.refuse(f"ERROR: [HLS 200-1448] The clock period '{text}' is not valid.")
        self.period = float(found[1]) if found[2] != "MHz" else 1000 / float(found[1])
        self.say(f"INFO: [SYN 201-201] Setting up clock 'default' with a period of {self.period:g}ns.")

    def step(self, name: str, *arguments: str) -> None:
        """One step. What shall go wrong in it is in the behaviour: `{"csynth": "hang"}`."""
        trouble = str(self.behaviour.get(name, ""))
        self._anything(trouble)
        getattr(self, f"_{name}")(trouble, *arguments)

    def _anything(self, trouble: str) -> None:
        """Troubles that any step may have."""
        kind, _, size = trouble.partition(":")
        if kind == "hang":
            self.say("INFO: [HLS 200-10] Analyzing design file 'penstock_top.cpp' ...")
            misbehave.hang()
        elif kind in ("child-killed", "child-killed-quietly"):
            misbehave.be_killed()
        elif kind == "babble":
            misbehave.babble(float(size or 1))
            sys.exit(0)
        elif kind == "flood":
            misbehave.flood(int(size))
        elif kind == "spread":
            misbehave.spread(int(size))
        elif kind == "fill":
            misbehave.fill_disk(self.folder, int(size))
        elif kind == "no-space":
            self.refuse(playback.NO_SPACE.format(file="csynth.rpt"))
        elif kind == "no-library":
            print(playback.NO_LIBRARY, file=sys.stderr)
            sys.exit(127)
        elif kind == "licence-missing":
            self.refuse(playback.LICENCE_MISSING.format(device=self.part.split("-")[0]))
        elif kind == "licence-lost":
            self.refuse(playback.LICENCE_LOST)
        elif kind == "silence":
            sys.exit(0)

    def _csim(self, trouble: str, argv: str = "") -> None:
        if not self.benches:
            self.refuse("ERROR: [SIM 211-100] 'csim_design' failed: no test bench.")
        self.say(playback.CSIM_START)
        self._frames(argv)
        if "compiler" in self.behaviour:
            self._test_bench(argv)
        if trouble == "mismatch":
            self.say(playback.CSIM_MISMATCH)
            self.say(playback.finished(self.release, "csim_design"))
            raise Refused
        self.say(playback.CSIM_END)
        self.say(playback.finished(self.release, "csim_design"))

    def _test_bench(self, argv: str) -> None:
        """Compile and run it as the tool does: deep below the project, with the tool's headers."""
        build = os.path.abspath(os.path.join(self.folder, "csim", "build"))
        os.makedirs(build, exist_ok=True)
        files = [os.path.abspath(path) for path in (*self.sources, *self.benches)]
        compiler = [str(self.behaviour["compiler"]), "-std=c++14", "-w", "-I", str(self.behaviour["headers"])]
        if subprocess.run([*compiler, *files, "-o", "csim.exe"], cwd=build, check=False).returncode:
            self.refuse("ERROR: [SIM 211-100] 'csim_design' failed: compilation error(s).")
        code = subprocess.run(["./csim.exe", *argv.split()], cwd=build, check=False).returncode
        if code:
            self.say(f"@E Simulation failed: Function 'main' returns nonzero value '{code}'.")
            self.refuse("ERROR: [SIM 211-100] 'csim_design' failed: nonzero return value.")

    def _frames(self, argv: str) -> None:
        """The test bench needs its files; like the emitted one it finds them below -C or above where it runs."""
        words = argv.split()
        root = (
            words[1]
            if words[:1] == ["-C"]
            else next((up for up in (".", "..", "../..") if os.path.exists(os.path.join(up, "interface.json"))), ".")
        )
        for word in words[2:] if words[:1] == ["-C"] else words:
            if word.startswith("csim/run/in") and not os.path.exists(os.path.join(root, word)):
                self.say(f"error: cannot open {word}\n@E Simulation failed: Function 'main' returns nonzero value '1'.")
                self.refuse("ERROR: [SIM 211-100] 'csim_design' failed: nonzero return value.")

    def _csynth(self, trouble: str) -> None:
        source = next(iter(self.sources), "")
        self.say(playback.CSYNTH_START.format(source=source))
        text = self._text()
        if not re.search(rf"\b{re.escape(self.top)}\s*\(", text) or not self.top:
            self.say(f"ERROR: [HLS 214-157] Top function not found: there is no function named '{self.top}'")
            self._give_up("csynth_design")
        if errors := bundle_errors(text):
            self.say("\n".join(errors))
            self._give_up("csynth_design")
        if trouble in ("source-error", "fifo-error"):
            task = re.search(r"^(?:static )?void (\w+)\(", text, re.MULTILINE)
            channel = re.search(r"^\s*hls::stream<.*?>\s+(\w+)", text, re.MULTILINE)
            place = task if trouble == "source-error" else channel
            line = text[: place.start()].count("\n") + 1 if place else 1
            lines = playback.SOURCE_ERROR if trouble == "source-error" else playback.FIFO_ERROR
            self.say(
                lines.format(
                    task=task[1] if task else "", channel=channel[1] if channel else "", source=source, line=line
                )
            )
            self._give_up("csynth_design")
        if trouble == "out-of-memory":
            misbehave.exhaust_memory(playback.OUT_OF_MEMORY)
        design = self._design()
        if trouble != "report-missing":
            report = os.path.join(self.folder, "syn", "report")
            if recording := str(self.behaviour.get("recording", "")):
                results.write_recording(report, recording, design)
            else:
                layout = str(self.behaviour.get("layout", "xml"))
                results.write_synthesis(report, design, layout, damaged=trouble == "report-garbage")
            os.makedirs(os.path.join(self.folder, "syn", "verilog"), exist_ok=True)
        self.say(playback.synthesised(design))
        self.say(playback.finished(self.release, "csynth_design"))

    def _give_up(self, command: str) -> None:
        self.say(playback.finished(self.release, command))
        self.say("Pre-synthesis failed.")
        raise Refused

    def _cosim(self, trouble: str, argv: str = "") -> None:
        self._needs_rtl("cosim_design")
        self.say(playback.COSIM_START)
        self._frames(argv)
        if trouble == "out-of-memory":
            misbehave.exhaust_memory(playback.XSIM_OUT_OF_MEMORY)
        report = os.path.join(self.folder, "sim", "report")
        design = self._design()
        results.write_simulation(report, design.style, design.top, passed=trouble not in ("fail", "deadlock"))
        if trouble == "deadlock":
            names = re.findall(r"^\s*hls::stream<.*?>\s+(\w+?)__(\w+)", self._text(), re.MULTILINE) or [("a", "b")]
            writer, reader = names[0]
            channel = f"{writer}__{reader}"
            self.say(
                playback.DEADLOCK.format(top=self.top, writer=writer, reader=reader, first=channel, second=channel)
            )
            self._simulation_failed()
        if trouble == "fail":
            self.say(playback.COSIM_FAIL)
            self._simulation_failed()
        self.say(playback.COSIM_PASS)
        self.say(playback.finished(self.release, "cosim_design"))

    def _design(self) -> Synthesis:
        source = next(iter(self.sources), "")
        slow = cast(dict[str, int], self.behaviour.get("slow", {}))
        return results.synthesise(source, self._text(), self.top, self.part, self.period, self.release, slow)

    def _text(self) -> str:
        return "".join(open(path, encoding="utf-8").read() for path in self.sources)

    def _simulation_failed(self) -> None:
        """A failed co-simulation does not always end the script or the exit code."""
        self.say(playback.finished(self.release, "cosim_design"))
        if not self.behaviour.get("exit-0"):
            raise Refused

    def _needs_rtl(self, command: str) -> None:
        if not os.path.isdir(os.path.join(self.folder, "syn", "verilog")):
            self.refuse(f"ERROR: [HLS 200-1442] '{command}' needs the RTL of 'csynth_design', which has not been run.")

    def _export(self, trouble: str, path: str = "") -> None:
        self._needs_rtl("export_design")
        if trouble == "date":
            self.refuse(playback.DATE_TROUBLE)
        path = path or self.output or f"{self.top}.xo"
        results.write_kernel(path, self.top, self.sources)
        self.say(f"INFO: [HLS 200-802] Generated output file {path}")
        self.say(playback.finished(self.release, "export_design"))

    def _implement(self, trouble: str) -> None:
        self._needs_rtl("export_design")
        device = self.part.split("-")[0]
        self.say(playback.LICENCE_GOT.format(device=device))
        report = os.path.join(self.folder, "impl", "report")
        results.write_implementation(report, self._design(), met=trouble != "timing")
        self.say(playback.finished(self.release, "export_design"))


def run_tcl(project: Project, script: str) -> int:
    """A script through the release's commands; returns the exit code."""
    interpreter = Interpreter(project.say)
    tcl = TclCommands(project)
    for name, (since, options, least, most) in tables.TCL.items():
        if since <= project.version:
            interpreter.commands[name] = tcl.command(name, options, least, most)
    try:
        interpreter.source(os.path.abspath(script))
    except TclExit as end:
        return end.code
    except (TclError, Refused) as error:
        if isinstance(error, TclError):
            project.say(error.message)
        ends = "command 'ap_source' returned error code" if project.version < (2024, 1) else "Error in opt"
        trace = getattr(error, "trace", "") or f'    while executing\n"source {script}"'
        project.say(f'{ends}\n{trace}\n    invoked from within\n"hls::main {script}"')
        return 1
    return 0


class TclCommands:
    """The project's commands with the options of the release."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def command(self, name: str, options: tables.Options, least: int, most: int):
        def run(words: list[str]) -> str:
            given, rest = self._parse(name, words, options)
            if not least <= len(rest) <= most:
                raise TclError(f"ERROR: [HLS 200-101] {name}: wrong number of arguments: {' '.join(rest)}")
            self.project.say(f"INFO: [HLS 200-1510] Running: {name} {' '.join(words)}")
            getattr(self, f"_{name}", self._accept)(given, rest)
            return ""

        return run

    def _parse(self, name: str, words: list[str], options: tables.Options) -> tuple[dict[str, str], list[str]]:
        given: dict[str, str] = {}
        rest: list[str] = []
        unknown: list[str] = []
        at = 0
        while at < len(words):
            word = words[at]
            option = options.get(word)
            if not word.startswith("-") or re.fullmatch(r"-[\d.]+", word):
                (unknown if unknown else rest).append(word)
            elif option is None or not tables.takes(option, self.project.version):
                unknown.append(word)
            else:
                given[word] = words[at + 1] if option[0] else "1"
                at += option[0]
            at += 1
        for word in unknown:
            self.project.say(f"ERROR: [HLS 200-101] {name}: Unknown option '{word}'.")
        if unknown:
            raise TclError("")
        return given, rest

    def _accept(self, given: dict[str, str], rest: list[str]) -> None:
        """Settings that change nothing here."""

    def _open_project(self, _given: dict[str, str], rest: list[str]) -> None:
        self.project.folder = rest[0]
        os.makedirs(rest[0], exist_ok=True)

    def _open_component(self, _given: dict[str, str], rest: list[str]) -> None:
        self.project.folder = os.path.join(rest[0], "hls")
        os.makedirs(self.project.folder, exist_ok=True)

    def _open_solution(self, given: dict[str, str], rest: list[str]) -> None:
        if given.get("-flow_target", "vivado") not in ("vivado", "vitis"):
            raise TclError(f"ERROR: [HLS 200-101] open_solution: Invalid flow_target '{given['-flow_target']}'.")
        self.project.folder = os.path.join(self.project.folder, rest[0])
        os.makedirs(self.project.folder, exist_ok=True)

    def _set_top(self, _given: dict[str, str], rest: list[str]) -> None:
        self.project.top = rest[0]

    def _add_files(self, given: dict[str, str], rest: list[str]) -> None:
        for path in rest:
            self.project.add(path, "-tb" in given)

    def _set_part(self, _given: dict[str, str], rest: list[str]) -> None:
        self.project.set_part(rest[0])

    def _create_clock(self, given: dict[str, str], _rest: list[str]) -> None:
        self.project.set_clock(given.get("-period", "10"))

    def _csim_design(self, given: dict[str, str], _rest: list[str]) -> None:
        self.project.step("csim", given.get("-argv", ""))

    def _csynth_design(self, _given: dict[str, str], _rest: list[str]) -> None:
        self.project.step("csynth")

    def _cosim_design(self, given: dict[str, str], _rest: list[str]) -> None:
        self.project.step("cosim", given.get("-argv", ""))

    def _export_design(self, given: dict[str, str], _rest: list[str]) -> None:
        if given.get("-format", "ip_catalog") not in ("ip_catalog", "xo", "syn_dcp", "sysgen", "rtl"):
            raise TclError(f"ERROR: [HLS 200-101] export_design: Invalid format '{given['-format']}'.")
        self.project.step("implement" if given.get("-flow") == "impl" else "export", *self._output(given))

    @staticmethod
    def _output(given: dict[str, str]) -> tuple[str, ...]:
        return (given["-output"],) if "-output" in given and given.get("-flow") != "impl" else ()
