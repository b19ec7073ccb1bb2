// The page of the preview: shows a drawing, marks a state, and opens the state that is clicked.

(function () {
  "use strict";
  const editor = acquireVsCodeApi();
  const graph = document.getElementById("graph");
  const message = document.getElementById("message");

  function show(svg, text) {
    message.textContent = text;
    if (svg === "") {
      graph.classList.toggle("outdated", text !== "");
      return;
    }
    const parsed = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
    graph.replaceChildren(document.importNode(parsed, true));
    graph.classList.remove("outdated");
  }

  function select(pointer) {
    for (const each of graph.querySelectorAll(".current")) {
      each.classList.remove("current");
    }
    const state = pointer === "" ? null : graph.querySelector(`[data-pointer="${CSS.escape(pointer)}"]`);
    if (state !== null) {
      state.classList.add("current");
      state.querySelector(".state").scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  }

  window.addEventListener("message", ({ data }) => {
    if (data.type === "show") {
      show(data.svg, data.message);
    } else if (data.type === "select") {
      select(data.pointer);
    }
  });

  graph.addEventListener("click", (event) => {
    event.preventDefault(); // a box is a link in the drawing
    const state = event.target.closest("[data-pointer]");
    if (state !== null) {
      editor.postMessage({ type: "open", pointer: state.dataset.pointer });
    }
  });

  editor.postMessage({ type: "ready" });
})();
