"use strict";

// Times in the zone of the reader.
function showTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]:not([title])")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.valueOf())) continue;
    time.title = time.textContent;
    const part = (options) => new Intl.DateTimeFormat("sv-SE", options).format(moment);
    time.textContent = part({ dateStyle: "short" }) + " " + part({ timeStyle: "medium" });
  }
}

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
});
document.addEventListener("htmx:after:swap", () => showTimes(document));
