/* Asks what other depths, lanes and tiles would do, waits for the answer and shows it where the question stands. */
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
    const headers = { Accept: "application/json", "Content-Type": "application/json" };
    const answer = await fetch(address, body ? { method: "POST", headers, body: JSON.stringify(body) } : { headers });
    const found = await answer.json();
    if (!answer.ok) throw new Error(found.detail ?? `the service answered ${answer.status}`);
    return found;
  }

  async function show(address) {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    const found = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("what-if");
    if (!answer.ok || !found) throw new Error(`the service answered ${answer.status}`);
    part().replaceWith(found);
    window.history.replaceState(null, "", address);
  }

  async function follow(run, address) {
    for (const began = Date.now(); Date.now() - began < LONGEST_MS; await pause(WAIT_MS)) {
      const { state } = await ask(`/v1/runs/${run}`);
      if (["succeeded", "failed", "cancelled"].includes(state)) break;
    }
    await show(address);
  }

  const place = (form, run) => `${form.dataset.page}?kernel=${encodeURIComponent(form.dataset.kernelName)}&what_if=${run}`;
  const lost = (error) => tell(error instanceof TypeError ? "The service does not answer: is it up?" : error.message);

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (form.id !== "what-if-form") return;
    event.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    tell("");
    try {
      const { id } = await ask(`/v1/runs/${form.dataset.base}/what-if`, changes(form));
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
