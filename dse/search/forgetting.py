"""Forgets a study by SQL alone: for processes that have no Optuna, in the transaction that removes its run."""

from __future__ import annotations

from sqlalchemy import Connection, text

_OF_TRIALS = (
    "trial_user_attributes", "trial_system_attributes", "trial_params", "trial_values", "trial_intermediate_values",
    "trial_heartbeats",
)  # fmt: skip
_OF_STUDIES = ("trials", "study_directions", "study_user_attributes", "study_system_attributes", "studies")


def forget_study(connection: Connection, schema: str, name: str) -> None:
    """Remove the study of that name with its trials, if Optuna ever made its tables in `schema` and it is there."""
    if connection.execute(text("SELECT to_regclass(:table)"), {"table": f"{schema}.studies"}).scalar() is None:
        return
    found = text(f"SELECT study_id FROM {schema}.studies WHERE study_name = :name FOR UPDATE")
    study = connection.execute(found, {"name": name}).scalar()
    if study is None:
        return
    trials = f"SELECT trial_id FROM {schema}.trials WHERE study_id = :study"
    # whoever still works on a trial waits here, and then finds it gone: nothing of a trial comes in between
    connection.execute(text(f"{trials} FOR UPDATE"), {"study": study})
    for table in _OF_TRIALS:
        connection.execute(text(f"DELETE FROM {schema}.{table} WHERE trial_id IN ({trials})"), {"study": study})
    for table in _OF_STUDIES:
        connection.execute(text(f"DELETE FROM {schema}.{table} WHERE study_id = :study"), {"study": study})
