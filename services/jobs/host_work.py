"""How much a host part would ask for, found without computing it: it runs beside the service, with no fence around it.

PyTorch's fake tensors carry shapes and no values, so a graph whose results would fill the machine takes none of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.compiler.errors import PenstockError
from penstock.compiler.program import Program
from penstock.compiler.runtime.penstock_runtime import PackageError
from penstock.compiler.runtime.penstock_runtime.host import LAYER, HostGraph

MOST_BYTES = 8 << 30
"""Of all results together: they are kept until the last operation has run."""
MOST_WORK = 10**13
"""Multiplications of all operations together: a minute or two of one machine."""


def check_host_work(program: Program) -> None:
    """An error where one call of the model would take more than `MOST_BYTES` or `MOST_WORK` on the host."""
    host, layers = program.host, program.layers
    ports = program.signature.outputs
    answers = [(port.shape, port.dtype) for port in ports]
    if host is not None:
        whole = HostGraph(host.graph, host.values)
        graph = whole.document
        made = dict(zip(graph["accelerator"]["outputs"], answers, strict=True))
        between = [node for turn in graph.get("between", ()) for node in turn["operations"]]
        _check(program.name, whole, [*graph["before"], *between, *graph["after"]], made, [])
        answers = [(tuple(port["shape"]), port["dtype"]) for port in graph["outputs"]]
    if layers is not None:
        hidden = {state.output for state in program.states}
        visible = [answer for number, answer in enumerate(answers) if number not in hidden]
        around = HostGraph(layers.graph, layers.values)
        _check(program.name, around, around.document["nodes"], {}, visible)


_Answer = tuple[Sequence[int], str]


def _check(
    name: str,
    host: HostGraph,
    nodes: Sequence[Mapping[str, Any]],
    made: Mapping[str, _Answer],
    layer: Sequence[_Answer],
) -> None:
    """`made` is what the accelerator gives, `layer` what each call of it gives where layers share it."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils.flop_counter import FlopCounterMode

    def empty(answer: _Answer) -> Any:
        return torch.empty(tuple(answer[0]), dtype=getattr(torch, answer[1]))

    taken = 0
    with FakeTensorMode(allow_non_fake_inputs=True), FlopCounterMode(display=False) as counted:
        known: dict[str, Any] = {port.name: empty((port.shape, port.dtype)) for port in host.inputs}
        known |= {name: empty(answer) for name, answer in made.items()}
        for node in nodes:
            where = f"{node['op']} in layer {node.get('layer', '')!r}"
            try:
                found = [empty(one) for one in layer] if node["op"] == LAYER else host.apply(node, known)
            except (PackageError, AssertionError, ValueError) as error:
                raise _refusal(name, where, str(error).strip().partition("\n")[0][:200]) from error
            known[node["name"]] = found
            taken += sum(one.nbytes for one in (found if isinstance(found, list | tuple) else [found]))
            if taken > MOST_BYTES:
                raise _refusal(name, where, f"all results so far take {taken:,} bytes, at most {MOST_BYTES:,}")
            if counted.get_total_flops() > MOST_WORK:
                work = counted.get_total_flops()
                raise _refusal(name, where, f"all operations so far take {work:,} steps, at most {MOST_WORK:,}")


def _refusal(name: str, where: str, limit: str) -> PenstockError:
    return PenstockError(
        code="host-part", what="what the model does on the host cannot be done here", where=f"{name}: {where}",
        limit=limit, hint="make the inputs smaller, or take this operation out of the model",
    )  # fmt: skip
