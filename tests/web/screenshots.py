"""Takes the pictures of the documentation from a running service: `make screenshots LINK=$(penstock login)`.

Every page, and every state that a run of the service is in: let one be going and one have failed. The largest
finished search and the largest finished design are shown; a service without two finished runs gives its states alone,
such as one whose disk is full. They are small files, since they lie in the repository: WebP; a folder of one's own gets
PNG.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from penstock.services.settings import Settings
from tests.web.browser import chromium

DESK = {"width": 1200, "height": 860}
PHONE = {"width": 390, "height": 844}
QUALITY = 80
FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"
_PLACES = {str(FOLDER.parents[1]): "/opt/penstock", str(Settings.from_environment().home): "/var/lib/penstock"}
"""Where this checkout and the service's data lie is nothing for a picture of the documentation."""
_ELSEWHERE = """places => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode())
    for (const [here, there] of Object.entries(places))
      walker.currentNode.data = walker.currentNode.data.replaceAll(here, there);
}"""


def main(link: str, folder: Path = FOLDER) -> None:
    """`link` is a way in, good once, or the address of a service that asks for no tokens."""
    base = "{0.scheme}://{0.netloc}".format(urlsplit(link))
    folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        context = browser.new_context(viewport=DESK, reduced_motion="reduce")
        page = context.new_page()
        page.goto(link)
        listed = context.request.get(f"{base}/v1/runs?limit=100").json()["items"]
        runs = [context.request.get(base + run["url"]).json() if _is_going(run) else run for run in listed]
        whole = [run for run in runs if run["state"] == "succeeded" and run["chosen"]]  # others were questions
        full = context.request.get(f"{base}/v1/health").json()["disk"]["status"] == "down"
        for name, run in _states(runs, full).items():
            _take(page, base + run["page"], folder / name)
        if len(whole) < 2:
            sys.stdout.write("states alone: the other pictures are of two runs that succeeded\n")
            return
        searched = max(whole, key=lambda run: run["progress"]["trials_total"])
        models = [run for run in whole if run["model"]["kind"] != "kernel"]  # a kernel's page has no dataflow to ask
        designed = max(models or whole, key=lambda run: run["chosen"]["latency"])
        asked = next((run for run in models if run not in (searched, designed)), designed)
        for name, path in _pages(searched, designed, asked).items():
            _take(page, base + path, folder / name)
        _take(page, f"{base}{searched['page']}/trials#parallel", folder / "parallel", "#parallel")
        _take(page, f"{base}{designed['page']}/design", folder / "timeline", "#timeline")
        _take(page, f"{base}{designed['page']}/design?area=lut", folder / "treemap", "#area")
        _take(page, f"{base}{designed['page']}/design", folder / "memory-map", "#memory-map")
        if layer := next(iter(_computing(page)), ""):
            _take(page, f"{base}{designed['page']}/design?kernel={quote(layer)}", folder / "layer", "#kernel")
        for part in ("mesh", "mapping"):  # of task programs
            for run in (one for one in whole if one["model"]["kind"] == "tasks"):
                page.goto(f"{base}{run['page']}/design")
                if page.locator(f"#{part}").count():
                    _save(page, folder / part, f"#{part}")
                    break
        if kernel := next((run for run in whole if run["model"]["kind"] == "kernel"), None):
            _take(page, f"{base}{kernel['page']}/design", folder / "kernel")
        if models and _ask(page, f"{base}{asked['page']}/design"):
            _save(page, folder / "what-if", "#what-if")
        for name, scheme, viewport in (("phone", "dark", PHONE), ("dark", "dark", DESK)):
            other = browser.new_context(
                storage_state=context.storage_state(), viewport=viewport, color_scheme=scheme, reduced_motion="reduce"
            ).new_page()
            _take(other, base + searched["page"], folder / name)
            if name == "phone":
                _take(other, f"{base}/runs", folder / "phone-runs")
        _take(browser.new_context(viewport=DESK).new_page(), f"{base}/login", folder / "login")


def _is_going(run: Any) -> bool:
    return run["state"] in ("queued", "running")


_STATES: Mapping[str, Callable[[Any], bool]] = {
    "run-live": lambda run: run["state"] == "running" and not run["paused"] and not run["waiting_for"],
    "run-licence": lambda run: _is_going(run) and "licence" in run["waiting_for"],
    "run-queued": lambda run: _is_going(run) and "has waited" in run["waiting_for"],
    "run-lost": lambda run: _is_going(run) and "silent" in run["waiting_for"],
    "run-paused": lambda run: _is_going(run) and run["paused"],
    "run-failed": lambda run: run["state"] == "failed",
    "run-stopped": lambda run: run["state"] == "cancelled",
}


def _states(runs: list[Any], full: bool) -> Mapping[str, Any]:
    """State by state a run that is in it. With a full disk nothing else holds a run up."""
    if full:
        held = next(filter(_is_going, runs), None)
        return {} if held is None else {"run-full-disk": held}
    found = {name: next((run for run in runs if is_in(run)), None) for name, is_in in _STATES.items()}
    for name, run in found.items():
        if run is None:
            sys.stdout.write(f"{name}: no run is in that state\n")
    return {name: run for name, run in found.items() if run is not None}


def _pages(searched: Any, designed: Any, asked: Any) -> Mapping[str, str]:
    """Picture by picture the address."""
    return {
        "runs": "/runs", "submit": "/submit", "run": searched["page"], "trials": f"{searched['page']}/trials",
        "trial": f"{searched['page']}/trials/3", "slices": f"{searched['page']}/slices",
        "over-time": f"{searched['page']}/over-time",
        "log": f"{searched['page']}/log", "design": f"{designed['page']}/design",
        "compare": f"/compare?run={searched['id']}&run={asked['id']}", "measurements": "/measurements",
        "service": "/service", "storage": "/service/storage", "machine": "/service/machine",
    }  # fmt: skip


def _computing(page: Any) -> list[str]:
    """The layers of an open design that compute, the largest first."""
    nodes = json.loads(page.locator("#flow-data").text_content())["nodes"]
    return [node["id"] for node in sorted(nodes, key=lambda node: -node["lut"]) if node["kind"] == "computes"]


def _ask(page: Any, address: str) -> bool:
    """Has the kernel with the most lanes do with an eighth of them; whether there is one."""
    page.goto(address)
    for name in _computing(page):
        page.goto(f"{address}?kernel={quote(name)}")
        fields = page.locator('#what-if-form input[data-kind="unroll"]')
        wide = [at for at in range(fields.count()) if int(fields.nth(at).input_value()) >= 8]
        if wide:
            fields.nth(wide[0]).fill("1")
            page.get_by_role("button", name="See the effect").click()
            page.locator("#what-if table").wait_for()
            return True
    return False


def _take(page: Any, address: str, path: Path, part: str = "") -> None:
    page.goto(address)
    page.wait_for_load_state("load")
    page.wait_for_timeout(500)  # what scripts draw
    page.evaluate(_ELSEWHERE, _PLACES)
    _save(page, path, part)


def _save(page: Any, path: Path, part: str = "") -> None:
    """Playwright itself writes no WebP."""
    if path.parent != FOLDER:
        (page.locator(part) if part else page).screenshot(path=path.with_suffix(".png"))
        return
    asked: dict[str, Any] = {"format": "webp", "quality": QUALITY}
    if part:
        page.locator(part).scroll_into_view_if_needed()
        page.wait_for_timeout(200)  # what is laid out when it comes into sight
        box = page.locator(part).evaluate(
            "one => { const box = one.getBoundingClientRect();"
            " return { x: box.x + scrollX, y: box.y + scrollY, width: box.width, height: box.height, scale: 1 } }"
        )
        asked |= {"clip": box, "captureBeyondViewport": True}
    taken = page.context.new_cdp_session(page).send("Page.captureScreenshot", asked)
    path.with_suffix(".webp").write_bytes(base64.b64decode(taken["data"]))
    sys.stdout.write(f"{path.name}: {path.with_suffix('.webp').stat().st_size // 1000} kB\n")


if __name__ == "__main__":
    main(sys.argv[1], *(Path(folder) for folder in sys.argv[2:]))
