"""Blocks of models that a program names, written below it in its own language: what is kept and sent is one text then.

A program is anybody's, so a block is a model of the zoo, or an .onnx or .mlir file beside the program, by a plain name.
None of these runs the program's author's code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation, SSAValue

from penstock.compiler.arrays import Array
from penstock.compiler.dialects.window import SlideOp
from penstock.compiler.errors import PenstockError
from penstock.compiler.frontend.block_text import (
    WRITTEN_OUT,
    BlockEnds,
    BlockWriter,
    generics,
    layer_of,
    plain_name,
    source,
)
from penstock.compiler.frontend.linalg_text import import_linalg
from penstock.compiler.interpreter.linalg import argument_names, main_function, run_many
from penstock.compiler.program import Program
from penstock.compiler.reference import LinalgReference, parse_reference
from penstock.compiler.tasks.blocks import WORD, BlockCall, calls_in, read_call
from penstock.compiler.tasks.interpret import MOST_SAMPLED, interpret
from penstock.compiler.tasks.network import tokens_passing
from penstock.compiler.tasks.opened import open_network
from penstock.compiler.tasks.source import CODE, MODULE, MOST_BYTES, ProgramText
from penstock.compiler.transforms.canonicalise import simplify

TOLERANCE = 1e-3
_ZOO = re.compile(r"(?!.*\b(?:weights|prefix)=)zoo:[a-z][a-z0-9_]{0,60}(\?[A-Za-z0-9_=&,.\-]{0,200})?")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,80}\.(onnx|mlir)(\?[A-Za-z0-9_=&]{0,200})?")


def with_blocks(path: Path, text: str) -> str:
    """The text with a function below it for each block that it calls and does not have."""
    if WORD not in text:
        return text
    program = ProgramText(path.name, text)
    made = dict[tuple[str, tuple[str, ...], int], str]()
    for node in calls_in(program.parse()):
        call = read_call(program, node)
        if call.made_of not in made and (_ZOO.fullmatch(call.model) or _FILE.fullmatch(call.model)):
            made[call.made_of] = _written(path, program, call)
    whole = "\n\n".join([text.rstrip("\n"), *made.values()]) + "\n" if made else text
    if len(whole.encode()) > MOST_BYTES:
        raise PenstockError(
            code=CODE, what="the program is too long with its blocks", where=path.name,
            limit=f"at most {MOST_BYTES} bytes, weights among them", hint="call fewer layers, with layers=...",
        )  # fmt: skip
    return whole


def _written(path: Path, program: ProgramText, call: BlockCall) -> str:
    model = _opened(path, program, call)

    def refuse(what: str, limit: str) -> PenstockError:
        return program.error(
            call.node, f"{call.model[:80]} cannot be a block: {what}", "choose other layers with layers=...", limit
        )

    for bad, what in (
        (model.host, "part of it runs on the host"), (model.states, "it keeps values from call to call"),
        (not model.has_weights, "it has no weights"),
    ):  # fmt: skip
        if bad:
            raise refuse(what, "a block is pure hardware, with its weights")
    main = main_function(model)
    body = main.body.block
    named = list(zip(argument_names(main), body.args, strict=True))
    params: dict[SSAValue, Array] = {value: model.params[name] for (name, kind), value in named if kind != "input"}
    chosen = list(generics(list(body.ops), call.layers))
    known = dict.fromkeys(layer_of(op) for op in generics(list(body.ops), ()))
    if missing := [one for one in call.layers if not any(f"{name}.".startswith(f"{one}.") for name in known)]:
        raise program.error(
            call.node, f"{call.model[:80]} has no layer {missing[0][:60]!r}", "name some of these",
            ", ".join(known)[:400],
        )  # fmt: skip
    ends = _ends(model, [value for (_, kind), value in named if kind == "input"], chosen, params)
    for end, value in ends.inputs.items():
        made = value.owner
        if isinstance(made, Operation) and not isinstance(made, linalg.GenericOp):
            why = "has windows" if isinstance(made, SlideOp) else f"takes what {made.name} makes ({end})"
            readers = [op for op in chosen if value in map(source, op.inputs)]
            raise refuse(f"{layer_of(readers[0])} {why}", WRITTEN_OUT)
    writer = BlockWriter(chosen, ends, params, call.lanes, refuse)
    name = call.name or re.sub(r"\W", "_", re.split(r"[?.]", call.model.removeprefix("zoo:"))[0])[:40]
    given = [f"layers={call.layers!r}"] if call.layers else []
    given += [f"lanes={call.lanes}"] if call.lanes > 1 else []
    said = ", ".join([repr(call.model), *given])
    text = f"@{WORD}({said})\n{writer.text(name if name[:1].isalpha() else f'model_{name}')}"
    arguments = [f"{end}: {writer.kind(one)}" for end, one in (*ends.inputs.items(), *ends.outputs.items())]
    passed = ", ".join([repr(call.model), *ends.inputs, *ends.outputs, *given])
    head = f"from {MODULE} import *\n\n\n@program\ndef alone({', '.join(arguments)}):"
    alone = f"{head}\n    {WORD}({passed})\n\n\n{text}"
    _check_answers(program, call, model, ends, alone)
    return text


def _opened(path: Path, program: ProgramText, call: BlockCall) -> Program:
    reference = call.model
    if not reference.startswith("zoo:"):
        name, mark, options = reference.partition("?")
        if not (path.parent / name).is_file():
            raise program.error(
                call.node.args[0], f"there is no file {name!r} beside the program",
                "a service takes one file: name a model of the zoo there", "a plain name of a file in the same folder",
            )  # fmt: skip
        reference = f"{path.parent / name}{mark}{options}"
    try:
        return simplify(_imported(reference))
    except PenstockError as error:
        raise program.error(
            call.node.args[0], f"{call.model[:80]}: {error.what}", error.hint, error.limit or error.where
        ) from error


def _imported(reference: str) -> Program:
    parsed = parse_reference(reference)
    if isinstance(parsed, LinalgReference):  # text needs no PyTorch
        return import_linalg(parsed)
    from penstock.compiler.frontend.importer import import_loaded
    from penstock.compiler.frontend.loader import load_model

    return import_loaded(load_model(parsed))


def _ends(
    model: Program, inputs: Sequence[SSAValue], chosen: Sequence[object], params: dict[SSAValue, Array]
) -> BlockEnds:
    """What the chosen operations take from outside, and what others or the model's answers take of them."""
    body = main_function(model).body.block
    operations = [op for op in generics(list(body.ops), ()) if op in chosen]
    made = {op.results[0] for op in operations}
    ports = dict(zip(inputs, [port.name for port in model.signature.inputs], strict=True))
    taken = dict.fromkeys(
        source(one) for op in operations for one in op.inputs if source(one) not in made and source(one) not in params
    )
    answered = next(op for op in body.ops if isinstance(op, func.ReturnOp))
    others = [one for op in generics(list(body.ops), ()) if op not in chosen for one in op.inputs]
    given = dict.fromkeys(source(one) for one in (*answered.operands, *others) if source(one) in made)
    answers = {source(one): port.name for one, port in zip(answered.operands, model.signature.outputs, strict=True)}
    names: dict[str, SSAValue] = {}
    outs: dict[str, SSAValue] = {}
    for value in taken:
        names[_fresh(ports.get(value) or _made_by(value), (*names, *outs))] = value
    for value in given:
        outs[_fresh(answers.get(value) or _made_by(value), (*names, *outs))] = value
    return BlockEnds(names, outs)


def _made_by(value: SSAValue) -> str:
    owner = value.owner
    return layer_of(owner) if isinstance(owner, Operation) else "x"


def _fresh(wanted: str, taken: Sequence[str]) -> str:
    name = plain_name(wanted)
    number = 1
    while (found := name if number == 1 else f"{name}_{number}") in taken:
        number += 1
    return found


def _check_answers(program: ProgramText, call: BlockCall, model: Program, ends: BlockEnds, alone: str) -> None:
    """The block alone, on the model's samples, answers as the model's operations do."""
    if model.samples is None:
        return
    inputs = [np.asarray(one)[None] for one in model.samples.inputs]
    main = main_function(model)
    kinds = zip(argument_names(main), main.body.block.args, strict=True)
    arguments = [value for (_, kind), value in kinds if kind == "input"]
    values: dict[SSAValue, Array] = dict(zip(arguments, inputs, strict=True))
    run_many(model, inputs, lambda value, found: values.update({value: found}))
    network = open_network(program.name, alone, "", ())
    if tokens_passing(network) > MOST_SAMPLED:
        return
    answers = interpret(network, {name: values[one][0] for name, one in ends.inputs.items()})
    for name, one in ends.outputs.items():
        wanted = values[one][0].astype(np.float64)
        found = answers[name].reshape(wanted.shape)
        largest = float(np.max(np.abs(wanted), initial=0.0))
        if not np.all(np.abs(found - wanted) <= TOLERANCE * largest):
            raise program.error(
                call.node, f"{call.model[:80]} as tasks answers other numbers than the model: "
                f"{np.max(np.abs(found - wanted)):.3g} apart", "choose other layers with layers=...",
                f"at most {TOLERANCE * largest:.3g} on the model's samples",
            )  # fmt: skip
