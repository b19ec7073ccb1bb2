"""A page that starts a workflow, shows what its agent writes, and asks before it is published.

    pip install 'agent-state-language[server]'
    uvicorn app:web
"""

import asyncio
import json
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

import asl
import asl.server


async def write(parameters: dict, call: asl.Call) -> dict:
    """Stand for a model: it answers word by word."""
    for word in f"Dear reader, this is about {parameters['topic']}.".split():
        call.report_chunk(f"{word} ")
        await asyncio.sleep(0.2)
    return {"text": f"A text about {parameters['topic']}."}


service = asl.server.app("articles.db", agents={"Writer": write}, local=True)
web = FastAPI(lifespan=service.lifespan)
web.mount("/workflows", service)
DOCUMENT = Path(__file__).with_name("article.asl.json").read_text(encoding="utf-8")

PAGE = """<!doctype html><title>Article</title>
<form id=start><input id=topic value=bridges> <button>Write</button></form>
<p id=text></p> <p id=ask></p>
<script>
const api = "/workflows/api/v1", $ = id => document.getElementById(id)
const post = (path, body) => fetch(api + path, {method: "POST", body: JSON.stringify(body),
  headers: {"Content-Type": "application/json"}}).then(answer => answer.json())
$("start").onsubmit = async event => {
  event.preventDefault(); $("text").textContent = ""
  const run = await post("/executions", {text: DOCUMENT, input: {topic: $("topic").value}})
  const live = new EventSource(`${api}/executions/${run.id}/stream`)
  live.addEventListener("StreamChunk", e => $("text").append(JSON.parse(e.data).details.chunk))
  live.addEventListener("ApprovalRequested", async () => {
    const {requests} = await fetch(`${api}/requests?execution=${run.id}`).then(a => a.json())
    $("ask").replaceChildren(...requests[0].options.map(option => {
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
