"""Takes the pictures of the documentation from a running service: `make screenshots LINK=$(penstock login)`.

It opens the newest runs that are there: one that was chosen by simulation, one that is still going if any is. The
pictures are small files, since they lie in the repository.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from tests.web.browser import chromium

WIDTH, HEIGHT = 1200, 860
PHONE = {"width": 390, "height": 844}
FOLDER = Path(__file__).resolve().parents[2] / "docs" / "pictures"


def main(link: str, folder: Path = FOLDER) -> None:
    """`link` is a way in, good once, or the address of a service that asks for no tokens."""
    base = "{0.scheme}://{0.netloc}".format(urlsplit(link))
    folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, reduced_motion="reduce")
        page = context.new_page()
        page.goto(link)
        found = context.request.get(f"{base}/v1/runs?state=succeeded").json()["items"]
        runs = [run for run in found if run["chosen"]]  # others were questions
        if len(runs) < 2:
            sys.exit("let at least two runs succeed first: the pictures are of them")
        chosen = next((run for run in runs if run["chosen"]["evidence"] != "modelled"), runs[0])
        searched = max(runs, key=lambda run: run["progress"]["trials_total"])
        pair = "&".join(f"run={run['id']}" for run in (searched, next(run for run in runs if run != searched)))
        for name, path in {
            "runs": "/runs",
            "run": searched["page"],
            "trials": f"{searched['page']}/trials",
            "trial": f"{searched['page']}/trials/3",
            "design": f"{chosen['page']}/design",
            "submit": "/submit",
            "compare": f"/compare?{pair}",
            "service": "/service",
        }.items():
            _take(page, base + path, folder / f"{name}.png")
        _take(page, f"{base}{chosen['page']}/design", folder / "timeline.png", "#timeline")
        _ask(page, f"{base}{searched['page']}/design")
        page.locator("#what-if").screenshot(path=folder / "what-if.png")
        dark = browser.new_context(
            storage_state=context.storage_state(), viewport=PHONE, color_scheme="dark", reduced_motion="reduce"
        )
        _take(dark.new_page(), base + searched["page"], folder / "phone.png")


def _ask(page: Any, address: str) -> None:
    """Has the kernel with the most lanes do with an eighth of them."""
    page.goto(address)
    data = page.locator("#flow-data").text_content()
    for name in (node["id"] for node in json.loads(data)["nodes"] if node["kind"] == "computes"):
        page.goto(f"{address}?kernel={quote(name)}")
        fields = page.locator('#what-if-form input[data-kind="unroll"]')
        wide = [at for at in range(fields.count()) if int(fields.nth(at).input_value()) >= 8]
        if wide:
            fields.nth(wide[0]).fill("1")
            page.get_by_role("button", name="See the effect").click()
            page.locator("#what-if table").wait_for()
            return


def _take(page: Any, address: str, path: Path, part: str = "") -> None:
    page.goto(address)
    page.wait_for_load_state("load")
    page.wait_for_timeout(300)  # what scripts draw
    if part:
        page.locator(part).screenshot(path=path)
    else:
        page.screenshot(path=path)
    sys.stdout.write(f"{path.name}: {path.stat().st_size // 1000} kB\n")


if __name__ == "__main__":
    main(sys.argv[1])
