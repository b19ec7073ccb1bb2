// The page of the playground: its fields, its buttons, and the worker that runs the interpreter.
const root = document.getElementById("playground-app");
const field = Object.fromEntries(
  ["example", "profile", "document", "agents", "input"].map((name) => [name, root.querySelector(`[name=${name}]`)]),
);
const buttons = [...root.querySelectorAll("button[data-call]")];
const stop = root.querySelector("button[data-stop]");
const status = root.querySelector("[role=status]");
const output = root.querySelector(".playground-output");
let worker;
let waiting;
let count = 0;

function element(name, text, attributes = {}) {
  const made = Object.assign(document.createElement(name), attributes);
  if (text !== undefined) made.textContent = text;
  return made;
}

function busy(message) {
  buttons.forEach((each) => (each.disabled = message !== ""));
  stop.hidden = message === "" || !worker;
  status.textContent = message;
}

function ask(call, input) {
  if (!worker) {
    worker = new Worker(new URL("worker.js", import.meta.url), { type: "module" });
    worker.onerror = (event) => waiting?.({ problem: event.message || "the interpreter cannot be loaded" });
    worker.onmessage = ({ data }) => data.id === count && waiting(data.answer);
    busy("Loading Python, once: 16 MB …");
  } else {
    busy("Working …");
  }
  count += 1;
  worker.postMessage({ id: count, call, input });
  return new Promise((resolve) => (waiting = resolve));
}

function select(area, line, column) {
  const lines = area.value.split("\n");
  const at = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0) + column - 1;
  area.focus();
  area.setSelectionRange(at, at + lines[line - 1].length - column + 1);
  area.scrollTop = (line - 4) * parseFloat(getComputedStyle(area).lineHeight);
}

function finding({ severity, code, message, hint, file, line, column }) {
  const item = element("li");
  const area = file?.endsWith("agents.yaml") ? field.agents : field.document;
  const place = line === null ? "" : `${area.name} ${line}:${column} `;
  const jump = element("button", `${place}${severity}`, { type: "button", className: severity });
  if (line !== null) jump.onclick = () => select(area, line, column);
  item.append(jump, " ", element("a", code, { href: `reference/rules/${code}.html` }), ` ${message}`);
  if (hint) item.append(element("small", `hint: ${hint}`));
  return item;
}

const show = {
  diagnostics(found) {
    if (!found.length) return [element("p", "No findings.")];
    const list = element("ul", undefined, { className: "playground-findings" });
    list.append(...found.map(finding));
    return [list];
  },
  svg(text) {
    const image = element("img", undefined, { alt: "Drawing of the document", className: "playground-drawing" });
    image.src = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
    image.onload = () => URL.revokeObjectURL(image.src);
    return [image];
  },
  problem: (text) => [element("pre", text, { className: "error" })],
};

function showRun({ status, output, error, cause, pending, elapsed, usage, events }) {
  const facts = [`${status} after ${elapsed} s`];
  if (usage.cost || usage.tokens) facts.push(`${usage.cost} USD, ${usage.tokens} tokens`);
  const parts = [element("p", facts.join(" · "), { className: status === "SUCCEEDED" ? "ok" : "error" })];
  if (error) parts.push(element("pre", [error, cause].filter(Boolean).join(": ")));
  else parts.push(element("pre", JSON.stringify(status === "PAUSED" ? pending : output, null, 2)));
  const table = element("table");
  events.forEach((each) => {
    const row = table.insertRow();
    [`${each.at} s`, each.type, each.path.join(" / ")].forEach((text) => (row.insertCell().textContent = text));
  });
  const details = element("details");
  details.append(element("summary", `${events.length} events`), table);
  return [...parts, details];
}

async function perform(call) {
  const { document, agents, input, profile } = field;
  const inputs = {
    check: { document: document.value, profile: profile.value },
    graph: { document: document.value },
    run: { document: document.value, agents: agents.value, input: input.value, profile: profile.value },
  };
  const answer = await ask(call, inputs[call]);
  const [kind] = Object.keys(answer);
  output.replaceChildren(...(kind in show ? show[kind](answer[kind]) : showRun(answer)));
  output.dataset.shows = call;
  busy("");
}

async function loadExample() {
  busy("Loading the example …");
  const files = { document: "asl.json", agents: "agents.yaml", input: "input.json" };
  for (const [name, ending] of Object.entries(files)) {
    const response = await fetch(`examples/${field.example.value}.${ending}`);
    field[name].value = response.ok ? await response.text() : "";
  }
  output.replaceChildren();
  busy("");
}

buttons.forEach((each) => (each.onclick = () => perform(each.dataset.call)));
stop.onclick = () => {
  worker.terminate();
  worker = undefined;
  output.replaceChildren(element("p", "Stopped."));
  busy("");
};
field.example.onchange = loadExample;
await loadExample();
