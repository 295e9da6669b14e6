"""`python -m penstock.services.api.openapi [FILE]` writes docs/openapi.json anew; a test says when that is due."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from penstock.services.api.app import bare_app

COMMITTED = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"


def document() -> str:
    """The description of the API as it is in the code, with the version left to each installation."""
    described = bare_app().openapi()
    described["info"]["version"] = "1"
    return json.dumps(described, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main() -> int:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else COMMITTED
    target.write_text(document(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
