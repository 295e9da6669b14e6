/* Draws the dataflow of a design: dagre lays it out, groups fold, a click opens a layer in the page. Layers are drawn
   at a size that can be read; what does not fit is scrolled to. The tables of the page say the same without it. */
"use strict";

(() => {
  const FOLD_ABOVE = 40; // layers: beyond that groups begin folded
  const MOST_DRAWN = 700; // boxes that are laid out in a moment
  const NODE = { height: 44, least: 84, letter: 7.8 };
  const SVG = "http://www.w3.org/2000/svg";

  const box = document.getElementById("flow");
  const data = JSON.parse(document.getElementById("flow-data").textContent);
  const groups = new Map();
  for (const node of data.nodes) groups.set(node.group, [...(groups.get(node.group) ?? []), node]);
  const folded = new Set();
  let scale = 1;
  let drawn = { width: 0, height: 0 };

  const make = (name, attributes, ...children) => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };
  const title = (words) => {
    const made = make("title", {});
    made.textContent = words;
    return made;
  };
  const short = (words, most) => (words.length > most ? `${words.slice(0, most - 9)}…${words.slice(-8)}` : words);
  const count = (value) => Number(value).toLocaleString("en");

  const foldAll = () => {
    for (const [name, nodes] of groups) if (nodes.length > 1) folded.add(name);
  };

  /* What is to be seen: layers, or in their place the folded group that they belong to. */
  function visible() {
    const place = new Map();
    const boxes = new Map();
    for (const [name, nodes] of groups) {
      const isFolded = folded.has(name);
      for (const node of nodes) {
        const id = isFolded ? `group ${name}` : node.id;
        place.set(node.id, id);
        if (!boxes.has(id)) boxes.set(id, { id, name: isFolded ? name : node.id, group: isFolded ? name : "", nodes: [] });
        boxes.get(id).nodes.push(node);
      }
    }
    const lines = new Map();
    for (const edge of data.edges) {
      const [from, to] = [place.get(edge.from), place.get(edge.to)];
      if (from === to || !from || !to) continue;
      const key = JSON.stringify([from, to]);
      lines.set(key, { from, to, edges: [...(lines.get(key)?.edges ?? []), edge] });
    }
    return { boxes: [...boxes.values()], lines: [...lines.values()] };
  }

  function layOut(boxes, lines) {
    const graph = new dagre.graphlib.Graph();
    graph.setGraph({ rankdir: "TB", nodesep: 22, ranksep: 34, marginx: 12, marginy: 12 });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const one of boxes) {
      one.label = short(one.group ? `${one.name} (${one.nodes.length})` : one.name, 30);
      const under = Math.max(one.label.length * NODE.letter, words(one).length * 5.9);
      graph.setNode(one.id, { width: Math.max(NODE.least, under + 26), height: NODE.height });
    }
    for (const line of lines) graph.setEdge(line.from, line.to);
    dagre.layout(graph);
    return graph;
  }

  const words = (one) => {
    const latency = Math.max(...one.nodes.map((node) => node.latency));
    const ii = Math.max(...one.nodes.map((node) => node.ii));
    return latency ? `${count(latency)} cycles · II ${ii}` : "";
  };

  function drawBox(one, at) {
    const kinds = one.nodes.map((node) => node.kind);
    const kind = kinds.includes("computes") ? "computes" : kinds.includes("host") ? "host" : "moves";
    const critical = one.nodes.some((node) => node.critical) ? " critical" : "";
    const dies = [...new Set(one.nodes.map((node) => node.die))].filter((die) => die >= 0);
    const left = at.x - at.width / 2;
    const top = at.y - at.height / 2;
    const link = make("a", {
      class: `flow-node ${kind}${critical}${one.group ? " group" : ""}`,
      href: one.group ? "#dataflow" : (one.nodes[0].at ?? `${box.dataset.page}?kernel=${encodeURIComponent(one.name)}#kernel`),
    });
    link.dataset[one.group ? "group" : "kernel"] = one.name;
    const where = dies.map((die) => data.dies[die]).join(", ");
    link.append(
      title(`${one.name}: ${words(one)}${where ? `, on ${where}` : ""}`),
      make("rect", { x: left, y: top, width: at.width, height: at.height, rx: 6 }),
      ...dies.slice(0, 4).map((die, index) =>
        make("rect", { class: `die die-${die % 4}`, x: left + 5, y: top + 7 + index * 8, width: 5, height: 6, rx: 1 }),
      ),
    );
    const name = make("text", { class: "name", x: at.x + 5, y: at.y - 3 });
    name.textContent = one.label;
    const under = make("text", { class: "under", x: at.x + 5, y: at.y + 13 });
    under.textContent = words(one);
    link.append(name, under);
    return link;
  }

  function drawLine(line, points) {
    const bits = Math.max(...line.edges.map((edge) => edge.width ?? 0));
    const fill = Math.max(...line.edges.map((edge) => edge.fill ?? 0));
    const path = points.map((point, index) => `${index ? "L" : "M"}${point.x.toFixed(1)} ${point.y.toFixed(1)}`).join("");
    const said = line.edges
      .slice(0, 12)
      .map((edge) => `${edge.name}: ${edge.width ?? "?"} bit × ${edge.depth ?? "?"}, at most ${edge.held ?? "?"} held`);
    if (line.edges.length > 12) said.push(`and ${line.edges.length - 12} more`);
    const middle = points[Math.floor(points.length / 2)];
    const width = 1 + Math.min(3.5, Math.log2(1 + bits / 16) / 2);
    return make(
      "g",
      { class: fill >= 1 ? "flow-edge full" : "flow-edge" },
      title(said.join("\n")),
      make("path", { d: path, "stroke-width": width.toFixed(2), "marker-end": "url(#flow-arrow)" }),
      make("rect", { class: "tank", x: middle.x - 10, y: middle.y - 3, width: 20, height: 6, rx: 2 }),
      make("rect", { class: "level", x: middle.x - 10, y: middle.y - 3, width: (20 * fill).toFixed(1), height: 6, rx: 2 }),
    );
  }

  /* dagre's own width is of the boxes: a line that goes around them may lie beside it. */
  function roomOf(graph, lines) {
    const { width, height } = graph.graph();
    const across = lines.flatMap((line) => graph.edge(line.from, line.to).points.map((point) => point.x));
    const left = across.reduce((least, x) => Math.min(least, x - 14), 0);
    const right = across.reduce((most, x) => Math.max(most, x + 14), width);
    return { left, width: right - left, height };
  }

  function draw() {
    const { boxes, lines } = visible();
    box.replaceChildren();
    if (boxes.length > MOST_DRAWN) {
      const said = document.createElement("p");
      said.className = "inset soft";
      said.textContent = `${count(boxes.length)} boxes are too many to be told apart: fold them, or use the tables below.`;
      box.append(said);
      return;
    }
    const graph = layOut(boxes, lines);
    drawn = roomOf(graph, lines);
    const arrow = make("marker", { id: "flow-arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto" });
    arrow.append(make("path", { d: "M0 0l8 4l-8 4z" }));
    const svg = make("svg", { viewBox: `${drawn.left} 0 ${drawn.width} ${drawn.height}`, role: "group", "aria-label": "Dataflow" }, make("defs", {}, arrow));
    for (const line of lines) svg.append(drawLine(line, graph.edge(line.from, line.to).points));
    for (const one of boxes) svg.append(drawBox(one, graph.node(one.id)));
    box.append(svg);
    resize();
  }

  function resize() {
    const svg = box.querySelector("svg");
    if (!svg) return;
    svg.setAttribute("width", Math.ceil(drawn.width * scale));
    svg.setAttribute("height", Math.ceil(drawn.height * scale));
  }

  const fitted = () => Math.min(1, (box.clientWidth - 4) / drawn.width, (box.clientHeight - 4) / drawn.height);

  function unfold(name) {
    folded.delete(name);
    draw();
    show(groups.get(name)[0].id);
  }

  function show(id) {
    const found = box.querySelector(`[data-kernel="${CSS.escape(id)}"]`);
    found?.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
    return found;
  }

  box.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-group]");
    if (!link) return;
    event.preventDefault();
    unfold(link.dataset.group);
  });

  const acts = {
    fold: () => (foldAll(), draw()),
    unfold: () => (folded.clear(), draw()),
    in: () => ((scale = Math.min(2, scale * 1.25)), resize()),
    out: () => ((scale = Math.max(0.1, scale / 1.25)), resize()),
    fit: () => ((scale = fitted()), resize()),
  };
  document.getElementById("flow-tools").addEventListener("click", (event) => acts[event.target.dataset?.flow]?.());

  document.getElementById("flow-find").addEventListener("change", (event) => {
    const asked = event.target.value.trim().toLowerCase();
    const node = asked && data.nodes.find((one) => one.id.toLowerCase().includes(asked));
    if (!node) return;
    if (folded.has(node.group)) unfold(node.group);
    for (const other of box.querySelectorAll(".selected")) other.classList.remove("selected");
    show(node.id)?.classList.add("selected");
  });

  for (const id of ["flow", "flow-tools", "flow-legend"]) document.getElementById(id).hidden = false;
  if (data.nodes.length > FOLD_ABOVE) foldAll();
  draw();
})();
