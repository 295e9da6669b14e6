/* A part of an axis of the parallel coordinates becomes conditions of the table. Which part holds is drawn by the
   service from the address; without this file the conditions can be written under Where. */
"use strict";

(() => {
  const STEP = 2; // hundredths of an axis that an arrow key moves, where it has no values of its own
  const LEAST = 1.5; // below which a press is a click

  const scaleOf = (part) => JSON.parse(part.dataset.scale);
  const handleOf = (part, end) => part.querySelector(`[data-end="${end}"]`);
  const placeOf = (part, end) => 100 - Number(handleOf(part, end).getAttribute("aria-valuenow"));
  const heldOf = (part) => [placeOf(part, "high"), placeOf(part, "low")];
  const clamp = (place) => Math.min(100, Math.max(0, place));

  function valueAt({ low, high, log }, place) {
    const share = 1 - place / 100;
    return (log ? low * (high / low) ** share : low + share * (high - low)).toPrecision(5);
  }

  function wordsAt(scale, place) {
    const near = scale.stops.toSorted((a, b) => Math.abs(a[0] - place) - Math.abs(b[0] - place))[0];
    return near ? near[2] : String(Number(valueAt(scale, place)));
  }

  function draw(part, top, bottom) {
    const held = part.querySelector(".rail-held");
    const scale = scaleOf(part);
    held.setAttribute("y", `${top}%`);
    held.setAttribute("height", `${bottom - top}%`);
    held.classList.toggle("set", top > 0 || bottom < 100);
    for (const [end, place] of [["high", top], ["low", bottom]]) {
      const handle = handleOf(part, end);
      handle.setAttribute("aria-valuenow", String(Math.round(1000 - 10 * place) / 10));
      handle.setAttribute("aria-valuetext", wordsAt(scale, place));
      handle.querySelector("svg").setAttribute("y", `${place}%`);
    }
  }

  /* Ends that lie at the end of the axis ask for nothing, so that rounding leaves no trial out. */
  function conditions(part, top, bottom) {
    const { key } = part.dataset;
    const scale = scaleOf(part);
    const inside = scale.stops.filter(([place]) => place >= top - 0.05 && place <= bottom + 0.05);
    if (scale.words) {
      return inside.length && inside.length < scale.stops.length ? [`${key}=${inside.map((stop) => stop[1]).join("|")}`] : [];
    }
    if (scale.stops.length && !inside.length) return [];
    const [most, least] = inside.length
      ? [inside.reduce((a, b) => (b[0] < a[0] ? b : a)), inside.reduce((a, b) => (b[0] > a[0] ? b : a))]
      : [[top, valueAt(scale, top)], [bottom, valueAt(scale, bottom)]];
    return [...(least[0] < 99.9 ? [`${key}>=${least[1]}`] : []), ...(most[0] > 0.1 ? [`${key}<=${most[1]}`] : [])];
  }

  const isOf = (word, key) => word.startsWith(key) && /^(<=|>=|=)/.test(word.slice(key.length));

  function apply(part, top, bottom, place) {
    const address = new URL(part.closest("[data-address]").dataset.address, window.location.href);
    const others = (address.searchParams.get("where") ?? "").split(/\s+/).filter((word) => word && !isOf(word, part.dataset.key));
    const asked = [...others, ...conditions(part, top, bottom)].join(" ");
    if (asked) address.searchParams.set("where", asked);
    else address.searchParams.delete("where");
    address.searchParams.delete("page");
    address.hash = place;
    const isHere = address.href.split("#")[0] === window.location.href.split("#")[0];
    if (isHere) draw(part, ...part.asDrawn);
    else window.location.assign(address.href);
  }

  const partOf = (event) => event.target.closest?.(".rail-part");
  const placeIn = (part, event) => {
    const box = part.querySelector(".rail-room").getBoundingClientRect();
    return clamp((100 * (event.clientY - box.top)) / box.height);
  };
  const remember = (part) => (part.asDrawn ??= heldOf(part));
  let drawn = null;

  document.addEventListener("pointerdown", (event) => {
    const part = partOf(event);
    if (!part || event.button) return;
    event.preventDefault();
    remember(part);
    const end = event.target.closest("[data-end]")?.dataset.end;
    const [top, bottom] = heldOf(part);
    const at = placeIn(part, event);
    drawn = { part, from: end === "high" ? bottom : end === "low" ? top : at, to: at, isHandle: Boolean(end) };
  });

  document.addEventListener("pointermove", (event) => {
    if (!drawn) return;
    drawn.to = placeIn(drawn.part, event);
    draw(drawn.part, Math.min(drawn.from, drawn.to), Math.max(drawn.from, drawn.to));
  });

  document.addEventListener("pointerup", () => {
    if (!drawn) return;
    const { part, from, to, isHandle } = drawn;
    drawn = null;
    const ends = [Math.min(from, to), Math.max(from, to)];
    if (ends[1] - ends[0] >= LEAST) apply(part, ...ends, "parallel");
    else if (!isHandle) apply(part, 0, 100, "parallel");
    else draw(part, ...part.asDrawn);
  });

  function moved(scale, place, step) {
    if (!scale.stops.length) return clamp(place - step * STEP);
    const places = scale.stops.map((stop) => stop[0]).sort((a, b) => a - b);
    return step > 0 ? places.findLast((one) => one < place - 0.05) ?? 0 : places.find((one) => one > place + 0.05) ?? 100;
  }

  document.addEventListener("keydown", (event) => {
    const handle = document.activeElement;
    if (!handle?.matches('.rail-part [role="slider"]')) return;
    const part = handle.closest(".rail-part");
    const isHigh = handle.dataset.end === "high";
    const [top, bottom] = heldOf(part);
    remember(part);
    if (event.key === "Enter") return apply(part, top, bottom, handle.id);
    if (event.key === "Escape") return apply(part, 0, 100, handle.id);
    const step = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 5, PageDown: -5 }[event.key];
    const end = { Home: 100, End: 0 }[event.key];
    if (step === undefined && end === undefined) return;
    event.preventDefault();
    let at = end ?? (isHigh ? top : bottom);
    for (let count = 0; step && count < Math.abs(step); count += 1) at = moved(scaleOf(part), at, step);
    if (isHigh) draw(part, Math.min(at, bottom), bottom);
    else draw(part, top, Math.max(at, top));
  });

  /* Whoever moved an end goes on from there. */
  document.addEventListener("DOMContentLoaded", () => {
    const place = decodeURIComponent(window.location.hash.slice(1));
    const found = place === "parallel" || place.startsWith("rail-") ? document.getElementById(place) : null;
    if (!found) return;
    document.getElementById("parallel").open = true;
    document.getElementById("parallel").scrollIntoView();
    if (found.matches("[role]")) found.focus({ preventScroll: true });
  });
})();
