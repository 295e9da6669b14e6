/* Opens a layer where one stands instead of loading the page anew, and lets the timeline be drawn wider. */
"use strict";

(() => {
  async function open(key, address) {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const found = page.getElementById("kernel");
    if (!answer.ok || !found) throw new Error(`the service answered ${answer.status}`);
    for (const id of ["kernel", "what-if"]) document.getElementById(id).replaceWith(page.getElementById(id));
    window.history.replaceState(null, "", address);
    for (const one of document.querySelectorAll(".selected")) one.classList.remove("selected");
    for (const one of document.querySelectorAll(`.flow-node[data-kernel="${CSS.escape(key)}"]`)) one.classList.add("selected");
    found.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-kernel]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const key = link.dataset.kernel;
    const asked = new URLSearchParams(window.location.search).get("what_if");
    const address = `${window.location.pathname}?kernel=${encodeURIComponent(key)}${asked ? `&what_if=${asked}` : ""}`;
    open(key, address).catch(() => window.location.assign(address));
  });

  const table = document.querySelector(".timeline table");
  const tools = document.getElementById("time-tools");
  if (!table || !tools) return;
  let zoom = 1;
  const acts = { in: () => Math.min(64, zoom * 2), out: () => Math.max(1, zoom / 2), fit: () => 1 };
  tools.hidden = false;
  tools.addEventListener("click", (event) => {
    zoom = acts[event.target.dataset?.time]?.() ?? zoom;
    table.style.width = `${zoom * 100}%`;
  });
})();
