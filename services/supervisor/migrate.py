"""Bring the database of PENSTOCK_DATABASE_URL up to date and end: the first service of docker-compose.yml."""

from __future__ import annotations

import sys

from penstock.compiler.errors import PenstockError
from penstock.services.settings import SettingError, Settings
from penstock.services.supervisor.stack import migrate_database


def main() -> int:
    try:
        migrate_database(Settings.from_environment().require_database_url())
    except (PenstockError, SettingError) as error:
        print(f"penstock: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
