"""What the API takes and gives of what people write beside runs: tags, notes, saved views of the list."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from penstock.services.api.answers.schemas import Given
from penstock.services.described import Described
from penstock.services.run_options import PlainText, RequestBody
from penstock.web.runs_view import RunQuery

if TYPE_CHECKING:  # clients have the types, and no database
    from penstock.db.repositories.views import SavedView

MOST_TAGS, LONGEST_NOTES, MOST_VIEWS = 20, 4_000, 50
_TAG = r"\w[\w.:/+@-]{0,39}"
_TURNING = r"\u200e\u200f\u202a-\u202e\u2066-\u2069"
_TURNS = re.compile(f"[{_TURNING}]")
"""What turns the direction of the text that follows: a name with it could show as another one."""


def _tag(tag: str) -> str:
    if re.fullmatch(_TAG, tag):
        return tag
    raise PydanticCustomError(
        "bad_tag",
        "a tag is a word of at most 40 letters, digits and . : / + @ - _, and begins with a letter or a digit",
    )


def _notes(notes: str) -> str:
    text = notes.replace("\r\n", "\n").strip()
    if any((ord(letter) < 32 and letter not in "\n\t") or ord(letter) == 127 for letter in text):
        raise PydanticCustomError("control_character", "contains a control character")
    return _TURNS.sub("", text)


def _title(name: str) -> str:
    if title := _TURNS.sub("", name).strip():
        return title
    raise PydanticCustomError("no_name", "needs a letter that can be seen")


_CONTROL = r"\x00-\x1f\x7f"
_SEEN = {"pattern": rf"^[^{_CONTROL}]*[^\s{_CONTROL}{_TURNING}][^{_CONTROL}]*$"}
_LINES = {"pattern": r"^(\r\n|[^\x00-\x08\x0b-\x1f\x7f])*$"}
Tag = Annotated[str, AfterValidator(_tag), Described({"pattern": f"^{_TAG}$"})]


class RunLabels(RequestBody):
    """What to write beside a run; what is left out stays."""

    tags: list[Tag] | None = Field(None, max_length=MOST_TAGS, description="in place of those it has")
    notes: Annotated[str, Field(max_length=LONGEST_NOTES), AfterValidator(_notes), Described(_LINES)] | None = Field(
        None, description="plain text, in place of what is there"
    )


class ViewQuery(RequestBody):
    """What is asked of the list of runs."""

    state: Literal["all", "active", "succeeded", "failed", "cancelled", "questions"] = "all"
    words: PlainText = Field("", max_length=200)
    platform: PlainText = Field("", max_length=64)
    owner: PlainText = Field("", max_length=200)
    tag: PlainText = Field("", max_length=40)


class NewView(ViewQuery):
    """A question to keep."""

    name: Annotated[PlainText, Field(min_length=1, max_length=60), AfterValidator(_title), Described(_SEEN)] = Field(
        description="one that is there already stands for the new question"
    )


class ViewOut(Given):
    id: str
    name: str
    query: ViewQuery
    page: str = Field(description="the page that shows it to people")
    created_at: datetime


class ViewList(Given):
    items: list[ViewOut]


def view_out(view: SavedView) -> ViewOut:
    query = ViewQuery.model_validate(view.query)
    page = RunQuery(**query.model_dump()).address()
    return ViewOut(id=view.id, name=view.name, query=query, page=page, created_at=view.created_at)
