/* Hands a model and what to do with it to the public API, as any client does, and goes to the run's page. */
"use strict";

(() => {
  const form = document.getElementById("submit");
  const said = document.getElementById("said");
  const button = form.querySelector("button[type=submit]");
  const source = () => form.querySelector("input[name=source]:checked").value;

  /* Fields of the API by those of this form that give them. */
  const FIELDS = { kernel: { file: "sources", entry: "top" }, library: { file: "beside", entry: "reference" } };

  const isKernel = () => source() === "kernel" || (source() === "same" && form.dataset.again === "kernel");

  function show() {
    for (const part of form.querySelectorAll("[data-source]")) part.hidden = part.dataset.source !== source();
    for (const part of form.querySelectorAll("[data-not-of-kernels]")) part.hidden = isKernel();
    const takes = form.elements.zoo.selectedOptions[0].dataset.takes;
    form.elements.arguments.placeholder = takes;
    document.getElementById("takes").textContent = `What is left out is as here: ${takes}`;
  }

  const PYTHON = /^def +(\w+)/gm;
  const CPP = /^[ \t]*(?!else\b|return\b)[A-Za-z_][\w:<>,*& \t]*[ \t*&](\w+)[ \t]*\([^;{}]*\)\s*\{/gm;

  /* What the chosen files define is offered, and taken where it can be nothing else. */
  async function offer(files, pattern, field, usual) {
    const names = new Set();
    for (const file of files)
      if (file.size < 1e6) for (const found of (await file.text()).matchAll(pattern)) names.add(found[1]);
    field.list.replaceChildren(...[...names].map((name) => new Option(name, name)));
    if (field.dataset.offered === field.value) field.value = "";
    if (!field.value) field.value = field.dataset.offered = usual(names);
  }

  const list = (text) => text.split(/[\s,]+/).filter(Boolean);

  const argument = (text) => {
    const [name, ...rest] = text.split("=");
    const value = rest.join("=");
    if (value === "true" || value === "false") return [name, value === "true"];
    return [name, value !== "" && !Number.isNaN(Number(value)) ? Number(value) : value];
  };

  /* Every option that says something; what is left empty is as the service decides. */
  function options() {
    const found = { platform: form.querySelector("input[name=platform]:checked").value };
    for (const field of form.querySelectorAll("[data-kind]")) {
      const { name, value } = field;
      const kind = field.dataset.kind;
      if (field.closest("[data-not-of-kernels][hidden]")) continue;
      if (kind === "switch") found[name] = field.checked;
      else if (kind === "choices") found[name] = [...(found[name] ?? []), ...(value ? [value] : [])];
      else if (kind === "list") found[name] = list(value);
      else if (value !== "") found[name] = kind === "number" ? field.valueAsNumber : value;
    }
    if (isKernel()) found.objectives = found.objectives.slice(0, 1);
    return found;
  }

  const ask = async (address, body) => {
    const isForm = body instanceof FormData;
    const headers = { Accept: "application/json", ...(isForm ? {} : { "Content-Type": "application/json" }) };
    const answer = await fetch(address, { method: "POST", headers, body: isForm ? body : JSON.stringify(body) });
    const document = await answer.json();
    if (!answer.ok) throw document;
    return document;
  };

  async function model() {
    const value = (name) => form.elements[name]?.value.trim() ?? "";
    switch (source()) {
      case "same":
        return value("model");
      case "file": {
        const body = new FormData();
        const [file] = form.elements.file.files;
        if (!file) throw { detail: "Choose a file first.", where: "file" };
        body.append("file", file);
        const typical = form.elements.typical.files[0];
        if (typical) body.append("file", typical);
        for (const name of ["entry", "options"]) if (value(name)) body.append(name, value(name));
        return (await ask("/v1/models", body)).id;
      }
      case "kernel": {
        const body = new FormData();
        const { files } = form.elements.sources;
        if (!files.length) throw { detail: "Choose a C++ file first.", where: "sources" };
        for (const file of files) body.append("file", file);
        if (value("top")) body.append("entry", value("top"));
        return (await ask("/v1/models", body)).id;
      }
      case "library": {
        const { files } = form.elements.beside;
        if (!files.length) return (await ask("/v1/models", { reference: value("reference") })).id;
        const body = new FormData();
        for (const file of files) body.append("file", file);
        body.append("entry", value("reference"));
        return (await ask("/v1/models", body)).id;
      }
      default: {
        const given = Object.fromEntries(list(value("arguments")).map(argument));
        return (await ask("/v1/models", { zoo: value("zoo"), arguments: given })).id;
      }
    }
  }

  function refuse(problem) {
    said.textContent = problem.detail ?? "The service does not answer: is it up? Nothing was started.";
    said.hidden = false;
    const told = (problem.where ?? "").replace(/^(body\.|field )/, "").replace(/\[.*$/, "");
    const name = FIELDS[source()]?.[told] ?? told;
    for (const marked of form.querySelectorAll("[aria-invalid]")) marked.removeAttribute("aria-invalid");
    const field = name && [...form.elements].find((one) => one.name === name);
    if (field) {
      field.closest("details")?.setAttribute("open", "");
      field.setAttribute("aria-invalid", "true");
      field.focus();
    }
  }

  form.addEventListener("change", show);
  form.elements.file.addEventListener("change", ({ target }) => {
    const python = [...target.files].filter((file) => file.name.endsWith(".py"));
    offer(python, PYTHON, form.elements.entry, (names) => (names.has("model") ? "model" : ""));
  });
  form.elements.sources.addEventListener("change", ({ target }) => {
    offer(target.files, CPP, form.elements.top, (names) => (names.size === 1 ? [...names][0] : ""));
  });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    said.hidden = true;
    try {
      const run = await ask("/v1/runs", { model: await model(), ...options() });
      window.location.assign(run.page);
    } catch (problem) {
      refuse(problem);
    }
    button.disabled = false;
  });
  show();
})();
