"""A page of the documentation that is written from one run of a benchmark, whose figures are kept beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class WrittenPage:
    """`files` says everything that is written, by its place in the repository, from one object of `--json`."""

    figures: Path
    files: Callable[[Mapping[str, Any]], Mapping[Path, str]]

    def read(self) -> dict[str, Any]:
        """The run that the page shows."""
        return json.loads(self.figures.read_text(encoding="utf-8"))

    def write(self, run: Mapping[str, Any], root: Path = ROOT) -> None:
        for path, text in self.files(run).items():
            (root / path).write_text(text, encoding="utf-8")

    def renew(self, given: Sequence[str]) -> None:
        """Writes it anew, from the kept figures or from those of a file, which are then the kept ones."""
        if given:
            run = json.loads(Path(given[0]).read_text(encoding="utf-8"))
            self.figures.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
        self.write(self.read())
