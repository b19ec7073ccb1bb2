"""Tool policies, beyond their shape (V-TOOLS-*), and what no sandbox can do here."""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Final, NamedTuple

from asl.checks.query_languages import is_jsonata
from asl.checks.workflow import CheckedWorkflow, MachineScope, below
from asl.core.diagnostics import Finding, Severity, did_you_mean
from asl.core.pointers import escape
from asl.core.regex import linear
from asl.core.schemas import schema_faults
from asl.core.values import Json
from asl.expr.templates import SUFFIX
from asl.expr.text_matching import compile_glob
from asl.states.approval_answers import ANYTHING
from asl.states.approval_checks import check_terms
from asl.states.base import Node, has_parameter
from asl.states.blocks.consent import REQUIRE_APPROVAL
from asl.states.blocks.tool_policy import (
    host_pattern,
    overlay,
    parse_image,
    parse_mounts,
    parse_processors,
    path_pattern,
    tool_categories,
)

__all__ = ["check"]

RUNS_CODE: Final = (
    r"(?i:(?:.*[_\-./])?(?:(?:execute|exec|run|eval)[_-](?:code|shell|command|commands|script|python|bash|js)"
    r"|code_interpreter|python_repl|shell|bash|sh|exec|eval|terminal))"
)
"""The names of tools that carry out whatever they are given."""
SCOPED: Final = ("DefaultTools", "ToolCategories")
"""The blocks of an included document that hold for its own states."""
REACH: Final = (
    (
        ("Domains", "Network"),
        ("Allowed", "Denied", "AllowedDomains", "DeniedDomains"),
        host_pattern,
    ),
    (("FileSystem",), ("AllowedPaths", "DeniedPaths"), path_pattern),
)
"""`(objects of a block, their lists of patterns, what reads one)`."""


class _Policy(NamedTuple):
    """A Tools block as written, and combined with that of the document."""

    block: Mapping[str, Json]
    pointer: str
    effective: Mapping[str, Json]
    categories: Mapping[str, list[str]]

    def entries(self, *steps: str) -> Iterator[tuple[str, str]]:
        """Yield the texts of a list, each with its pointer."""
        *around, field = steps
        written = below(self.block, *around).get(field)
        for index, each in enumerate(written if type(written) is list else ()):
            if type(each) is str:
                yield f"{self.pointer}/{'/'.join(steps)}/{index}", each

    def members(self, name: str) -> list[str]:
        """Return the tools of a category, or the tool of this name."""
        found = self.categories.get(name)
        return [each for each in found if type(each) is str] if type(found) is list else [name]

    def allowed_tools(self) -> Iterator[tuple[str, str, str]]:
        """Yield the tools that the block allows: `(pointer, what is written, tool)`."""
        for pointer, name in self.entries("Allowed"):
            for tool in self.members(name):
                yield pointer, name, tool
        for pointer, name in self.entries("AllowedCategories"):
            for tool in self.members(name) if name in self.categories else ():
                yield pointer, name, tool

    def denies(self) -> Callable[[str], bool]:
        """Return a predicate for tools that the block or the document denies."""
        names = [
            tool
            for field in ("Denied", "DeniedCategories")
            for name in _texts(self.effective.get(field))
            for tool in (name, *self.members(name))
        ]
        tests = [compile_glob(each) for each in names]
        return lambda tool: tool in names or any(test(tool) for test in tests)


def check(workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Yield what is wrong with the tool policies of a document and of its states."""
    for policy in _policies(workflow):
        yield from _lists(policy)
        yield from _categories(policy)
        yield from _schemas(policy)
        yield from _rates(policy)
        yield from _reach(policy)
        yield from _consent(policy, workflow)
        for name in ("Before", "After"):
            hooks = below(policy.block, "Hooks")
            if type(hooks.get(name)) is dict and not {"Agent", "Agent.$"} & hooks[name].keys():
                pointer = f"{policy.pointer}/Hooks/{name}"
                yield Finding("V-TOOLS-01", "a hook is an agent", pointer, 'add "Agent"')
        sandbox = policy.block.get("Sandbox")
        if type(sandbox) is dict:
            yield from _sandbox(sandbox, f"{policy.pointer}/Sandbox")


def _sandbox(sandbox: Mapping[str, Json], pointer: str) -> Iterator[Finding]:
    if sandbox.get("Environment") == "docker" and not {"Image", "Image.$"} & sandbox.keys():
        yield Finding("V-TOOLS-01", "'Image' is missing", pointer, 'add "Image"')
    for field, read in (
        ("Image", parse_image),
        ("Mounts", parse_mounts),
        ("CPU", parse_processors),
    ):
        value = sandbox.get(field)
        if value is None or (type(value) is str and is_jsonata(value)):
            continue
        try:
            read(value)
        except ValueError as fault:
            yield Finding("V-TOOLS-01", str(fault), f"{pointer}/{field}")


def _policies(workflow: CheckedWorkflow) -> Iterator[_Policy]:
    for scope in workflow.scopes:
        document, pointer = _home(workflow, scope)
        categories = tool_categories(document)
        default = below(document, "DefaultTools")
        if default and scope.pointer == pointer:
            yield _Policy(default, f"{pointer}/DefaultTools", default, categories)
        for node in scope.nodes:
            block = node.value.get("Tools")
            if type(block) is dict and "Agent" in node.value:
                effective = _overlaid(default, block)
                yield _Policy(block, node.at("Tools"), effective, categories)


def _home(workflow: CheckedWorkflow, scope: MachineScope) -> tuple[Mapping[str, Json], str]:
    """Return what sets the tools of a machine, and its place: an included document or the whole."""
    around: MachineScope | None = scope
    while around is not None:
        if around.is_included and not around.value.keys().isdisjoint(SCOPED):
            return around.value, around.pointer
        around = around.outer
    return workflow.value, ""


def _overlaid(default: Mapping[str, Json], block: Mapping[str, Json]) -> Mapping[str, Json]:
    try:
        return overlay(default, block) or {}
    except TypeError:  # a list that is none: the schema reports it
        return block


def _lists(policy: _Policy) -> Iterator[Finding]:
    if policy.block.get("Allowed") == [] and not policy.block.get("AllowedCategories"):
        yield Finding(
            "V-TOOLS-03",
            "an empty list allows no tool at all",
            f"{policy.pointer}/Allowed",
            "leave the field out to allow every tool that is not denied",
            at_key=True,
        )
    denies, sandboxed = (
        policy.denies(),
        policy.effective.get("Sandboxed", "Sandbox" in policy.effective),
    )
    told = set()
    for pointer, name, tool in policy.allowed_tools():
        if denies(tool):
            what = f"{tool!r}" if tool == name else f"{tool!r} of the category {name!r}"
            yield Finding("V-TOOLS-02", f"{what} is also denied: it may not be used", pointer)
        elif not sandboxed and tool not in told and re.fullmatch(RUNS_CODE, tool):
            told.add(tool)
            yield Finding(
                "V-TOOLS-05",
                f"{tool!r} runs code outside a sandbox",
                pointer,
                'add "Sandboxed": true',
            )


def _categories(policy: _Policy) -> Iterator[Finding]:
    for field in ("AllowedCategories", "DeniedCategories"):
        for pointer, name in policy.entries(field):
            if name not in policy.categories:
                yield Finding(
                    "V-TOOLS-04",
                    f"ToolCategories has no category {name!r}",
                    pointer,
                    did_you_mean(name, policy.categories),
                )


def _rates(policy: _Policy) -> Iterator[Finding]:
    """Yield the rates that say what is done about a limit, and name none."""
    for tool, given in below(policy.block, "RateLimits").items():
        whole = {
            field.removesuffix(SUFFIX) for field in below(policy.effective, "RateLimits", tool)
        }
        if type(given) is dict and whole == {"OnExceed"}:
            yield Finding(
                "V-TOOLS-01",
                f"the rate of {tool!r} has no limit, so its 'OnExceed' has no effect",
                f"{policy.pointer}/RateLimits/{escape(tool)}",
                "add MaxPerMinute or another limit",
                severity=Severity.WARNING,
                at_key=True,
            )


def _consent(policy: _Policy, workflow: CheckedWorkflow) -> Iterator[Finding]:
    """Find terms of `RequireApproval` that do not fit, and tools that it names in vain."""
    written = policy.block.get(REQUIRE_APPROVAL)
    place = f"{policy.pointer}/{REQUIRE_APPROVAL}"
    single = type(written) is dict
    denies = policy.denies()
    for index, rule in enumerate([written] if single else written if type(written) is list else ()):
        here = place if single else f"{place}/{index}"
        tools = [(here, rule)]
        if type(rule) is dict:
            yield from _terms(rule, here, workflow)
            listed = rule.get("Tools")
            entries = enumerate(listed if type(listed) is list else ())
            tools = [(f"{here}/Tools/{number}", each) for number, each in entries]
        for pointer, tool in tools:
            if type(tool) is str and all(map(denies, policy.members(tool))):
                message = f"{tool!r} is denied, so no approval is requested"
                hint = "leave it out of one of them"
                yield Finding("V-TOOLS-02", message, pointer, hint)


def _terms(rule: Mapping[str, Json], pointer: str, workflow: CheckedWorkflow) -> Iterator[Finding]:
    yield from check_terms(Node(rule, pointer, "", frozenset(), workflow.profile))
    options = rule.get("Options")
    if type(options) is list and options and options[0] == ANYTHING:
        yield Finding(
            "V-TOOLS-09",
            "the first option approves, but '*' matches any answer: no answer would approve",
            f"{pointer}/Options/0",
            "put an option such as 'approve' before it",
        )


def _reach(policy: _Policy) -> Iterator[Finding]:
    """Find the patterns that mean no host and no path, or less than they seem to."""
    for blocks, lists, read in REACH:
        for steps in product(blocks, lists):
            patterns = {
                pattern: pointer
                for pointer, pattern in policy.entries(*steps)
                if not (is_jsonata(pattern) or has_parameter(pattern))
            }
            for pattern, pointer in patterns.items():
                try:
                    read(pattern)
                except ValueError as fault:
                    yield Finding("V-TOOLS-01", str(fault), pointer)
                else:
                    if read is path_pattern and _bare(pattern) and f"{pattern}/**" not in patterns:
                        yield Finding(
                            "V-TOOLS-08",
                            f"{pattern!r} matches no file in it if it is a folder",
                            pointer,
                            f"write '{pattern}/**' for a folder with all that is in it",
                        )


def _bare(pattern: str) -> bool:
    """Whether the last name of a path has neither a star nor an ending: it may be a folder."""
    name = pattern.rpartition("/")[2]
    return name in (".", "..") or not (name == "" or "*" in name or "." in name)


def _schemas(policy: _Policy) -> Iterator[Finding]:
    validation = policy.block.get("Validation")
    for tool, given in validation.items() if type(validation) is dict else ():
        for side in ("Input", "Output"):
            schema = below(given, side).get("Schema") if type(given) is dict else None
            if type(schema) is dict:
                pointer = f"{policy.pointer}/Validation/{escape(tool)}/{side}/Schema"
                yield from _schema(schema, pointer)


def _schema(schema: Json, pointer: str) -> Iterator[Finding]:
    yield from schema_faults("V-TOOLS-06", schema, pointer)
    for place, key, text in _keywords(schema, pointer):
        if key == "pattern":
            yield from _pattern(text, place)
        elif not text.startswith("#"):
            message = f"{text!r} is elsewhere, and nothing is fetched"
            yield Finding("V-TOOLS-06", message, place, "write it under $defs")


def _pattern(text: str, pointer: str) -> Iterator[Finding]:
    try:
        linear(text)
    except ValueError:
        message = f"{text!r} is no pattern of RE2, which has no look-around and the like"
        yield Finding("V-TOOLS-06", message, pointer)


def _keywords(schema: Json, pointer: str) -> Iterator[tuple[str, str, str]]:
    """Yield references and patterns: `(pointer, keyword, text)`."""
    if type(schema) is dict:
        for key, value in schema.items():
            here = f"{pointer}/{escape(key)}"
            if key in ("$ref", "$dynamicRef", "pattern") and type(value) is str:
                yield here, key, value
            else:
                yield from _keywords(value, here)
    elif type(schema) is list:
        for index, value in enumerate(schema):
            yield from _keywords(value, f"{pointer}/{index}")


def _texts(value: Json) -> list[str]:
    return [each for each in value if type(each) is str] if type(value) is list else []
