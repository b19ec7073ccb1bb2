"""Screenshots of the projects in `examples`: `python -m tests.example_screenshots [NAME...]`.

Each project runs in a copy; Chromium takes a picture of its page, its graph or its terminal.
"""

import html
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, Final

import asl.server
from asl.service.server import serving
from tests.markdown import write_programs
from tests.memories.conftest import free_port, server
from tests.server.browser import any_page, browser_page
from tests.temporal.servers import find_binary

ROOT: Final = Path(__file__).resolve().parents[1]
EXAMPLES: Final = ROOT / "examples"
TERMINAL: Final = """<!doctype html><style>
body {{ margin: 0; width: max-content; background: #1e2228 }}
pre {{ margin: 0; padding: 14px 18px; color: #d8dee6; font: 13px/1.45 monospace;
  white-space: pre-wrap; width: 104ch }}
b {{ color: #8fd18f }}
</style><pre>{text}</pre>"""


TIMELINE: Final = {"x": 276, "y": 930, "width": 808, "height": 340}
"""Where the page of Temporal has the timeline of a workflow."""


def run(command: str) -> str:
    """Return what a command prints in the current folder."""
    done = subprocess.run(
        ["sh", "-c", command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def take_terminal(target: Path, *commands: str) -> None:
    """Take a picture of commands and what they print."""
    parts = [f"<b>$ {html.escape(each)}</b>\n{html.escape(run(each))}" for each in commands]
    take_html(target, TERMINAL.format(text="".join(parts)), "pre")


def take_html(target: Path, text: str, selector: str) -> None:
    """Take a picture of an element of a page."""
    with browser_page() as page:
        page.set_content(text)
        page.locator(selector).screenshot(path=target)


def take_execution(target: Path, name: str) -> None:
    """Take a picture of the graph of an execution in the store `runs.db`."""
    with (
        serving(asl.server.app("runs.db", local=True)) as url,
        browser_page(viewport={"width": 1000, "height": 800}) as page,
    ):
        page.goto(f"{url}/ui/executions/{name}")
        drawing = page.locator(".graph-panel svg").first
        drawing.evaluate("each => { each.parentElement.style.maxHeight = 'none' }")
        drawing.screenshot(path=target)


def order_saga(target: Path) -> None:
    """Take the page of an order whose card was declined."""
    port = free_port()
    program = str(ROOT / "tests" / "aws" / "moto_server.py")
    with server([sys.executable, program, str(port)], "Running on", Path()):
        url = f"http://127.0.0.1:{port}"
        order = '{"item": "lamp", "quantity": 2, "card": "expired", "depot": "north"}'
        run(f"python shop.py create {url}")
        run(
            f"asl run order.asl.json --agents order.agents.yaml --aws-endpoint {url}"
            f" --input '{order}' --store runs.db --name order-17"
        )
    take_execution(target, "order-17")


def article_approval(target: Path) -> None:
    """Take the page with a finished text and its buttons."""
    spec = spec_from_file_location("article_app", "app.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = module_from_spec(spec)
    spec.loader.exec_module(module)
    with (
        serving(module.web) as url,
        browser_page(viewport={"width": 620, "height": 220}) as page,
    ):
        page.goto(url)
        page.fill("#topic", "lighthouses")
        page.click("text=Write")
        page.locator("#ask", has_text="publish").wait_for()
        page.screenshot(path=target)


def nightly_batch(target: Path) -> None:
    """Take the run, its files and the schedule."""
    take_terminal(
        target,
        "asl run billing.asl.json --agents billing.agents.yaml --bucket meters=data",
        "cat data/bills/*/SUCCEEDED_0.jsonl",
        "grep -o 'Di: [^\"\\\\]*' data/bills/*/FAILED_0.jsonl | head -1",
        "asl schedules add nightly 'cron(30 2 * * ? *)' billing.asl.json --timezone Europe/Berlin"
        " --start 2030-03-30 --store runs.db",
        "asl schedules next nightly -n 3 --store runs.db",
    )


def chat(target: Path) -> None:
    """Take two conversations with the same user."""
    take_terminal(
        target,
        "printf 'I am Ada and I like tea\\nWhat is new?\\nbye\\n' | python chat.py ada",
        "printf 'Who am I?\\nbye\\n' | python chat.py ada",
    )


def debate(target: Path) -> None:
    """Take the trace of a debate."""
    take_terminal(
        target,
        "asl run decision.asl.json --agents decision.agents.yaml"
        ' --input \'{"proposal": "move to Postgres"}\' --trace 2>&1 | grep -v output | head -10',
        "asl plan decision.asl.json",
    )


def from_codemie(target: Path) -> None:
    """Take the graph of the converted document."""
    take_html(target, run("asl graph newsletter.asl.json --format svg"), "svg")


def from_contenox(target: Path) -> None:
    """Take tasks next to their states."""
    command = "asl convert support.json --to asl --explain"
    take_terminal(target, f"COLUMNS=104 {command} | head -28")


def from_flujo(target: Path) -> None:
    """Take the page of an execution that an editor has answered."""
    given = '{"input": "", "context": {"subject": "tides"}}'
    agents = "--agents report.agents.yaml --store runs.db"
    run(f"asl run report.asl.json {agents} --input '{given}' --name tides")
    run("asl approve tides --option yes --store runs.db")
    run(f"asl resume tides {agents}")
    take_execution(target, "tides")


def temporal(target: Path) -> None:
    """Take the page of Temporal for an execution."""
    port, page_port = free_port(), free_port()
    options = ["--port", str(port), "--ui-port", str(page_port), "--log-level", "error"]
    store = f"--store 'temporal://127.0.0.1:{port}/default?queue=signup'"
    agents = "--agents signup.agents.yaml"
    command = [find_binary("temporal"), "server", "start-dev", *options]
    with server(command, "Temporal Server:", Path()):
        run(f'asl run signup.asl.json {agents} --input \'{{"name": "ada"}}\' --name ada {store}')
        run(f"asl approve ada --option open {store}")
        run(f"asl resume ada {agents} {store}")
        with any_page(viewport={"width": 1100, "height": 1500}) as page:
            page.goto(f"http://127.0.0.1:{page_port}/namespaces/default/workflows/ada")
            page.wait_for_timeout(3000)
            page.screenshot(path=target, clip=TIMELINE)


def mcp_server(target: Path) -> None:
    """Take what the client prints."""
    take_terminal(target, "python client.py")


SCREENSHOTS: Final[tuple[Callable[[Path], None], ...]] = (
    *(order_saga, article_approval, nightly_batch, chat, debate),
    *(from_codemie, from_contenox, from_flujo, temporal, mcp_server),
)


def main(names: list[str]) -> None:
    """Take the screenshots of the named projects, by default of all."""
    os.environ["PYTHONPATH"] = str(ROOT)
    for take in SCREENSHOTS:
        name = take.__name__.replace("_", "-")
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(EXAMPLES / name, f"{folder}/{name}")
            os.environ["PATH"] = write_programs(Path(folder, "bin"))
            os.chdir(f"{folder}/{name}")
            take(EXAMPLES / name / "screenshot.png")
            os.chdir(ROOT)
        print(name, (EXAMPLES / name / "screenshot.png").stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1:])
