"""v++: compiles, links, packages; checks what it is given against the platform and the kernels as v++ does."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from typing import Any, NoReturn

from tests.standin import misbehave, playback, results, tables
from tests.standin.command_line import Unknown, parse, read_config
from tests.standin.generations import style_of
from tests.standin.hls_tool import Project, Refused

HBM_BANKS, DDR_BANKS = 32, 2
MAGIC = b"xclbin2\0"


class Vpp:
    def __init__(self, release: str, behaviour: dict[str, Any], platforms: list[str]) -> None:
        self.release, self.behaviour, self.platforms = release, behaviour, platforms
        self.version = tables.release_of(release)

    def main(self, words: list[str]) -> int:
        mode = self._mode(words)
        options = {"compile": tables.VPP_COMPILE, "link": tables.VPP_LINK, "package": tables.VPP_PACKAGE}[mode]
        try:
            given, inputs = parse(words, options, self.version, "v++")
            if "--version" in given or "-v" in given:
                print(playback.banner("v++", style_of(self.release)))
                return 0
            if given.get("--mode") == ["hls"]:
                return hls_config(self.release, self.behaviour, "v++", given, "csynth")
            print(playback.banner("v++", style_of(self.release)), flush=True)
            config = [line for path in given.get("--config", []) for line in read_config(path, "v++")]
            self._check(config, options)
            self._platform(given, config)
            getattr(self, f"_{mode}")(given, inputs, config)
        except Unknown as error:
            print(error, flush=True)
            return 2
        except Refused:
            return 1
        print("INFO: [v++ 60-791] Total elapsed time: 0h 0m 35s")
        print("INFO: [v++ 60-1653] Closing dispatch client.", flush=True)
        return 0

    @staticmethod
    def _mode(words: list[str]) -> str:
        if {"-l", "--link"} & set(words):
            return "link"
        return "package" if {"-p", "--package"} & set(words) else "compile"

    def say(self, text: str) -> None:
        print(text, flush=True)

    def refuse(self, *lines: str) -> NoReturn:
        for line in lines:
            self.say(line)
        raise Refused

    def _check(self, config: list[tuple[str, str, str]], options: tables.Options) -> None:
        for section, key, _ in config:
            known = tables.VPP_CONFIG.get(section, frozenset()) if section else {o.lstrip("-") for o in options}
            if key not in known:
                name = f"{section}.{key}" if section else key
                raise Unknown(f"ERROR: [v++ 60-1520] ***Exception: unrecognised option '{name}' ")

    def _platform(self, given: dict[str, list[str]], config: list[tuple[str, str, str]]) -> None:
        named = [
            *given.get("--platform", []),
            *given.get("-f", []),
            *(v for s, k, v in config if (s, k) == ("", "platform")),
        ]
        if not named:
            self.refuse("ERROR: [v++ 60-604] Platform must be specified")
        name = os.path.basename(named[0]).removesuffix(".xpfm")
        if name not in self.platforms:
            self.refuse(f"ERROR: [v++ 60-602] Source file does not exist: {named[0]}",
                        f"ERROR: [v++ 60-300] Failed to open platform file '{named[0]}'")  # fmt: skip
        if self.behaviour.get("platform") == "old":
            self.refuse(
                f"ERROR: [v++ 60-1299] The specified platform is not supported. Platform '{name}.xpfm' (version "
                f"2019.2) is not supported by the current tool version ({self.release}). By policy, platforms are "
                "supported for the remainder of the calendar year release plus the following calendar year release"
            )
        self.say(f"INFO: [v++ 60-423]   Target device: {name}")

    def _target(self, given: dict[str, list[str]]) -> str:
        target = [*given.get("--target", []), *given.get("-t", []), ""][0]
        if target not in ("hw", "hw_emu", "sw_emu"):
            self.refuse(f"ERROR: [v++ 60-1520] ***Exception: invalid target '{target}'")
        return target

    def _output(self, given: dict[str, list[str]], suffix: str) -> str:
        output = [*given.get("--output", []), *given.get("-o", []), ""][0]
        if not output.endswith(suffix):
            self.refuse(f"ERROR: [v++ 60-623] Unsupported output file type specified: '{output}', expected {suffix}")
        return output

    def _inputs(self, inputs: list[str]) -> None:
        for path in inputs:
            if not os.path.exists(path):
                self.refuse(f"ERROR: [v++ 60-602] Source file does not exist: {path}")

    def _compile(self, given: dict[str, list[str]], inputs: list[str], _config: object) -> None:
        target, output = self._target(given), self._output(given, ".xo")
        kernel = [*given.get("--kernel", []), *given.get("-k", []), ""][0]
        self._inputs(inputs)
        self.say(f"INFO: [v++ 60-585] Compiling for {'hardware' if target == 'hw' else 'hardware emulation'} target")
        self.say(f"INFO: [v++ 60-242] Creating kernel: '{kernel}'")
        trouble = str(self.behaviour.get("compile", ""))
        if trouble == "source-error":
            self.refuse(
                "ERROR: [v++ 214-134] in function 'fc0': Pointer to pointer is not supported for variable 'x' "
                f"({inputs[0]}:12:17)",
                "ERROR: [v++ 60-300] Failed to build kernel(ip) " + kernel + ", see log for details: vitis_hls.log",
                "ERROR: [v++ 60-599] Kernel compilation failed to complete",
                "ERROR: [v++ 60-592] Failed to finish compilation",
            )
        for path in inputs:
            with open(path, encoding="utf-8") as file:
                if not re.search(rf"\b{re.escape(kernel)}\s*\(", file.read()):
                    self.refuse(
                        f"ERROR: [v++ 60-773] caught Tcl error: ERROR: [HLS 214-157] Top function not found: {kernel}"
                    )
        results.write_kernel(output, kernel, inputs)
        self.say(f"INFO: [v++ 60-586] Created {output}")

    def _link(self, given: dict[str, list[str]], inputs: list[str], config: list[tuple[str, str, str]]) -> None:
        target, output = self._target(given), self._output(given, ".xclbin")
        self._inputs(inputs)
        self.say(f"INFO: [v++ 60-629] Linking for {'hardware' if target == 'hw' else 'hardware emulation'} target")
        kernels = [results.read_kernel(path) for path in inputs]
        work = given.get("--temp_dir", ["_x"])[0]
        os.makedirs(os.path.join(work, "link"), exist_ok=True)
        state = os.path.join(work, "link", "steps.json")
        start = given.get("--from_step", [""])[0]
        if start and not os.path.exists(state):
            self.refuse(f"ERROR: [v++ 60-1520] ***Exception: cannot start from '{start}': no earlier run in {work}")
        if not start:
            self._connect(kernels, config)
        self._vivado(state, start)
        if target == "hw":
            # The clock that timing closure reached, which may be below the one that was asked for.
            asked = next((int(v.split(":")[0]) // 10**6 for s, k, v in config if (s, k) == ("clock", "freqHz")), 300)
            reached = int(asked * float(str(self.behaviour.get("reached", 1))))
            self.say(
                "INFO: [v++ 60-1230] The compiler selected the following frequencies for the runtime controllable "
                "kernel clock(s) and scalable system clock(s): System (SYSTEM) clock: hbm_aclk = 450, "
                f"Kernel (KERNEL) clock: ap_clk = 500, Kernel (DATA) clock: clk_kernel_in = {reached}"
            )
        write_container(output, {"kernels": [k["kernel"] for k in kernels], "target": target})
        self.say(f"INFO: [v++ 60-586] Created {output}")

    def _connect(self, kernels: list[dict[str, Any]], config: list[tuple[str, str, str]]) -> None:
        instances: dict[str, dict[str, Any]] = {}
        self.say("INFO: [CFGEN 83-0] Kernel Specs: ")
        for section, key, value in config:
            if (section, key) == ("connectivity", "nk"):
                name, _, names = value.partition(":")
                kernel = next((k for k in kernels if k["kernel"] == name), None)
                if kernel is None:
                    self._failed("system_link", f"ERROR: [CFGEN 83-2229] Unknown kernel: {name}")
                count, _, listed = names.partition(":")
                numbered = [f"{name}_{i + 1}" for i in range(int(count))]
                instances |= dict.fromkeys(listed.split(".") if listed else numbered, kernel)
        for kernel in kernels:
            if kernel not in instances.values():
                instances[f"{kernel['kernel']}_1"] = kernel
        for section, key, value in config:
            if section == "connectivity" and key == "sp":
                port, _, bank = value.partition(":")
                instance, _, name = port.partition(".")
                if name not in instances.get(instance, {}).get("ports", []):
                    self._failed(
                        "system_link",
                        f"ERROR: [CFGEN 83-2292] --sp tag applied to an invalid port or argument name: {name}",
                    )
                self._bank(bank)
            elif section == "connectivity" and key == "slr" and value.partition(":")[0] not in instances:
                self._failed("system_link", f"ERROR: [CFGEN 83-2298] --slr applied to an unknown instance: {value}")
            elif section == "clock" and key == "freqHz" and value.partition(":")[2].split(".")[0] not in instances:
                self._failed("system_link", f"ERROR: [CFGEN 83-2243] Malformed --clock.freqHz switch argument: {value}")

    def _bank(self, bank: str) -> None:
        found = re.fullmatch(r"(HBM|DDR|PLRAM|HOST)\[(\d+)(?::(\d+))?\]", bank)
        most = {"HBM": HBM_BANKS, "DDR": DDR_BANKS}.get(found[1], 4) if found else 0
        if not found or int(found[3] or found[2]) >= most:
            self._failed("system_link", f"ERROR: [CFGEN 83-2287] Invalid memory resource: {bank}")

    def _vivado(self, state: str, start: str) -> None:
        """The steps of the implementation; one that fails once succeeds when the link is resumed."""
        trouble = str(self.behaviour.get("link", ""))
        if trouble == "licence-missing":
            self._failed("vpl", *playback.LICENCE_MISSING.format(device="xcu55c").splitlines())
        if trouble == "licence-lost":
            with open(state, "w", encoding="utf-8") as file:
                json.dump(tables.LINK_STEPS[: tables.LINK_STEPS.index("impl")], file)
            self._failed("vpl", "[19:06:23] Run vpl: Step impl: Started", playback.LICENCE_LOST)
        if trouble == "hang" and not start:
            with open(state, "w", encoding="utf-8") as file:
                json.dump(tables.LINK_STEPS[: tables.LINK_STEPS.index("synth")], file)
            self.say("[19:06:23] Run vpl: Step synth: Started")
            misbehave.hang()
        # A first try for another feature, which v++ does without: not a failure.
        self.say("Attempting to get a license: ap_opencl")
        self.say("WARNING: [VPL 17-301] Failed to get a license for 'ap_opencl'. Explanation: The license feature "
                 "ap_opencl could not be found.")  # fmt: skip
        self.say("Attempting to get a license: ap_sdsoc\nFeature available: ap_sdsoc")
        done: list[str] = json.loads(open(state, encoding="utf-8").read()) if start else []  # noqa: SIM115
        first = tables.LINK_STEPS.index(start.removeprefix("vpl.")) if start else 0
        if start and not set(tables.LINK_STEPS[:first]) <= set(done):
            self.refuse(f"ERROR: [v++ 60-1520] ***Exception: cannot start from '{start}': an earlier step is missing")
        for step in tables.LINK_STEPS[first:]:
            self.say(f"[19:06:23] Run vpl: Step {step}: Started")
            if trouble == f"once:{step}" and not start:
                with open(state, "w", encoding="utf-8") as file:
                    json.dump(done, file)
                self._failed("vpl", f"[19:07:54] Run vpl: Step {step}: Failed",
                             f"[19:07:54] Run vpl: FINISHED. Run Status: {step} ERROR",
                             "ERROR: [VPL 60-1328] Vpl run 'vpl' failed")  # fmt: skip
            if trouble == "timing" and step == "impl":
                self._failed("vpl", "ERROR: [VPL 101-2] design did not meet timing - Design failed to meet timing.",
                             "    system clock: clk_out1; slack: -0.022 ns")  # fmt: skip
            done.append(step)
            self.say(f"[19:08:23] Run vpl: Step {step}: Completed")
        self.say("[19:32:46] Run vpl: FINISHED. Run Status: impl Complete!")

    def _failed(self, step: str, *lines: str) -> NoReturn:
        self.refuse(*lines, "ERROR: [VPL 60-806] Failed to finish platform linker",
                    f"INFO: [v++ 60-1442] [19:46:15] Run run_link: Step {step}: Failed",
                    "ERROR: [v++ 60-661] v++ link run 'run_link' failed",
                    "ERROR: [v++ 60-626] Kernel link failed to complete",
                    "ERROR: [v++ 60-703] Failed to finish linking")  # fmt: skip

    def _package(self, given: dict[str, list[str]], inputs: list[str], _config: object) -> None:
        self._target(given)
        output = self._output(given, ".xclbin")
        self._inputs(inputs)
        content = read_container(inputs[0]) if len(inputs) == 1 else None
        if content is None:
            self.refuse("ERROR: [v++ 60-2500] Valid input file of type XCLBIN is required")
        os.makedirs(given.get("--package.out_dir", ["."])[0], exist_ok=True)
        write_container(output, content)
        self.say(f"INFO: [v++ 60-586] Created {output}")


def write_container(path: str, content: dict[str, Any]) -> None:
    with open(path, "wb") as file:
        file.write(MAGIC + json.dumps(content).encode())


def read_container(path: str) -> dict[str, Any] | None:
    with open(path, "rb") as file:
        data = file.read()
    return json.loads(data[len(MAGIC) :]) if data.startswith(MAGIC) else None


def hls_config(release: str, behaviour: dict[str, Any], program: str, given: dict[str, list[str]], step: str) -> int:
    """The unified flow: a configuration, a work folder and one step."""
    path, work = given.get("--config", [""])[0], given.get("--work_dir", ["."])[0]
    lines = read_config(path, program)
    for section, key, _ in lines:
        known = tables.CONFIG_GLOBAL if section == "" else tables.CONFIG_HLS if section == "hls" else frozenset()
        if key not in known:
            name = f"{section}.{key}" if section else key
            raise Unknown(f"ERROR: [{program} 60-1520] ***Exception: unrecognised option '{name}' ")
    project = Project(release, behaviour, program)
    print(playback.banner(program, style_of(release)))
    project.say(f"  **** HLS Build v{release} {style_of(release).banner}")
    project.say(f"INFO: [HLS 200-2005] Using work_dir {os.path.abspath(work)} ")
    project.folder = os.path.join(work, "hls")
    os.makedirs(project.folder, exist_ok=True)
    argv = {"csim": "", "cosim": ""}
    setters: dict[str, Callable[[str], None]] = {
        "part": project.set_part, "clock": project.set_clock,
        "syn.file": lambda v: project.add(v, False), "tb.file": lambda v: project.add(v, True),
    }  # fmt: skip
    code = 0
    try:
        for number, (_, key, value) in enumerate(lines, 1):
            project.say(f"INFO: [HLS 200-1465] Applying config ini '{key}={value}' from {path}({number})")
            setters.get(key, lambda _: None)(value)
            project.top = value if key == "syn.top" else project.top
            if key in ("csim.argv", "cosim.argv"):
                argv[key.partition(".")[0]] = value
        project.output = os.path.join(work, f"{project.top}.xo")
        project.step(step, *([argv[step]] if step in argv else []))
    except Refused:
        code = 1
    project.say(playback.TOTAL)
    print(f"INFO: [{program} 60-791] Total elapsed time: 0h 0m 27s", flush=True)
    return code
