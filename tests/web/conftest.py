"""The pages are asked of the real application: fixtures are those of the API's tests."""

from __future__ import annotations

from tests.api.conftest import client, make_client, seeder, settings, shared_client

__all__ = ["client", "make_client", "seeder", "settings", "shared_client"]
