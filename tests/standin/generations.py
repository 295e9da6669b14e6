"""How the reports of each release differ: what they list, how they say it, and how their heads are written.

2020.2, 2021.2, 2022.2, 2023.2, 2024.2 and 2025.1 were looked at in public repositories. 2021.1 is written as 2020.2.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.standin import tables


@dataclass(frozen=True)
class Style:
    """`splits`: a pipelined loop beside others is a module `<function>_Pipeline_<loop>`. `binds`: csynth.xml lists
    what was bound to which core; `sizes`: with the sizes of memories and FIFOs. Before 2023.2 there is no STORAGESIZE,
    and FIFOs stand among the operators. `names`: a loop's element has a name and says whether it is pipelined.
    `routed`: there is export_impl.rpt beside `<top>_export.rpt`. `totals`: co-simulation counts all cycles.
    """

    release: str
    build: str
    idle: str
    splits: bool
    binds: bool
    sizes: bool
    names: bool
    routed: bool
    totals: bool
    owner: str

    @property
    def version(self) -> str:
        return f"{self.release} (Build {self.build})"

    @property
    def banner(self) -> str:
        return self.build.partition(" on ")[0]


_BUILDS = {
    "2021.1": "3247384 on Thu Jun 10 19:36:07 MDT 2021",
    "2022.2": "3670227 on Oct 13 2022",
    "2023.2": "4023990 on Oct 11 2023",
    "2024.2": "5238294 on Nov  8 2024",
    "2025.1": "6135595 on May 19 2025",
}
_XILINX = "Copyright 1986-{year} Xilinx, Inc. All Rights Reserved."
_AMD = (
    "Copyright 1986-2022 Xilinx, Inc. All Rights Reserved.\n    ** Copyright 2022-{year} Advanced Micro Devices, Inc."
)


def style_of(release: str) -> Style:
    """By what a release has since when."""
    version = tables.release_of(release)
    new = version >= (2021, 2)
    owner = _AMD if version >= (2023, 1) else _XILINX
    return Style(
        release, _BUILDS[release], "no" if new else "none", splits=new, binds=version >= (2022, 1),
        sizes=version >= (2023, 2), names=version >= (2022, 1), routed=new, totals=new,
        owner=owner.format(year=version[0]),
    )  # fmt: skip
