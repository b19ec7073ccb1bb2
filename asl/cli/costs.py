"""`asl costs`: what executions of a store have spent, and on what."""

from collections.abc import Iterator

import click

from asl.cli import streams
from asl.cli.exits import Exit
from asl.cli.stores import STORE, found, opened
from asl.core.values import Json

__all__ = ["command"]

TABLES = {"byState": "state", "byCategory": "category", "byModel": "model", "byTag": "tag"}
"""The tables of the report, and what their rows are."""


@click.command("costs")
@click.argument("execution", metavar="EXECUTION")
@STORE
@click.option("--json", "as_json", is_flag=True, help="Print the report as an object.")
def command(execution: str, store_file: str | None, as_json: bool) -> Exit:
    """Say what an execution has spent: in all, by state, category, model, tag and attribution."""
    with opened(store_file) as store:
        report = store.result(found(store, execution).name, with_history=False).usage
    if as_json:
        streams.result(streams.as_text(_report(report)))
        return Exit.OK
    for line in _lines(report):
        streams.line(line)
    return Exit.OK


def _report(usage: dict[str, Json]) -> dict[str, Json]:
    """Return the report as the specification has it (8.11)."""
    whole = {"cost": usage["cost"], "tokens": usage["tokens"]}
    rest = {name: value for name, value in usage.items() if name != "cost"}
    return {"total": usage["cost"], "byCategory": {"uncategorized": whole}, **rest}


def _lines(report: dict[str, Json]) -> Iterator[str]:
    rows = [("in all", "", report["cost"], report["tokens"])]
    assumed = report.get("assumed", {"cost": 0, "tokens": 0})
    if any(assumed.values()):
        rows.append(("assumed", "", assumed["cost"], assumed["tokens"]))
    tables = {kind: report.get(name, {}) for name, kind in TABLES.items()}
    tables |= report.get("byAttribution", {})
    for kind, table in tables.items():
        dearest = sorted(table.items(), key=lambda row: (-row[1]["cost"], -row[1]["tokens"]))
        rows += [(kind, name, each["cost"], each["tokens"]) for name, each in dearest]
    wide, long = (max(len(row[column]) for row in rows) for column in (0, 1))
    currency = report.get("currency", "USD")
    for kind, name, cost, tokens in rows:
        yield f"{kind:<{wide}}  {name:<{long}}  {cost:>10.4f} {currency}  {tokens:>9} tokens"
