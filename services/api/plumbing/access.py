"""What each operation needs of whoever asks: one row an operation, and a test that none is without.

An operation that has no row needs `admin`, so that a forgotten one is closed, not open.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from penstock.db.schema.records import SCOPES, TokenScope

Need = TokenScope | Literal["nobody", "page"]
"""`nobody`: it is for everyone. `page`: a page that sends whoever may not read to the form that takes a token."""

ACCESS: Mapping[str, Need] = {
    # for everyone: whether it is there, and the ways in
    "ready": "nobody",
    "health": "nobody",
    "start": "nobody",
    "login_page": "nobody",
    "login": "nobody",
    "enter": "nobody",
    "logout": "nobody",
    # looking
    "list_models": "read",
    "get_model": "read",
    "list_runs": "read",
    "get_run": "read",
    "stream_events": "read",
    "list_events": "read",
    "list_trials": "read",
    "get_trial": "read",
    "get_space": "read",
    "get_front": "read",
    "metrics": "read",
    "list_artifacts": "read",
    "get_artifact": "read",
    "profile_statistics": "read",
    "rung_differences": "read",
    "explain_run": "read",
    "list_platforms": "read",
    "list_workers": "read",
    "make_login_link": "read",
    "who_am_i": "read",
    "list_views": "read",
    "runs_page": "page",
    "run_page": "page",
    "run_log_page": "page",
    "trials_page": "page",
    "trials_csv": "page",
    "over_time_page": "page",
    "slices_page": "page",
    "trial_page": "page",
    "design_page": "page",
    "compare_page": "page",
    "submit_page": "page",
    "service_page": "page",
    "storage_page": "page",
    "machine_page": "page",
    "measurements_page": "page",
    # one's own models and runs; everybody's with admin
    "submit_model": "submit",
    "check_model": "submit",
    "make_array": "submit",
    "start_run": "submit",
    "cancel_run": "submit",
    "pause_run": "submit",
    "resume_run": "submit",
    "extend_run": "submit",
    "replay_trial": "submit",
    "ask_trials": "submit",
    "tell_trial": "submit",
    "ask_what_if": "submit",
    "take_design": "submit",
    "label_run": "submit",
    "save_view": "submit",
    "delete_view": "submit",
    "pin_run": "submit",
    "unpin_run": "submit",
    "delete_run": "submit",
    "delete_model": "submit",
    "create_webhook": "submit",
    "list_webhooks": "submit",
    "delete_webhook": "submit",
    "rotate_webhook": "submit",
    "send_test_message": "submit",
    "list_deliveries": "submit",
    # everything
    "list_audit": "admin",
    "collect_garbage": "admin",
    "drain_worker": "admin",
    # workers on other machines
    "get_content": "admin",
    "put_content": "admin",
}


def need_of(operation: str) -> Need:
    return ACCESS.get(operation, "admin")


def holds(scope: TokenScope, needed: TokenScope) -> bool:
    """Whether a token of that scope may do what needs the other one."""
    return SCOPES.index(scope) >= SCOPES.index(needed)
