/* Makes the scatter of trials answer: the nearest trial is named where one points, a click opens it, arrow keys go
   along the front. Without this file the marks of the front are links, and the table has every trial. */
"use strict";

(() => {
  const REACH = 28; // pixels within which a trial is pointed at

  const pointsOf = (chart) => {
    if (chart.pointsText !== chart.dataset.points) {
      chart.pointsText = chart.dataset.points;
      chart.points = JSON.parse(chart.pointsText);
    }
    return chart.points;
  };

  function nearest(chart, event) {
    const box = chart.getBoundingClientRect();
    let found = null;
    let least = REACH * REACH;
    for (const point of pointsOf(chart)) {
      const dx = box.left + (point[1] * box.width) / 100 - event.clientX;
      const dy = box.top + (point[2] * box.height) / 100 - event.clientY;
      const distance = dx * dx + dy * dy;
      if (distance < least) {
        least = distance;
        found = point;
      }
    }
    return found;
  }

  function show(chart, point) {
    const tip = chart.querySelector(".chart-tip");
    const ring = chart.querySelector(".hovered");
    chart.shown = point;
    tip.hidden = !point;
    ring.toggleAttribute("hidden", !point);
    if (!point) return;
    ring.setAttribute("cx", `${point[1]}%`);
    ring.setAttribute("cy", `${point[2]}%`);
    tip.textContent = point[3];
    const left = point[1] > 55;
    tip.style.left = left ? "" : `calc(${point[1]}% + 14px)`;
    tip.style.right = left ? `calc(${100 - point[1]}% + 14px)` : "";
    tip.style.top = `calc(${Math.min(point[2], 84)}% - 10px)`;
  }

  const chartOf = (event) => event.target.closest?.(".chart[data-page]");

  document.addEventListener("pointermove", (event) => {
    const chart = chartOf(event);
    for (const other of document.querySelectorAll(".chart[data-page]")) {
      if (other !== chart && other.shown) show(other, null);
    }
    if (chart) show(chart, nearest(chart, event));
  });

  /* A frame that is drawn with the mouse becomes conditions of the table. */
  const LEAST = 8; // pixels below which a press is a click
  let frame = null;

  const within = (chart, event) => {
    const box = chart.querySelector(".plot").getBoundingClientRect();
    const share = (value) => Math.min(1, Math.max(0, value));
    return [share((event.clientX - box.left) / box.width), share((event.clientY - box.top) / box.height)];
  };

  function drawFrame() {
    const shown = frame.chart.querySelector(".brush");
    const box = frame.chart.getBoundingClientRect();
    const plot = frame.chart.querySelector(".plot").getBoundingClientRect();
    const [left, right] = [frame.from[0], frame.to[0]].sort((a, b) => a - b);
    const [top, bottom] = [frame.from[1], frame.to[1]].sort((a, b) => a - b);
    shown.hidden = (right - left) * plot.width < LEAST && (bottom - top) * plot.height < LEAST;
    shown.style.left = `${plot.left - box.left + left * plot.width}px`;
    shown.style.top = `${plot.top - box.top + top * plot.height}px`;
    shown.style.width = `${(right - left) * plot.width}px`;
    shown.style.height = `${(bottom - top) * plot.height}px`;
  }

  function conditions() {
    return JSON.parse(frame.chart.dataset.axes).flatMap(([name, low, high, isLog], at) => {
      const shares = [frame.from[at], frame.to[at]].map((share) => (at ? 1 - share : share)).sort((a, b) => a - b);
      const value = (share) => (isLog ? low * (high / low) ** share : low + share * (high - low));
      return [`${name}>=${value(shares[0]).toPrecision(5)}`, `${name}<=${value(shares[1]).toPrecision(5)}`];
    });
  }

  document.addEventListener("pointerdown", (event) => {
    const chart = chartOf(event);
    if (!chart || event.button || event.pointerType !== "mouse") return;
    event.preventDefault(); // neither a selection of words nor a link that is dragged
    frame = { chart, from: within(chart, event), to: within(chart, event) };
  });

  document.addEventListener("pointermove", (event) => {
    if (!frame) return;
    frame.to = within(frame.chart, event);
    drawFrame();
  });

  document.addEventListener("pointerup", () => {
    if (!frame) return;
    const isFrame = !frame.chart.querySelector(".brush").hidden;
    if (isFrame) {
      frame.chart.wasFramed = true;
      const drawn = [...new URLSearchParams(window.location.search)].filter(([name]) => name === "axis");
      const asked = new URLSearchParams([["where", conditions().join(" ")], ...drawn]);
      window.location.assign(`${frame.chart.dataset.page.replace(/\/$/, "")}?${asked}#table`);
    }
    frame = null;
  });

  document.addEventListener("click", (event) => {
    const chart = chartOf(event);
    if (chart?.wasFramed) event.preventDefault();
    if (!chart || chart.wasFramed || event.target.closest("a")) return;
    const point = nearest(chart, event);
    if (point) window.location.assign(chart.dataset.page + point[0]);
  });

  document.addEventListener("keydown", (event) => {
    const chart = document.activeElement;
    if (!chart?.matches(".chart[data-page]")) return;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (step) {
      const front = [...chart.querySelectorAll("a[data-trial]")].map((mark) => Number(mark.dataset.trial));
      const at = chart.shown ? front.indexOf(chart.shown[0]) : -1;
      const next = front[(at + step + front.length) % front.length];
      show(chart, pointsOf(chart).find((point) => point[0] === next) ?? null);
      event.preventDefault();
    } else if (event.key === "Enter" && chart.shown) {
      window.location.assign(chart.dataset.page + chart.shown[0]);
    } else if (event.key === "Escape") {
      show(chart, null);
    }
  });
})();
