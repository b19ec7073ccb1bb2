"use strict";

// Times in the zone of the reader.
function showTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([title])")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.valueOf())) continue;
    const part = (options) => new Intl.DateTimeFormat("sv-SE", options).format(moment);
    time.title = time.textContent;
    time.textContent = `${part({ dateStyle: "short" })} ${part({ timeStyle: "medium" })}`;
  }
}

// The graph has the statuses of the table of states.
function colourGraph() {
  const rows = new Map();
  for (const row of document.querySelectorAll("tr[data-pointer]")) rows.set(row.dataset.pointer, row);
  for (const node of document.querySelectorAll(".graph [data-pointer]")) {
    const row = rows.get(node.dataset.pointer);
    if (row === undefined || node.dataset.status === row.dataset.status) continue;
    node.dataset.status = row.dataset.status;
    node.querySelector(":scope > a > .note > text").textContent = row.dataset.note;
  }
}

// The data beside the graph are fetched again when what they belong to has another status.
function refreshPanel() {
  const panel = document.querySelector("[data-panel]");
  if (panel === null) return;
  const source = panel.dataset.panel === ""
    ? document.querySelector("h1 .status")
    : [...document.querySelectorAll("tr[data-pointer]")]
      .find((row) => row.dataset.pointer === panel.dataset.panel);
  if (source === undefined || source === null) return;
  if (source.dataset.status === panel.dataset.status) return;
  panel.dataset.status = source.dataset.status;
  htmx.ajax("GET", `${location.pathname}${location.search}`, { target: "#state" });
}

// Events of a running execution: what changes is fetched, also the words of its agents.
function follow(element) {
  const source = new EventSource(element.dataset.stream);
  const tell = (name) => document.body.dispatchEvent(new CustomEvent(name));
  const news = () => tell("asl:news");
  source.onmessage = news;
  source.addEventListener("words", () => tell("asl:words"));
  source.addEventListener("end", () => {
    source.close();
    news();
    setTimeout(news, 1000);
  });
}

// States and events are shown beside the graph and the table.
function showPart(link, target, event) {
  const area = document.querySelector(target);
  if (area === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const address = new URL(link.href.baseVal ?? link.href, location.href);
  address.hash = "";
  htmx.ajax("GET", address.href, { target, swap: "innerHTML" });
  if (target !== "#state") return;
  history.replaceState(null, "", `${address.pathname}${address.search}`);
  for (const each of document.querySelectorAll(".graph [data-chosen]")) delete each.dataset.chosen;
  const chosen = address.searchParams.get("state");
  for (const each of document.querySelectorAll(".graph [data-pointer]")) {
    if (each.dataset.pointer === chosen) each.dataset.chosen = "";
  }
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a");
  if (link === null) {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
    return;
  }
  if (link.matches("[data-event]")) {
    for (const each of document.querySelectorAll(".event.chosen")) each.classList.remove("chosen");
    link.classList.add("chosen");
    showPart(link, "#event", event);
  } else if (link.matches(".graph a, .bar, #states a, [data-part], .failure .what a")) {
    showPart(link, "#state", event);
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
});

// Filters apply when a choice is made.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
});

document.addEventListener("DOMContentLoaded", () => {
  showTimes(document);
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  for (const each of document.querySelectorAll("[data-zone]")) {
    each.textContent = `Times are in ${zone}.`;
  }
  for (const each of document.querySelectorAll("[data-script]")) each.hidden = false;
  for (const each of document.querySelectorAll("[data-stream]")) follow(each);
});
document.addEventListener("htmx:after:swap", () => {
  showTimes(document);
  colourGraph();
  refreshPanel();
});

// Keys of the inbox: j and k go through the requests, numbers decide, c comments.
function neighbour(step) {
  const links = [...document.querySelectorAll("[data-request]")];
  const focused = links.indexOf(document.activeElement);
  const shown = links.findIndex((each) => each.hasAttribute("aria-current"));
  const at = focused >= 0 ? focused : shown;
  return links[Math.min(Math.max(at + step, 0), links.length - 1)];
}

document.addEventListener("keydown", (event) => {
  if (document.querySelector(".inbox") === null) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input:not([type=checkbox], [type=radio]), textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "j" || event.key === "k") {
    neighbour(event.key === "j" ? 1 : -1)?.focus();
  } else if (event.key === "c") {
    event.preventDefault();
    document.querySelector("[data-answer] [name=comment]")?.focus();
  } else if (/^[1-9]$/.test(event.key)) {
    const choices = document.querySelectorAll("[data-choice]");
    choices[Number(event.key) - 1]?.click();
  }
});

// JSON in forms is checked while it is written.
document.addEventListener("input", (event) => {
  if (!event.target.matches("textarea[data-json]")) return;
  let problem = "";
  try {
    if (event.target.value.trim() !== "") JSON.parse(event.target.value);
  } catch (error) {
    problem = `This is not JSON: ${error.message}`;
  }
  event.target.setCustomValidity(problem);
});
