"""Arrays of cores as runs: a kernel in several shapes, and the array that is found for them or that is described."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StrictInt, model_validator
from pydantic_core import PydanticCustomError

from penstock.compiler.errors import nearest
from penstock.compiler.mesh.shipped import machine_names
from penstock.compiler.platforms.resources import RESOURCE_NAMES
from penstock.db import Transaction, lifecycle
from penstock.db.lifecycle import Submitted
from penstock.db.schema.records import Model
from penstock.services.described import Described
from penstock.services.jobs.quotas import NO_QUOTAS, Quotas, check_quotas
from penstock.services.jobs.refused import RefusedError
from penstock.services.jobs.runs import check_waiting
from penstock.services.jobs.sources import OPTION_VALUE
from penstock.services.run_options import (
    LONGEST_NAME,
    NAME_PATTERN,
    PlainText,
    PlatformName,
    RequestBody,
    is_unicode,
)
from penstock.services.step_kinds import ARRAY
from penstock.services.steps.graph import array_steps

MOST_SHAPES, MOST_VALUES, MOST_PLANS = 16, 32, 32
MOST_DESCRIPTION = 1 << 16
_LARGEST = 1 << 40


def _known_mesh(name: str) -> str:
    known = machine_names()
    if name in known:
        return name
    raise PydanticCustomError(
        "unknown_mesh", "there is no mesh '{name}'",
        {"name": name[:80], "limit": "the meshes are " + ", ".join(known), "hint": nearest(name, known, "choose one")},
    )  # fmt: skip


def _whole_text(text: str) -> str:
    """A description has lines; what no database keeps is refused."""
    if "\0" in text or not is_unicode(text):
        raise PydanticCustomError("no_text", "contains what is no text")
    return text


MeshName = Annotated[PlainText, AfterValidator(_known_mesh), Described({"enum": machine_names()})]
ArgumentName = Annotated[str, Field(pattern=f"^{NAME_PATTERN}$")]
ArgumentValue = (
    Annotated[StrictInt, Field(ge=-_LARGEST, le=_LARGEST)]
    | Annotated[float, Field(allow_inf_nan=False)]
    | Annotated[str, Field(pattern=f"^{OPTION_VALUE}$")]
)
ArgumentValues = Annotated[
    dict[ArgumentName, ArgumentValue], Field(max_length=MOST_VALUES), Described({"additionalProperties": False})
]
if TYPE_CHECKING:
    ResourceName = str
else:
    ResourceName = Literal[RESOURCE_NAMES]


class NewArray(RequestBody):
    """Which array is to be made, and for what: exactly one of `platform`, `mesh` and `description`."""

    platform: PlatformName | None = Field(None, description="find the best array for all shapes within this device")
    limits: dict[ResourceName, Annotated[StrictInt, Field(ge=1, le=_LARGEST)]] = Field(
        {}, description="with platform: at most so many of a resource, as {\"dsp\": 64}"
    )  # fmt: skip
    mesh: MeshName | None = Field(None, description="the array of a description that this service has")
    description: Annotated[str, AfterValidator(_whole_text), Described({"pattern": r"^[^\x00]*$"})] = Field(
        "", max_length=MOST_DESCRIPTION,
        description="the array of this description, as TOML: array.toml of an earlier run, or your own",
    )  # fmt: skip
    shapes: list[ArgumentValues] = Field(
        [{}], min_length=1, max_length=MOST_SHAPES,
        description="a program for each: values of the kernel's arguments, as {\"M\": 64, \"N\": 64, \"K\": 32}",
    )  # fmt: skip
    run: list[Literal["cpp"]] = Field(
        [], max_length=1, description="cpp: every program is run in C++ on random tensors, beside NumPy"
    )
    top: StrictInt = Field(16, ge=1, le=MOST_PLANS, description="how many of the planner's best are simulated")

    @model_validator(mode="after")
    def _one_array(self) -> Self:
        given = [name for name in ("platform", "mesh", "description") if getattr(self, name)]
        if len(given) != 1:
            raise PydanticCustomError(
                "one_array", "give platform, mesh or description, one of them",
                {"limit": f"given: {', '.join(given) or 'none'}", "hint": "platform finds an array"},
            )  # fmt: skip
        if self.limits and self.platform is None:
            raise PydanticCustomError("limits_of_nothing", "limits are for an array that is found: give platform")
        if len(self.named()) < len(self.shapes):
            raise PydanticCustomError("equal_shapes", "two shapes are the same")
        return self

    def named(self) -> dict[str, dict[str, int | float | str]]:
        """The shapes by what they say."""
        found: dict[str, dict[str, int | float | str]] = {}
        for shape in self.shapes:
            values = {key: int(x) if isinstance(x, float) and x.is_integer() else x for key, x in shape.items()}
            found[",".join(f"{key}={value}" for key, value in values.items())] = values
        return found

    def asked(self) -> dict[str, Any]:
        """For whoever makes it: shapes as pairs, since a database keeps no order of names."""
        return {**self.model_dump(mode="json", exclude={"shapes"}), "shapes": [*map(list, self.named().items())]}

    def options(self) -> dict[str, Any]:
        """What a run says that it was asked for."""
        said: dict[str, Any] = {"platform": self.platform} if self.platform else {}
        said |= {"mesh": self.mesh or "as described"} if not self.platform else {}
        return {
            **said,
            **({"most": [f"{name}={count}" for name, count in self.limits.items()]} if self.limits else {}),
            "shapes": [name or "as the file says" for name in self.named()],
        }


def start_array(
    tx: Transaction, model: Model, asked: NewArray, *, owner: str | None, most_waiting: int, quotas: Quotas = NO_QUOTAS
) -> Submitted:
    """A run that makes an array for a kernel, and searches nothing else."""
    if model.kind != "tasks":
        raise RefusedError(
            "not-a-tile-program", f"'{model.name}' is no Triton kernel", where="path",
            limit="an array is made for one product of two int8 tensors, as a @triton.jit function",
            hint="submit such a file with POST /v1/models; docs/meshes.md says how it is written",
        )  # fmt: skip
    check_quotas(tx, owner, quotas, runs=1)
    check_waiting(tx, most_waiting, owner)
    return lifecycle.begin_run(
        tx, model_id=model.id, name=f"{ARRAY} for {model.name}"[:LONGEST_NAME], steps=array_steps(asked.asked()),
        options=asked.options(), owner=owner,
    )  # fmt: skip
