"""What all runs share: measured kernels, and how far the rungs of evidence differ."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import Response

from penstock.services.api.answers.evidence import differences_out, profiles_out
from penstock.services.api.pages.frame import Framed, page
from penstock.services.api.plumbing.context import Ctx
from penstock.web.render import render_measurements

router = APIRouter(include_in_schema=False)


@router.get("/measurements")
def measurements_page(framed: Framed, context: Ctx) -> Response:
    """What all runs share."""
    with context.database.begin() as tx:
        profiles = profiles_out(tx).model_dump(mode="json")
        differences = [one.model_dump(mode="json") for one in differences_out(tx)]
    return page(render_measurements(framed, profiles, differences))
