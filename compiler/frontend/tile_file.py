"""A Triton kernel's file as a task program: planned onto a mesh, of which the best plan that can be built is taken.

Which mesh is said by the file (`MESH = "ecp5-85-4x4"`) or by `?on=`; types of tensors too (`a = "int8"`), and sizes.
"""

from __future__ import annotations

import ast

from penstock.compiler.errors import PenstockError, nearest
from penstock.compiler.mesh.description import load_machine
from penstock.compiler.mesh.overlay.program import OverlayProgram
from penstock.compiler.mesh.planner import DEFAULT_TOP
from penstock.compiler.mesh.readable import drawn_of
from penstock.compiler.mesh.shipped import machine_names
from penstock.compiler.mesh.traffic import Traffic
from penstock.compiler.mesh.triton.blocks import given_value, plan_kernel
from penstock.compiler.mesh.triton.read import KernelFile, open_kernel
from penstock.compiler.mesh_record import MeshRecord
from penstock.compiler.reference import TaskReference
from penstock.compiler.tasks.source import ProgramText

DEFAULT_MESH = "ecp5-85-4x4"


def planned_kernel(reference: TaskReference, text: str) -> tuple[str, MeshRecord]:
    """The task program, and what pages draw of the plan."""
    given = dict(reference.options)
    asked = given.pop("on", "")
    values = {name: given_value(value) for name, value in given.items()}
    kernel = open_kernel(ProgramText(reference.path.name, text), reference.program, values)
    machine = load_machine(asked or _mesh_of(kernel))
    planned = plan_kernel(kernel, values, machine, DEFAULT_TOP)
    first: PenstockError | None = None
    for measured in planned.measured:
        try:
            made = OverlayProgram(measured.plan, machine).text()
        except PenstockError as error:
            first = first or error
            continue
        return made, drawn_of(measured, Traffic(machine), kernel.kernel.name, planned.bound)
    assert first is not None
    raise first


def _mesh_of(kernel: KernelFile) -> str:
    """What the file says, which may be anybody's: a shipped one."""
    for node in kernel.tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="MESH")], value=ast.Constant(value=str() as name)):
                if name not in machine_names():
                    hint = nearest(name, machine_names(), "one of " + ", ".join(machine_names()))
                    raise kernel.text.error(node, f"there is no mesh {name!r}", hint)
                return name
            case _:
                continue
    return DEFAULT_MESH
