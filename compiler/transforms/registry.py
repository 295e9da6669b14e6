"""Every pass by its name, and passes from what a person wrote: `name`, or `name{option=value option=value}`."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, cast

from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from penstock.compiler.design import Design
from penstock.compiler.errors import PenstockError
from penstock.compiler.transforms.canonicalise import INTEGERS, QUANTISE, SIMPLIFY
from penstock.compiler.transforms.generate_directives import GenerateDirectives
from penstock.compiler.transforms.lower_tasks import LowerTasks
from penstock.compiler.transforms.lower_to_streams import LowerToStreams
from penstock.compiler.transforms.pad_dims import PadDims
from penstock.compiler.transforms.passes import Pass
from penstock.compiler.transforms.write_kernels import WriteKernels

_BELOW: tuple[type[Pass], ...] = (PadDims, WriteKernels, LowerToStreams, LowerTasks, GenerateDirectives)
_ABOVE: tuple[type[Pass], ...] = tuple([type(one) for one in (*SIMPLIFY, *INTEGERS, *QUANTISE)])
PASSES: Mapping[str, type[Pass]] = {one.name: one for one in (*_ABOVE, *_BELOW)}
"""In the order in which a compilation first comes to them."""
DESIGN = "design"


def parse_passes(text: str) -> tuple[ArgSpec, ...]:
    """Names and options of passes as they are written, with commas between; each name is one that there is."""
    try:
        specs = tuple(parse_pipeline(text))
    except ArgSpecParseError as error:
        raise _refused("bad-pass", f"{text!r} cannot be read: {str(error).splitlines()[-1].strip()}") from error
    for spec in specs:
        if spec.name not in PASSES:
            near = difflib.get_close_matches(spec.name, PASSES, 3, 0.5)
            hint = f"did you mean {' or '.join(near)}?" if near else "--list-passes shows all"
            raise _refused("unknown-pass", f"there is no pass {spec.name!r}", hint=hint)
    if not specs:
        raise _refused("bad-pass", "no pass is named")
    return specs


def needs_design(spec: ArgSpec) -> bool:
    """Whether the pass takes a design, or options that are a design's unless they are given."""
    return any(name in _OF_DESIGN for name in _options(spec.name))


def make_pass(spec: ArgSpec, design: Design | None = None) -> Pass:
    """The pass with its options. What a design has too comes from there where it is not given."""
    given: dict[str, Any] = {name.replace("-", "_"): value for name, value in spec.parameters.items()}
    known = _options(spec.name)
    if wrong := next((name for name in given if name == DESIGN or name not in known), None):
        options = ", ".join(name for name in known if name != DESIGN) or "none"
        raise _refused("bad-pass", f"the pass {spec.name} has no option {wrong!r}", limit=f"options: {options}")
    for name in known:
        if design is not None and name in _OF_DESIGN:
            given.setdefault(name, (design if name == DESIGN else getattr(design, name),))
    try:
        return PASSES[spec.name].from_spec(ArgSpec(spec.name, given))
    except ValueError as error:
        raise _refused("bad-pass", f"{spec.name}: {error}") from error


_OF_DESIGN = {DESIGN, *(field.name for field in fields(Design))}


def _options(name: str) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cast(Any, PASSES[name])))


def _refused(code: str, what: str, limit: str = "", hint: str = "--list-passes shows all") -> PenstockError:
    return PenstockError(code=code, what=what, where="--pass", limit=limit, hint=hint)
