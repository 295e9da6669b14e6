"""Programs as tests map them: a farm of workers, and generated ones with random legal steps."""

from __future__ import annotations

import random

import numpy as np

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.interpreter import stream as stream_interpreter
from penstock.compiler.layout import pack, unpack
from penstock.compiler.tasks.interpret import interpret
from penstock.compiler.tasks.mapping.apply import elements, mapped
from penstock.compiler.tasks.mapping.candidates import next_steps
from penstock.compiler.tasks.network import Instances
from penstock.compiler.tasks.schedules import Schedule
from penstock.compiler.transforms.lower_tasks import write_instances
from tests.tasks.programs import drawn

FARM = """
N, W = 16, 4

@program
def farm(A: int8[N], B: int32[N]):
    given, back = Stream[int8][W], Stream[int32][W]

    @task
    def load():
        for i in range(N // W):
            for q in range(W):
                given[q].put(A[i * W + q])

    @task(grid=(W,))
    def worker(g):
        for i in range(N // W):
            total: int32 = 0
            x = given[g].get()
            for k in range(8):
                total += x
            back[g].put(total)

    @task
    def store():
        for i in range(N // W):
            for q in range(W):
                B[i * W + q] = back[q].get()
"""


def mapped_equals_its_text(network: Instances, mapping: tuple[str, ...]) -> Instances:
    """The elements of a mapping, whose text, channels and nests answer as the program does."""
    inputs = drawn(network)
    wanted, made = interpret(network, inputs), elements(network, mapping)
    found = interpret(made, inputs)
    module = write_instances(made, made.instances, Design("ecp5-85k", 100.0, {}, mapping=mapping))
    module.verify()
    top = next(iter(module.ops))
    names = [one.data for one in top.argument_names]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType]
    layouts = {name: top.layout(i) for i, name in enumerate(names)}  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType, reportUnknownMemberType, reportUnknownArgumentType]
    held = {name: pack(value, layouts[name]) if layouts[name] else value for name, value in inputs.items()}
    streamed = stream_interpreter.run(module, held, {})
    for name, answer in wanted.items():
        got = unpack(streamed[name], layouts[name], answer.shape) if layouts[name] else streamed[name]
        for one in (found[name], got):
            if answer.dtype.kind == "f":
                np.testing.assert_allclose(one, answer, rtol=1e-4, atol=1e-5)
            else:
                np.testing.assert_array_equal(one, answer)
    return made


def random_schedule(network: Instances, seed: int) -> Schedule:
    """Steps that may be taken one after the other."""
    chosen, made, schedule = random.Random(seed), network, Schedule()
    for _ in range(chosen.randint(1, 4)):
        steps = list(next_steps(made, schedule))
        if not steps:
            break
        step = chosen.choice(steps)
        try:
            made = mapped(network, (*schedule, step))
        except PenstockError:
            continue
        schedule = (*schedule, step)
    return schedule
