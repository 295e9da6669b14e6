"""What is going on with a run, in two sentences: whether it is alive, how far it is, what it waits for."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from penstock.web import text
from penstock.web.course_view import outlook
from penstock.web.text import Document


@dataclass(frozen=True)
class Story:
    """What is going on, for somebody who just opened the page."""

    tone: str
    headline: str
    detail: str


def story_of(run: Document, last_news: str | None, service: Document, now: datetime) -> Story:
    """`service` is what the service says of itself: a run may wait for what is none of its own."""
    state, progress = run["state"], run["progress"]
    lasted = text.between(run["started_at"], run["finished_at"], now)
    if state == "succeeded":
        return Story("good", "Done", f"It took {lasted}.")
    if state == "cancelled":
        return Story("warn", "Stopped", "Somebody stopped this run. What it had found is kept.")
    if state == "failed":
        return Story("bad", "Failed", f"It ran for {lasted}." if lasted else "It never started.")
    news = f"Last news {text.age(last_news, now)}." if last_news else ""
    if state in ("failing", "cancelling"):
        why = "A step failed" if state == "failing" else "Somebody stopped this run"
        return Story("warn", "Stopping", f"{why}; what is still running is being ended. {news}")
    if run["paused"]:
        running = f"{progress['trials_running']} trials still come to their end. " if progress["trials_running"] else ""
        return Story("warn", "Paused", f"{running}No trial starts until somebody resumes the run. {news}")
    at_work = progress["trials_running"] or any(step["state"] == "running" for step in run["steps"])
    if service["disk"]["status"] == "down" and not at_work:
        return Story(
            "warn",
            "Waiting: the disk is full",
            f"{service['disk']['detail'][:1].upper()}{service['disk']['detail'][1:]}. Whoever runs the service frees "
            f"some space, and it goes on by itself. {news}",
        )
    if not service["workers_alive"]:
        return Story(
            "warn",
            "Waiting: no worker is alive",
            f"Nothing moves until one starts; nothing is lost meanwhile. The command penstock up starts one. {news}",
        )
    if run["waiting_for"]:
        return Story("warn", "Waiting", f"{run['waiting_for'][:1].upper()}{run['waiting_for'][1:]}. {news}")
    if state == "queued":
        return Story("busy", "Waiting for a worker", "A worker will take the first step in a moment.")
    running = [_doing(step) for step in run["steps"] if step["state"] == "running"]
    doing = ", ".join(running)
    if progress["trials_running"]:
        count = progress["trials_running"]
        doing = f"{progress['trials_done']} of {progress['trials_total']} trials done, {count} being tried"
        ahead = outlook(progress)
        doing += f"; {ahead}" if ahead else ""
    return Story("busy", "Working", f"{doing[:1].upper()}{doing[1:]}. {news}" if doing else news)


def _doing(step: Document) -> str:
    """A step and what it says that it is at."""
    name = step["key"].partition("@")[0]  # which turn it is says nothing to somebody who looks
    return f"{name}: {step['progress_text']}" if step["progress_text"] else name
