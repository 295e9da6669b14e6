"""The bodies of a run's steps; importing this package registers them all."""

from penstock.services.steps.bodies import (
    array,
    check_model,
    explore,
    import_model,
    kernel,
    link,
    measure,
    package,
    replay,
    select,
    shortlist,
    trial,
    verify,
    what_if,
)

__all__ = [
    "array", "check_model", "explore", "import_model", "kernel", "link", "measure", "package", "replay", "select",
    "shortlist", "trial", "verify", "what_if",
]  # fmt: skip
