"""Where every folder stands: a house's folders from the lowest up, and which other houses a house may know.

A folder may import what stands on a lower line of its own house, and the houses named for it. Folders on one line
do not know each other. So no arrow points up, and there can be no circle.
"""

from __future__ import annotations

HOUSES: dict[str, tuple[str, ...]] = {
    "db": (),
    "web": (),
    "compiler": (),
    "profiling": ("compiler",),
    "dse": ("compiler", "profiling"),
    "services": ("compiler", "profiling", "dse", "db", "web"),
}
"""Which other houses each may import from."""

LAYERS: dict[str, tuple[str, ...]] = {
    "db": ("db.schema", "db.repositories db.migrations db.migrations.versions", "db"),
    "web": ("web",),
    "compiler": (
        "compiler.runtime compiler.runtime.penstock_runtime",
        "compiler",
        "compiler.scalars",
        "compiler.dialects compiler.design compiler.platforms compiler.zoo",
        "compiler.analysis compiler.package.xrt compiler.tasks",
        "compiler.interpreter compiler.schedule compiler.tasks.mapping",
        "compiler.plan compiler.simulator compiler.backend compiler.backend.rtl.primitives compiler.tasks.lowering"
        " compiler.mesh",
        "compiler.transforms compiler.mesh.triton compiler.mesh.overlay",
        "compiler.frontend.libraries compiler.backend.hls compiler.backend.rtl compiler.hls_in",
        "compiler.frontend compiler.mesh.instructed",
        "compiler.backend.rtl.shell compiler.pipeline",
        "compiler.package",
    ),
    "profiling": (
        "profiling.tool_runner",
        "profiling",
        "profiling.open_rtl profiling.vitis",
        "profiling.kernels profiling.networks profiling.injected profiling.arrays",
        "profiling.kernels.explore",
        "profiling.solutions",
    ),
    "dse": (
        "dse.support dse.lanes dse",
        "dse.space dse.fifo dse.memory",
        "dse.partition",
        "dse.evaluation",
        "dse.bounds",
        "dse.rungs",
        "dse.finishing",
        "dse.search",
        "dse.explaining",
    ),
    "services": (
        "services",
        "services.steps.fence services.steps services.supervisor services.api.answers",
        "services.jobs services.client services.upkeep services.webhooks",
        "services.worker",
        "services.steps.bodies services.api.plumbing",
        "services.api.routes services.cli services.api.pages",
        "services.api",
    ),
}
"""The folders of each house, the lowest line first. A folder is its own files, without the folders below it."""


def rank_of() -> dict[str, int]:
    """The line of every folder within its house."""
    return {folder: rank for lines in LAYERS.values() for rank, line in enumerate(lines) for folder in line.split()}


def house_of(folder: str) -> str:
    return folder.partition(".")[0]


def allows(folder: str, other: str) -> bool:
    """Whether files of `folder` may import files of `other`."""
    ranks = rank_of()
    if house_of(folder) != house_of(other):
        return house_of(other) in HOUSES[house_of(folder)]
    return folder == other or ranks[other] < ranks[folder]
