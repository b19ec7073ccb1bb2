"""Bindings that an execution requires: recorded when it starts, checked when it continues.

A name counts if a document of the run may use it. Without a former binding, an execution would take
its error paths because of the caller's mistake, so it is refused before it runs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from asl.bindings import Bindings, ResolvedBindings
from asl.core.errors import StateError
from asl.core.values import Json
from asl.executions.errors import BindingsMissing
from asl.program import Program
from asl.states.calls import Target, is_function

__all__ = ["Names", "merge_names", "require_bindings", "used_names"]

Names: TypeAlias = dict[str, list[str]]
"""Bound names by kind (`agents`, `resources`, ...), sorted."""

AGENT_FIELDS = frozenset(
    {"Agent", "Agents", "Arbiter", "TieBreaker", "Using", "Validator", "Check"}
)
"""Fields that name agents."""
_FIELDS_OF: Mapping[str, frozenset[str]] = {
    "tools": AGENT_FIELDS,
    "memory": AGENT_FIELDS | {"Memory", "Cache"},
    "buckets": frozenset({"ItemReader", "ResultWriter"}),
    "pools": frozenset({"Pool"}),
    "prices": frozenset({"Budget"}),
    "checkpoints": frozenset({"Storage"}),
}
"""Fields without which a document uses nothing of a kind."""
OWN_STORAGE = "file"
"""Checkpoint storage that every store has."""
FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:"
"""Prefix of the ARN of a function that documents may shorten to its name."""
_STARTS = (":startExecution", ":startSyncExecution")


class _Text(NamedTuple):
    """The fields and texts of documents."""

    fields: frozenset[str]
    """Names of fields, without the `.$` of computed ones."""
    computed: frozenset[str]
    """Those with a computed value."""
    texts: frozenset[str]
    values: Mapping[str, frozenset[str]]
    """Values of `Resource`, `FunctionName` and `WorkflowId`."""


_VALUES = ("Resource", "FunctionName", "WorkflowId")


def _read(documents: Iterable[Json]) -> _Text:
    """Collect the fields and texts of documents."""
    fields, computed, texts = set[str](), set[str](), set[str]()
    values: dict[str, set[str]] = {field: set() for field in _VALUES}
    todo: list[tuple[str, Json]] = [("", document) for document in documents]
    while todo:
        field, value = todo.pop()
        if isinstance(value, Mapping):
            for key, member in value.items():
                name = key.removesuffix(".$")
                fields.add(name)
                if name is not key:
                    computed.add(name)
                todo.append((name, member))
        elif type(value) is list:
            todo.extend((field, each) for each in value)
        elif type(value) is str:
            texts.add(value)
            if value.startswith("{%"):
                computed.add(field)
            if field in values:
                values[field].add(value)
    found = {field: frozenset(each) for field, each in values.items()}
    return _Text(frozenset(fields), frozenset(computed), frozenset(texts), found)


def used_names(program: Program, bindings: Bindings, bound: ResolvedBindings) -> Names:
    """Return the bound names that *program*, and the workflows that it may start, may use."""
    text, names = _of_run(program, bound), _bound_names(bindings, bound)
    found = {
        kind: sorted(name for name in each_kind if _uses(text, kind, name))
        for kind, each_kind in names.items()
    }
    named = (text.values["Resource"] | text.values["FunctionName"]).difference(found["resources"])
    functions = names["resources"]
    found["resources"] += [
        name for name in sorted(named) if _is_bound("resources", name, bound, functions)
    ]
    return {kind: names for kind, names in found.items() if names}


def _of_run(program: Program, bound: ResolvedBindings, state: str | None = None) -> _Text:
    """Return the text of all documents of a run; of the first one from a *state* on."""
    workflows = bound.services.workflows or {}
    document = program.document if state is None else _ahead(program.document, state)
    return _read([document, *(each.document for each in workflows.values())])


def _ahead(document: Mapping[str, Json], state: str) -> Json:
    """Return a document without the states that no transition reaches from *state* on."""
    states, reached, todo = document["States"], set[str](), [state]
    while todo:
        name = todo.pop()
        if name in states and name not in reached:
            reached.add(name)
            todo.extend(_read([states[name]]).texts)  # this includes names of states
    return {**document, "States": {name: states[name] for name in reached}}


def _bound_names(bindings: Bindings, bound: ResolvedBindings) -> dict[str, Collection[str]]:
    """Return the bound names by kind; of resources only functions."""
    services = bound.services
    return {
        "agents": bindings.get("agents") or (),
        "resources": [name for name in bindings.get("resources") or () if is_function(name)],
        "mocks": bindings.get("mocks") or (),
        "tools": bindings.get("tools") or (),
        "workflows": services.workflows or (),
        "memory": services.memory,
        "buckets": bound.buckets,
        "pools": services.pools,
        "prices": bindings.get("prices") or (),
        "checkpoints": services.storages.keys() - {OWN_STORAGE},
    }


def _uses(text: _Text, kind: str, name: str) -> bool:
    """Return whether documents may use a bound name; documents with computed names may use any."""
    if kind == "agents":
        return name in text.texts or bool(AGENT_FIELDS & text.computed)
    if kind == "mocks":
        return name in text.fields
    if kind == "resources":
        named = text.values["Resource"] | text.values["FunctionName"]
        return name in named or "FunctionName" in text.computed
    if kind == "workflows":
        starts = any(start in each for each in text.values["Resource"] for start in _STARTS)
        return starts or name in text.values["WorkflowId"] or "WorkflowId" in text.computed
    return bool(_FIELDS_OF[kind] & text.fields)


def _is_bound(kind: str, name: str, bound: ResolvedBindings, names: Collection[str]) -> bool:
    """Return whether a name is bound; a resource also by a pattern, a function by its short
    name.
    """
    if name in names or kind != "resources":
        return name in names
    forms = [name]
    if not name.startswith("arn:"):
        function = name.rpartition("function:")[2].partition(":")[0]
        forms += [each for each in names if each.endswith(f":function:{function}")]
        forms.append(FUNCTION + function)
    for form in forms:
        try:
            bound.find(Target("resource", form, "", is_helper=True))
        except StateError:
            continue
        return True
    return False


def merge_names(recorded: Names, used: Names) -> Names:
    """Return the names of both."""
    kinds = sorted({*recorded, *used})
    return {kind: sorted({*recorded.get(kind, ()), *used.get(kind, ())}) for kind in kinds}


def require_bindings(
    name: str,
    recorded: Names,
    program: Program,
    bindings: Bindings,
    bound: ResolvedBindings,
    state: str | None = None,
) -> None:
    """Check that the bindings of earlier runs of an execution are present.

    Args:
        name: The execution.
        recorded: Names that it has used so far.
        program: Its program.
        bindings: The present bindings.
        bound: The present bindings, resolved for the run.
        state: State at which it restarts, None if it continues.

    Raises:
        BindingsMissing: A name that a document of the run may use is no longer bound.
    """
    names = _bound_names(bindings, bound)
    absent = {
        kind: [each for each in each_kind if not _is_bound(kind, each, bound, names[kind])]
        for kind, each_kind in recorded.items()
    }
    if not any(absent.values()):
        return
    if not absent.get("workflows"):  # the names used by a missing workflow are unknown
        text = _of_run(program, bound, state)
        absent = {
            kind: [each for each in lost if _uses(text, kind, each)]
            for kind, lost in absent.items()
        }
    missing = {kind: lost for kind, lost in absent.items() if lost}
    if missing:
        raise BindingsMissing(name, missing)
