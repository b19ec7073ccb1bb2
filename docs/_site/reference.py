"""The generated pages of the site: rules, fields, command options and the Python API."""

import html
import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

import asl
from asl.cli.main import SECTIONS, cli
from asl.states import STATE_TYPES

__all__ = ["reference_pages", "split_rules"]

ROOT = Path(__file__).resolve().parents[2]
SCHEMAS = ROOT / "schemas"
URN = "urn:asl:schema:"
GROUPS = {"": "Documents", "states": "States", "blocks": "Blocks", "agents": "Agents files"}
"""Titles of the folders of schemas, in the order of their index."""


def reference_pages() -> Iterator[tuple[str, str]]:
    """Yield path and Markdown of each generated page."""
    yield from split_rules((ROOT / "docs" / "rules.md").read_text(encoding="utf-8")).items()
    yield from _field_pages()
    yield "reference/commands.md", "\n".join(_command_lines())
    yield from _api_pages()


# Rules -------------------------------------------------------------------------------------------


def split_rules(text: str) -> dict[str, str]:
    """Return a page for each rule, and `rules.md` with a table of links in place of the rules."""
    pages, overview, family = {}, [], ""
    for part in re.split(r"^(?=#{2,3} )", text, flags=re.MULTILINE):
        heading, _, body = part.partition("\n")
        rule = re.fullmatch(r"### (\S+): (.*)", heading)
        if rule is None:
            family = heading.removeprefix("## ")
            overview.append(f"{part.rstrip()}\n")
            if part.startswith("## "):
                overview.append("| rule | | severity |\n| --- | --- | --- |")
            continue
        code, title = rule.groups()
        (severity,) = re.findall(r"^\*(.*)\.\*$", body, re.MULTILINE)[:1]
        group = re.sub(r"[^\w\- ]", "", family.lower()).replace(" ", "-")
        pages[f"reference/rules/{code}.md"] = (
            f"# {code}: {title}\n{body}\n`asl explain {code}` prints this text. "
            f"Other rules: [{family}](../../rules.md#{group}).\n"
        )
        overview.append(f"| [{code}](reference/rules/{code}.md) | {title} | {severity} |")
    pages["rules.md"] = re.sub(r"(\|)\n(?=## )", r"\1\n\n", "\n".join(overview)) + "\n"
    return pages


# Fields ------------------------------------------------------------------------------------------


def _field_pages() -> Iterator[tuple[str, str]]:
    index = ["# Fields\n", "Every field of documents and agents files, from the JSON Schemas.\n"]
    for folder, title in GROUPS.items():
        index.append(f"## {title}\n")
        for path in sorted((SCHEMAS / folder).glob("*.schema.json")):
            schema = json.loads(path.read_text(encoding="utf-8"))
            page = _page_of(schema["$id"])
            index.append(f"* [{schema['title']}]({page}): {_plain(schema['description'])}")
            yield f"reference/fields/{page}", _field_page(path, schema)
        index.append("")
    yield "reference/fields/index.md", "\n".join(index)


def _page_of(urn: str) -> str:
    """Return the name of the page of a schema: `states-Wait.md`."""
    return urn.removeprefix(URN).partition("#")[0].replace(":", "-") + ".md"


def _field_page(path: Path, schema: Mapping[str, Any]) -> str:
    source = f"../../schemas/{path.relative_to(SCHEMAS).as_posix()}"
    lines = [f"# {schema['title']}\n", f"{_plain(schema['description'])}\n"]
    name = path.name.partition(".")[0]
    if path.parent.name == "states":
        lines.append(f"[{name}](../../states/{name.lower()}.md) explains its use.\n")
        lines.append(_state_facts(name))
    fields = {**schema.get("properties", {}), **schema.get("$defs", {})}
    if fields:
        lines.append("## Fields\n\n| field | type | about |\n| --- | --- | --- |")
        lines.extend(_rows(fields, schema.get("required", ())))
    lines.append(f"\n[JSON Schema]({source}): `{schema['$id']}`\n")
    return "\n".join(lines)


def _state_facts(name: str) -> str:
    """Return what the descriptor of a state type says about it."""
    kind = STATE_TYPES[name]
    facts = {
        "a type of Amazon States Language": kind.aws,
        "takes `Retry` and `Catch`": kind.effect,
        "takes `Next` or `End`": kind.takes_next,
        "its rules choose the next state": kind.decides,
        "ends its state machine": kind.terminal,
        "contains state machines": bool(kind.machines),
        "runs them concurrently": kind.concurrent,
        "takes a budget of its own": kind.budgeted,
    }
    return _sentence("; ".join(fact for fact, holds in facts.items() if holds)) + "\n"


def _rows(fields: Mapping[str, Any], required: Sequence[str], prefix: str = "") -> Iterator[str]:
    """Yield a row for each field, followed by those of the fields inside it."""
    for name, field in fields.items():
        marks = [
            *(["required"] if name in required else []),
            *(["not in Amazon States Language"] if field.get("x-native") else []),
            *([f"{field['x-language']} only"] if "x-language" in field else []),
        ]
        rule = field.get("x-rule")
        about = [
            _plain(field.get("description", "")),
            f"*{_sentence(', '.join(marks))}*" if marks else "",
            f"[{rule}](../rules/{rule}.md)" if rule else "",
        ]
        row = (f"`{prefix}{name}`", _type_of(field), " ".join(filter(None, about)))
        yield f"| {' | '.join(row)} |"
        inner = field if "properties" in field else field.get("items")
        if isinstance(inner, dict) and "properties" in inner:
            within = f"{prefix}{name}{'' if inner is field else '[]'}."
            yield from _rows(inner["properties"], inner.get("required", ()), within)


def _type_of(field: Mapping[str, Any]) -> str:
    """Return the type of a field in a few words, with a link to the schema it refers to."""
    if "$ref" in field:
        target = field["$ref"]
        name = target.rpartition("/")[2].rpartition(":")[2]
        return f"[{name}]({_page_of(target)})"
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    if "enum" in field:
        return ", ".join(f"`{json.dumps(each)}`" for each in field["enum"])
    for several in ("oneOf", "anyOf"):
        if several in field:
            return " or ".join(dict.fromkeys(map(_type_of, field[several])))
    types = field.get("type", "any")
    words = " or ".join([types] if isinstance(types, str) else types)
    items = field.get("items")
    if isinstance(items, dict) and ("$ref" in items or "enum" in items or "type" in items):
        return f"{words} of {_type_of(items)}"
    return words


# Commands ----------------------------------------------------------------------------------------


def _command_lines() -> Iterator[str]:
    yield "# Commands and options\n"
    yield "What `--help` prints, for every command. [Command line](../cli.md) explains their use.\n"
    context = click.Context(cli, info_name="asl", max_content_width=100)
    for title, rows in SECTIONS.items():
        yield f"## {title}\n"
        for name in rows:
            command = cli.get_command(context, name)
            assert command is not None
            yield from _command(command, click.Context(command, context, f"asl {name}"))


def _command(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"### {context.info_name}\n"
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```text\n{context.info_name} {usage}\n```\n"
    for paragraph in inspect.cleandoc((command.help or "").partition("\f")[0]).split("\n\n"):
        if paragraph.startswith("\b"):
            yield f"```text\n{inspect.cleandoc(paragraph[1:])}\n```\n"
        else:
            yield f"{_plain(paragraph)}\n"
    records = [each.get_help_record(context) for each in command.get_params(context)]
    yield "| option | |\n| --- | --- |"
    yield from (f"| {_code(each[0])} | {_plain(each[1])} |" for each in records if each and each[1])
    yield ""


# Python ------------------------------------------------------------------------------------------


def _api_pages() -> Iterator[tuple[str, str]]:
    names: dict[str, list[str]] = {"functions": [], "classes": [], "exceptions": []}
    for name in asl.__all__:
        value = getattr(asl, name)
        if inspect.isfunction(value):
            names["functions"].append(name)
        else:
            failed = inspect.isclass(value) and issubclass(value, Exception)
            names["exceptions" if failed else "classes"].append(name)
    for kind, listed in names.items():
        lines = [f"# {kind.capitalize()}\n", "[Python](../python.md) explains their use.\n"]
        lines.extend(f"::: asl.{name}\n" for name in listed)
        yield f"reference/{kind}.md", "\n".join(lines)


# Text --------------------------------------------------------------------------------------------


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _plain(text: str) -> str:
    """Return text in which Markdown finds no markup but code, for a paragraph or a cell."""
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    parts[::2] = [re.sub(r"([\\*_<\[\]|])", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [_code(part[1:-1]) for part in parts[1::2]]
    return "".join(parts)


def _code(text: str) -> str:
    """Return text as code; a cell of a table may not hold a bar, where lines may end."""
    return f"<code>{html.escape(text).replace('|', '&#124;<wbr>')}</code>"
