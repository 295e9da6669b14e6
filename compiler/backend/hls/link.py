"""What the linker of a Vitis platform is told: which bank serves which port, where kernel and tasks stand, the clock.

Only platforms with a shell are linked for; on others the tools' user connects the ports.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.compiler.backend.hls.ports import TopPort
from penstock.compiler.dialects import stream
from penstock.compiler.platforms import ExternalMemory, Platform
from penstock.compiler.platforms.sharing import spread

FLOORPLAN = "floorplan.tcl"


@dataclass(frozen=True)
class LinkTarget:
    """The platform that is linked for, the clock, and the die of each task as far as it is decided."""

    platform: Platform
    clock_mhz: float
    dies: Mapping[str, str]


def banks_of_bundles(ports: Sequence[TopPort], platform: Platform) -> dict[int, str]:
    """The bank of external memory that each bundle of ports is served by, as Vitis writes it.

    The memory with the most bandwidth serves first, one bank a bundle; beyond its banks others help, and then
    bundles share: those with the largest tensors have banks to themselves for as long as there are some.
    Of an output that feeds an input, both bundles are served by the input's bank: they are one buffer.
    """
    found = _banks_by_bundle(ports, platform)
    fed = {port.argument: port.axi.bundle.data for port in ports}
    for port in ports:
        if port.feeds is not None and fed[port.feeds] in found:
            found[port.axi.bundle.data] = found[fed[port.feeds]]
    return found


def _banks_by_bundle(ports: Sequence[TopPort], platform: Platform) -> dict[int, str]:
    banks = [bank for memory in sorted(platform.memories, key=lambda m: -m.gb_s) for bank in _banks(memory, platform)]
    bundles = sorted({port.axi.bundle.data for port in ports})
    if not banks:
        return {}
    held = [sum(p.elements * p.scalar_bits for p in ports if p.axi.bundle.data == bundle) for bundle in bundles]
    return {bundle: banks[bank] for bundle, bank in zip(bundles, spread(held, len(banks)), strict=True)}


def bytes_of_banks(platform: Platform) -> dict[str, tuple[str, int]]:
    """By bank, as Vitis writes it: the platform's name of its memory, and what the bank holds."""
    return {
        bank: (memory.name, round(memory.gigabytes * 2**30 / memory.ports))
        for memory in platform.memories
        for bank in _banks(memory, platform)
    }


def _banks(memory: ExternalMemory, platform: Platform) -> list[str]:
    """Vitis counts the banks of each kind of memory from 0."""
    kind = memory.kind.upper()
    before = 0
    for other in platform.memories:
        if other.name == memory.name:
            break
        before += other.ports if other.kind == memory.kind else 0
    return [f"{kind}[{before + port}]" for port in range(memory.ports)]


def link_files(top: stream.TopOp, ports: Sequence[TopPort], target: LinkTarget) -> dict[str, str]:
    """Files for the folder `link/` by name; none for a platform without a shell."""
    platform = target.platform
    if not platform.shell:
        return {}
    kernel = top.sym_name.data
    instance = f"{kernel}_1"
    tasks = [op.sym_name.data for op in top.body.block.ops if isinstance(op, stream.TaskOp)]
    used = [die.name for die in platform.dies if die.name in {target.dies.get(task) for task in tasks}]
    whole = used[0] if len(used) == 1 and all(task in target.dies for task in tasks) else None
    lines = [
        "# Links the kernel into the platform's shell. Run in this folder, after HLS has exported the kernel:",
        f"#   v++ -l -t hw --config connectivity.cfg ../hls/{kernel}.xo -o ../bitstream/{kernel}.xclbin",
        "# In bitstream/ the package's hosts find it.",
        f"# Banks: one for each m_axi port of the kernel, as far as {platform.title} has some.",
        f"platform={platform.shell}",
        "",
        "[connectivity]",
        "# one kernel: its tasks are connected inside, so there is no stream_connect",
        f"# a second unit: nk={kernel}:2:{instance}.{kernel}_2, and each line below again for it; hosts find both",
        f"nk={kernel}:1:{instance}",
    ]
    for bundle, bank in banks_of_bundles(ports, platform).items():
        lines += [
            f"# {', '.join(f'{p.kind} {p.name}' for p in ports if p.axi.bundle.data == bundle)}",
            f"sp={instance}.m_axi_gmem{bundle}:{bank}",
        ]
    if whole is not None:
        lines += ["# every task stands on one die", f"slr={instance}:{whole.upper()}"]
    files: dict[str, str] = {}
    spread = len(used) > 1
    if spread:
        lines.append(f"# Tasks stand on {', '.join(d.upper() for d in used)}: {FLOORPLAN} places each of them.")
        files[FLOORPLAN] = _floorplan(instance, tasks, used, target)
    lines += ["", "[clock]", f"freqHz={round(target.clock_mhz * 1e6)}:{instance}"]
    if spread:
        lines += ["", "[vivado]", f"prop=run.impl_1.STEPS.PLACE_DESIGN.TCL.PRE={FLOORPLAN}"]
    return {"connectivity.cfg": "\n".join(lines) + "\n", **files}


def _floorplan(instance: str, tasks: Sequence[str], used: Sequence[str], target: LinkTarget) -> str:
    """Vivado's way to say where parts of a kernel stand: HLS calls the instance of a task `<function>_U0`."""
    lines = [
        "# Keeps each task of the kernel on the die that the design says. Read by Vivado before it places.",
        "# FIFOs between tasks are not pinned; Vivado places them, best beside the task that reads.",
        "proc on_die {die tasks} {",
        "    create_pblock penstock_$die",
        "    resize_pblock penstock_$die -add $die",
        "    foreach task $tasks {",
        f'        set cells [get_cells -hierarchical -quiet -filter "NAME =~ */{instance}/*/${{task}}_U0"]',
        "        if {[llength $cells] > 0} { add_cells_to_pblock penstock_$die $cells",
        '        } else { puts "penstock: no cell of task $task, it is left to the tool" }',
        "    }",
        "}",
    ]
    for die in used:
        here = [task for task in tasks if target.dies.get(task) == die]
        lines.append(f"on_die {die.upper()} {{{' '.join(here)}}}")
    return "\n".join(lines) + "\n"
