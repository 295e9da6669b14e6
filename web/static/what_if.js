/* Asks what other depths, lanes and tiles, or another source, would do, waits for the answer and shows it where the
   question stands. */
"use strict";

(() => {
  const WAIT_MS = 150;
  const LONGEST_MS = 120000;
  const part = () => document.getElementById("what-if");
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));

  function tell(text) {
    const said = document.getElementById("what-if-said");
    said.textContent = text;
    said.hidden = !text;
  }

  /* What differs from what is shown. Of a kernel all sizes of a kind go together, as the record has them. */
  function changes(form) {
    const asked = { fifo_depths: {}, kernels: {} };
    const all = [...form.querySelectorAll("input[data-kind]")];
    for (const field of all.filter((one) => one.value !== one.dataset.now)) {
      const { kind, part: name } = field.dataset;
      if (kind === "depth") asked.fifo_depths[name] = field.valueAsNumber;
      else (asked.kernels[name] ??= {})[kind] = all.filter((one) => one.dataset.kind === kind).map((one) => one.valueAsNumber);
    }
    return asked;
  }

  async function ask(address, body) {
    const isForm = body instanceof FormData;
    const headers = { Accept: "application/json", ...(isForm ? {} : { "Content-Type": "application/json" }) };
    const asked = body ? { method: "POST", headers, body: isForm ? body : JSON.stringify(body) } : { headers };
    const answer = await fetch(address, asked);
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.detail ?? `the service answered ${answer.status}`);
    return found;
  }

  /* A changed source is a model, and what it comes to a run of it: known once it is read. */
  async function askSource({ dataset, elements }) {
    const body = new FormData();
    body.append("file", new Blob([elements.source.value]), dataset.file);
    body.append("entry", dataset.top);
    const { id } = await ask("/v1/models", body);
    return ask("/v1/runs", { model: id, ...JSON.parse(dataset.options) });
  }

  const isRead = (steps) => part().dataset.of === "source" && steps.some(({ key, state }) => key === "import" && state === "succeeded");

  async function show(address) {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    const found = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("what-if");
    if (!answer.ok || !found) throw new Error(`the service answered ${answer.status}`);
    part().replaceWith(found);
    window.history.replaceState(null, "", address);
  }

  async function follow(run, address) {
    for (const began = Date.now(); Date.now() - began < LONGEST_MS; await pause(WAIT_MS)) {
      const { state, steps } = await ask(`/v1/runs/${run}`);
      if (["succeeded", "failed", "cancelled"].includes(state) || isRead(steps)) break;
    }
    await show(address);
  }

  const place = ({ dataset }, run) =>
    `${dataset.page}?${dataset.top ? "" : `kernel=${encodeURIComponent(dataset.kernelName)}&`}what_if=${run}`;
  const lost = (error) => tell(error instanceof TypeError ? "The service does not answer: is it up?" : error.message);

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (form.id !== "what-if-form") return;
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    tell("");
    try {
      const { id } = await (form.dataset.top ? askSource(form) : ask(`/v1/runs/${form.dataset.base}/what-if`, changes(form)));
      if (form.dataset.top) await show(place(form, id)); // it says that a worker reads it
      await follow(id, place(form, id));
    } catch (error) {
      lost(error);
    }
    button.disabled = false;
  });

  document.addEventListener("DOMContentLoaded", () => {
    const { run, going } = part()?.dataset ?? {};
    if (run && going !== undefined) follow(run, window.location.href).catch(lost);
  });
})();
