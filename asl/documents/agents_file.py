"""Drafts of agents files: every agent, tool and MCP server of a document, ready to fill in."""

import re
from collections.abc import Iterable, Iterator, Mapping
from os.path import basename
from pathlib import Path
from typing import Final

from asl.agents.model import FAMILIES, PROVIDERS
from asl.core.document import Document
from asl.core.errors import AslError
from asl.core.printable import printable, printable_json
from asl.core.python_imports import check_import
from asl.core.values import Json, compact
from asl.dialects import agent_definitions
from asl.documents.planning import plan
from asl.engine.definitions import AgentDefinition, DefinedServer

__all__ = ["draft_agents_file"]

_HEAD: Final = """\
# Agents, tools and servers of {name}. Fill in what is marked with TODO, and read commands and URLs
# before you run them. This file wins over the document; a model PROVIDER:* is the document's own.
"""
_MODEL: Final = "openai:gpt-5"
"""The model of an agent whose document names none."""
_ANY: Final = "module:function, {command: [...]}, {url: ...} or {model: ...}"
_PLAIN: Final = re.compile(r"[A-Za-z][\w-]*(?:[./][\w-]+)*")
_WORDS: Final = frozenset(("true", "false", "yes", "no", "on", "off", "null", "y", "n"))
_SECRET: Final = re.compile(r"\$\{(?:env|file):")


def draft_agents_file(document: Document) -> str:
    """Return an agents file for a document in any language.

    Args:
        document: The document.

    Returns:
        YAML that lists the agents, resources, tools and MCP servers that the document names, with
        prompts and models as far as the document has them.

    Raises:
        InvalidDocument: The document has errors.
    """
    planned = plan(document)
    defined = agent_definitions(document.composed_value)
    names = [name for name in defined if name in planned.agents]
    names += [name for name in planned.agents if name not in defined]
    folder = Path(document.source.name or "").resolve().parent
    tools, servers = _tools(defined, planned.tools), _servers(defined)
    sections = {
        "agents": _agents(names, defined, folder),
        "resources": _placeholders(planned.resources),
        "tools": _tool_lines(tools),
        "servers": _server_lines(servers),
    }
    lines = [_HEAD.format(name=printable(basename(document.source.name or "the document")))]
    for name, found in sections.items():
        written = [*found]
        if written:
            lines += [f"{name}:", *written, ""]
    if len(lines) == 1:
        lines.append("agents: {}\n")
    return "\n".join(lines)


def _agents(
    names: Iterable[str],
    defined: Mapping[str, AgentDefinition],
    folder: Path,
) -> Iterator[str]:
    for name in names:
        definition = defined.get(name)
        if definition is None or definition.kind == "model":
            yield from _model(name, definition or AgentDefinition(name, ""))
        elif definition.kind == "tool" and definition.tool_calls is not None:
            continue  # a tool below answers
        elif definition.code is not None and _is_there(definition.code, folder):
            yield f"  {_text(name)}: {_text(definition.code)}"
        else:
            yield from _placeholder(name)


def _is_there(code: str, folder: Path) -> bool:
    try:
        check_import(code, (folder,))
    except AslError:
        return False
    return True


def _model(name: str, definition: AgentDefinition) -> Iterator[str]:
    """Yield the lines of a language model."""
    model = definition.model or ""
    provider, colon, own = model.partition(":")
    if not model or " " in model or "{{" in model:
        note = _comment(2, f"TODO: a model; the document names {model or 'none'}")
        provider, own = _MODEL.split(":")
    elif not colon:
        own, note = model, ""
        family = (value for key, value in FAMILIES.items() if model.startswith(key))
        provider = next(family, "openai-chat")
    else:
        known = provider in PROVIDERS
        note = "" if known else _comment(2, "TODO: a provider that pydantic-ai knows")
    variable = re.sub(r"\W", "_", provider.split("-")[0]).upper()
    yield f"  {_text(name)}:"
    yield f"    model: {_text(f'{provider}:{own}')}{note}"
    yield f"    key: ${{env:{variable}_API_KEY}}  # TODO: the key of the provider"
    yield _comment(4, f"url: https://...  # a server of your own, with the model openai-chat:{own}")
    yield from _prompt(definition.prompt)
    if definition.settings:
        yield f"    settings: {_value(definition.settings)}"
    if definition.tools:
        yield _comment(4, f"tools: {', '.join(each.name for each in definition.tools)}")


def _prompt(prompt: str) -> Iterator[str]:
    """Yield the system prompt; one with macros, which the document fills in, is a comment."""
    if not prompt:
        return
    lines = prompt.splitlines()
    if "{{" in prompt or _SECRET.search(prompt):
        yield _comment(4, "The document fills in its prompt:")
        yield from (_comment(4, f"  {line}".rstrip()) for line in lines)
    elif len(lines) > 1 and all(map(_is_block_line, lines)) and lines[0][:1] != " ":
        yield "    system: |-"
        yield from (f"      {line}".rstrip() for line in lines)
    else:
        yield f"    system: {_value(prompt)}"


def _is_block_line(line: str) -> bool:
    return line.isprintable() and line == line.rstrip()


def _tools(
    defined: Mapping[str, AgentDefinition], planned: Mapping[str, list[str]]
) -> dict[str, str]:
    """Return the tools that belong to no server, each with an agent that uses it."""
    found: dict[str, str] = {}
    for definition in defined.values():
        for each in definition.tools:
            if "/" not in each.name:
                found.setdefault(each.name, definition.name)
    for name, states in planned.items():
        if "*" not in name and "/" not in name:
            found.setdefault(name, states[0] if states else "")
    return found


def _tool_lines(tools: Mapping[str, str]) -> Iterator[str]:
    for name, user in tools.items():
        yield _comment(2, f"TODO: what it does, and what performs it for {user}: {_ANY}")
        yield f"  {_text(name)}: {{description: {_value(name)}, agent: {{return: null}}}}"


def _servers(defined: Mapping[str, AgentDefinition]) -> dict[str, DefinedServer]:
    """Return the MCP servers of a document; one with a command or URL wins."""
    found: dict[str, DefinedServer] = {}
    for definition in defined.values():
        for each in definition.servers:
            if each.spec or each.name not in found:
                found[each.name] = each
        for tool in definition.tools:
            server, slash, _ = tool.name.rpartition("/")
            if slash:
                found.setdefault(server, DefinedServer(server, tool.pointer))
    return found


def _server_lines(servers: Mapping[str, DefinedServer]) -> Iterator[str]:
    for name, server in servers.items():
        spec = dict(server.spec)
        if not spec:
            yield _comment(2, "TODO: its URL, or command: [program, argument]")
            spec = {"url": "https://example.invalid/mcp"}
        for field in ("environment", "headers"):
            held = spec.get(field)
            if isinstance(held, dict):
                yield _comment(2, f"TODO: secrets of {field} as ${{env:NAME}}")
                texts = {key: str(value) for key, value in held.items()}
                # A document names no secrets of the person who runs it.
                asked = {key: text for key, text in texts.items() if _SECRET.search(text)}
                for key, text in asked.items():
                    yield _comment(2, f"TODO: {key}, as the document has it: {text}")
                spec[field] = {key: text for key, text in texts.items() if key not in asked}
        yield f"  {_text(name)}: {_value(spec)}"


def _placeholders(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        yield from _placeholder(name)


def _placeholder(name: str) -> Iterator[str]:
    """Yield the lines of a name that nothing is known about."""
    yield _comment(2, f"TODO: {_ANY}")
    yield f"  {_text(name)}: {{return: null}}"


def _comment(indent: int, text: str) -> str:
    """Return a comment that ends with its line, whatever text of the document is in it."""
    return f"{' ' * indent}# {printable(text)}"


def _value(value: Json) -> str:
    """Return JSON, which is YAML, on one line for every reader."""
    return printable_json(compact(value))


def _text(text: str) -> str:
    """Return a text as a scalar of YAML: plain where it cannot be anything else."""
    plain = _PLAIN.fullmatch(text) is not None and text.lower() not in _WORDS
    return text if plain or re.fullmatch(r"[a-z][\w-]*:[\w./-]+", text) else _value(text)
