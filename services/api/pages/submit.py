"""The form that starts a run, of a model that is sent with it or of one that another run had."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import Response

from penstock.compiler.platforms import load_platform, platform_names
from penstock.compiler.zoo import model_names
from penstock.compiler.zoo._declared import declared_options
from penstock.services.api.answers.documents import run_detail
from penstock.services.api.answers.schemas import NewRun
from penstock.services.api.pages.frame import Framed, page
from penstock.services.api.plumbing.context import Ctx
from penstock.services.jobs.kernels import TAKEN
from penstock.services.jobs.runs import find_run
from penstock.services.run_options import RunOptions, option_labels, said
from penstock.web.render import render_form
from penstock.web.text import Document

router = APIRouter(include_in_schema=False)


@router.get("/submit")
def submit_page(framed: Framed, context: Ctx, run: Annotated[str | None, Query(max_length=64)] = None) -> Response:
    """An empty form, or with `run` one that is filled as that run was asked for."""
    again = None
    if run:
        with context.database.begin() as tx:
            again = run_detail(tx, find_run(tx, run)).model_dump(mode="json")
    described = NewRun.model_json_schema()["properties"]
    names = [*RunOptions.model_fields, "name"]
    html = render_form(
        framed,
        {name: described[name] for name in names},
        option_labels(),
        {name: said(name).help for name in RunOptions.model_fields},
        [_platform(name) for name in platform_names()],
        zoo={name: declared_options(name) for name in model_names()},
        takes_python=context.settings.allow_python_models,
        again=again,
        kernel_options=(*TAKEN, "name", "priority"),
    )
    return page(html)


def _platform(name: str) -> Document:
    found = load_platform(name)
    memory = found.fastest_memory
    return {
        "name": found.name,
        "title": found.title,
        "clock_mhz": found.clock_mhz,
        "limits": found.limits.as_dict(),
        "memory_gb_s": memory.sustained_gb_s if memory else 0,
    }
