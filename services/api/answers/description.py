"""The OpenAPI description as FastAPI makes it, set right where it cannot know better."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from penstock.services.api.answers.problems import MEDIA_TYPE
from penstock.services.api.answers.schemas import NamedModel, ZooReference

_PROBLEM = {"$ref": "#/components/schemas/ProblemOut"}


def describe(app: FastAPI) -> dict[str, Any]:
    """Problems have a media type of their own, a parameter is there or left out, both model bodies are described."""
    if app.openapi_schema is None:
        made = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes, tags=app.openapi_tags
        )
        for operations in made["paths"].values():
            for operation in operations.values():
                for parameter in operation.get("parameters", ()):
                    parameter["schema"] = _never_null(parameter["schema"])
                operation["responses"]["default"]["content"] = {MEDIA_TYPE: {"schema": _PROBLEM}}
        for body in (ZooReference, NamedModel):
            schema = body.model_json_schema(ref_template="#/components/schemas/{model}")
            made["components"]["schemas"][body.__name__] = schema
        made["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        made["security"] = [{}, {"token": []}]
        app.openapi_schema = made
    return app.openapi_schema


def _never_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Of a parameter that may be left out: nobody can send a null in an address or a header."""
    kinds = [kind for kind in schema.get("anyOf", ()) if kind != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    return {**kinds[0], **{name: said for name, said in schema.items() if name != "anyOf"}}
