/* Keeps the region #live fresh: by the run's event stream where there is one, else by asking every few seconds.
   The page works without this file; with it, nobody needs to reload, and it is always said whether news can
   still arrive. */
"use strict";

(() => {
  const POLL_MS = 3000; // lists, and runs while no event stream can be had
  const SLOW_MS = 10000; // runs with a stream: ages and signs of life still move
  const QUIET_MS = 30; // several events at once are one refresh
  const STREAMS = 3; // of one browser: over HTTP/1.1 it opens six connections to a service, and pages need some

  const live = () => document.getElementById("live");
  const mode = () => live()?.dataset.live ?? "still";
  let stream = null;
  let timer = null;
  let pending = null;
  let asking = null; // since when an answer is awaited
  let took = 0; // from asking to the swap: a page that is dear is drawn less often
  let given = null; // the answer that another tab had, to be shown instead of asking
  let drawn = ""; // the answer on the screen
  let toldAt = 0; // when another tab told of news last, or that there are none
  let endAt = 0;
  let letGo = null; // gives this tab's place among the streams to another tab
  let isOpening = false;
  let lostSince = null;
  let isGone = false; // what is shown was deleted: asking on would not bring it back

  function say(state, text) {
    const link = document.getElementById("link");
    if (!link) return;
    link.hidden = !text;
    link.querySelector(".dot").className = `dot ${state}`;
    document.getElementById("link-text").textContent = text;
  }

  function describe() {
    if (isGone) {
      say("bad", "this is not there any more: what you see is its last state");
    } else if (lostSince) {
      const seconds = Math.round((Date.now() - lostSince) / 1000);
      say("bad", `no answer from the service for ${seconds} s, trying again`);
    } else if (mode() === "still") {
      say("", live() ? live().dataset.over ?? "this run is over" : ""); // pages without news say nothing
    } else {
      say("good", stream || isTold() ? "live" : "refreshes every few seconds");
    }
  }

  const isTold = () => Date.now() - toldAt < SLOW_MS + POLL_MS; // who has the stream asks every SLOW_MS

  function refresh() {
    if (document.hidden || pending || isGone) return;
    const quiet = asking ? POLL_MS : Math.max(QUIET_MS, took - (Date.now() - endAt));
    pending = setTimeout(ask, quiet);
  }

  function ask() {
    clearTimeout(pending);
    pending = null;
    asking = Date.now();
    live()?.dispatchEvent(new Event("refresh"));
  }

  function answered() {
    if (!asking) return;
    took = Math.min(Date.now() - asking, POLL_MS);
    asking = null;
    endAt = Date.now();
    if (pending) {
      clearTimeout(pending);
      pending = null;
      refresh();
    }
  }

  // Tabs of one browser that show one run share its stream: the tab that has it tells the others of news, and hands
  // its answer to those that show the same page.
  const others = "BroadcastChannel" in window ? new BroadcastChannel("penstock news") : null;
  const here = window.location.pathname + window.location.search;
  const shown = () => live()?.dataset.events?.split("?")[0];
  others?.addEventListener("message", ({ data }) => {
    if (stream || data.run !== shown() || document.hidden) return;
    toldAt = Date.now();
    if (data.page === here && !data.text) return; // its answer follows
    if (data.page !== here && data.text) return; // the answer to what it told of before
    given = data.text ?? null;
    refresh();
  });

  function news() {
    others?.postMessage({ run: shown(), page: here });
    refresh();
  }

  // A lock of that name, if nobody has it: what gives it back, else null.
  const hold = (name) =>
    new Promise((decided) => {
      navigator.locks
        .request(name, { ifAvailable: true }, (lock) => (lock ? new Promise((free) => decided(free)) : decided(null)))
        .catch(() => decided(null));
    });

  async function openStream() {
    if (stream || isOpening || mode() !== "events" || document.hidden) return;
    if (!navigator.locks) {
      listen(); // a browser gives locks to secure pages only: there a tab must hope for a connection
      return;
    }
    isOpening = true;
    const freeRun = await hold(`penstock news of ${shown()}`);
    let freePlace = null;
    for (let place = 0; place < STREAMS && freeRun && !freePlace; place += 1) {
      freePlace = await hold(`penstock stream ${place}`);
    }
    isOpening = false;
    letGo = () => [freePlace, freeRun].forEach((free) => free?.());
    if (freePlace && mode() === "events" && !document.hidden) listen();
    else closeStream();
  }

  function listen() {
    stream = new EventSource(live().dataset.events);
    stream.onmessage = news;
    stream.addEventListener("end", () => {
      closeStream();
      news();
    });
    stream.onerror = () => {
      // A refused stream stays closed: polling goes on, and the stream is tried again with the next tick.
      if (stream && stream.readyState === EventSource.CLOSED) closeStream();
    };
    describe();
  }

  function closeStream() {
    stream?.close();
    stream = null;
    letGo?.();
    letGo = null;
  }

  function tick() {
    if (!document.hidden && mode() !== "still" && !isGone) {
      openStream();
      if (stream || !isTold()) refresh();
    }
    describe();
    timer = setTimeout(tick, stream && !lostSince ? SLOW_MS : POLL_MS);
  }

  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      closeStream();
      return;
    }
    clearTimeout(timer);
    tick();
  });

  document.addEventListener("htmx:before:request", (event) => {
    if (given === null) return;
    const text = given;
    given = null;
    event.detail.ctx.fetch = async () => new Response(text);
  });

  document.addEventListener("htmx:after:request", (event) => {
    const { response, text } = event.detail.ctx;
    if (response.status >= 400) return;
    if (stream) others?.postMessage({ run: shown(), page: here, text });
    isGone = false;
    lostSince = null;
    // Another page came back, such as the one to sign in: show it whole.
    if (!text.includes('id="live"')) window.location.reload();
    if (text === drawn) event.preventDefault(); // nothing of it changed
    drawn = text;
    describe();
  });

  document.addEventListener("htmx:finally:request", answered);

  document.addEventListener("htmx:after:swap", () => {
    if (mode() === "still") closeStream();
    describe();
  });

  for (const name of ["htmx:error", "htmx:response:error"]) {
    document.addEventListener(name, (event) => {
      isGone = event.detail?.ctx?.response?.status === 404;
      lostSince ??= Date.now();
      if (isGone) closeStream();
      describe();
    });
  }

  // Buttons that act go through the public API; what it says is shown where the button is.
  // What a form asks for goes as JSON, as any client of the API sends it.
  const valueOf = (field) => {
    if (field.type === "number") return field.valueAsNumber;
    return field.hasAttribute("data-list") ? field.value.split(/[\s,]+/).filter(Boolean) : field.value;
  };
  const request = (form) => {
    const fields = [...form.elements].filter((field) => field.name).map((field) => [field.name, valueOf(field)]);
    const method = form.dataset.api || "POST";
    const headers = { Accept: "application/json" };
    if (!fields.length) return { method, headers };
    headers["Content-Type"] = "application/json";
    return { method, headers, body: JSON.stringify(Object.fromEntries(fields)) };
  };

  const goTo = (address) => {
    const isHere = new URL(address, window.location.href).href === window.location.href;
    if (isHere) window.location.reload();
    else window.location.assign(address);
  };

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.matches("form[data-api]")) return;
    event.preventDefault();
    if (form.dataset.confirm && !window.confirm(form.dataset.confirm)) return;
    const button = form.querySelector("button");
    const said = document.getElementById("said");
    button.disabled = true;
    said.hidden = true;
    try {
      const answer = await fetch(form.action, request(form));
      const given = answer.status === 204 ? {} : await answer.json();
      if (answer.ok && form.hasAttribute("data-goto")) goTo(form.dataset.goto || given.page);
      if (!answer.ok) {
        said.textContent = given.detail ?? `the service answered ${answer.status}`;
        said.hidden = false;
      }
    } catch {
      said.textContent = "The service does not answer: is it up? Nothing was changed.";
      said.hidden = false;
    }
    button.disabled = false;
    refresh();
  });

  window.addEventListener("DOMContentLoaded", () => {
    if (!live()) return;
    openStream();
    describe();
    timer = setTimeout(tick, POLL_MS);
  });
})();
