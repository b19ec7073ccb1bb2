"""A page that starts a workflow, shows what its agent writes, and asks before it is published.

uvicorn app:web
"""

import json
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

import asl.server
from asl.agents.file import load_bindings

FOLDER = Path(__file__).parent
DOCUMENT = (FOLDER / "article.asl.json").read_text(encoding="utf-8")
AGENTS = load_bindings(FOLDER / "article.agents.yaml").agents

service = asl.server.app("articles.db", agents=AGENTS, local=True)
web = FastAPI(lifespan=service.lifespan)
web.mount("/workflows", service)

PAGE = """<!doctype html><title>Article</title>
<style>body { font: 1.1rem sans-serif; margin: 2rem } #text { min-height: 3rem }</style>
<form id=start>Write about <input id=topic value=bridges> <button>Write</button></form>
<p id=text></p> <p id=ask></p>
<script>
const api = "/workflows/api/v1", $ = id => document.getElementById(id)
const post = (path, body) => fetch(api + path, {method: "POST", body: JSON.stringify(body),
  headers: {"Content-Type": "application/json"}}).then(answer => answer.json())
$("start").onsubmit = async event => {
  event.preventDefault(); $("text").textContent = $("ask").textContent = ""
  const run = await post("/executions", {text: DOCUMENT, input: {topic: $("topic").value}})
  const live = new EventSource(`${api}/executions/${run.id}/stream`)
  live.addEventListener("StreamChunk", e => $("text").append(JSON.parse(e.data).details.chunk))
  live.addEventListener("ApprovalRequested", async () => {
    const {requests} = await fetch(`${api}/requests?execution=${run.id}`).then(a => a.json())
    $("ask").replaceChildren("Publish this text? ", ...requests[0].options.map(option => {
      const button = Object.assign(document.createElement("button"), {textContent: option})
      button.onclick = () => post(`/requests/${requests[0].id}/answer`, {approval: option})
      return button
    }))
  })
  live.addEventListener("end", () => { live.close(); $("ask").textContent = "Done." })
}
</script>"""


@web.get("/", response_class=HTMLResponse)
def page() -> str:
    """Show the page; the document is part of it."""
    return PAGE.replace("DOCUMENT", json.dumps(DOCUMENT), 1)
