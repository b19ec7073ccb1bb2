"""Reader of chains: a document of Agent State Language with its source positions."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from asl.core.diagnostics import Finding, raise_for_errors
from asl.core.document import Document, parse_source
from asl.core.errors import AslError
from asl.core.source import DEFAULT_LIMITS, Limits, Source
from asl.core.values import Json
from asl.dialects.contenox import rules
from asl.dialects.contenox.chain import Chain
from asl.dialects.contenox.functions.chain_data import JSON_PATH
from asl.dialects.contenox.machine import ContenoxMachine, build_machine
from asl.dialects.contenox.schema import SCHEMA
from asl.dialects.foreign_documents import document

__all__ = ["ENGINE", "METADATA", "PROFILES", "profile_of", "read"]

METADATA: Final = "Contenox"
"""The member of the document's `Metadata` that holds what the language cannot say."""
PROFILES: Final = ("seed", "union", "runtime")
"""How chains are read: as documented, as all engines together do, as the engine of today does."""
ENGINE: Final = "2026-06"
"""The version of the engine that the profile `runtime` is, by its month."""
_SEED: Final = ("not_equals", "not_contains", "range")
_SEED_TOKENS: Final = ("stop", "length", "error", "failed")
_ENGINE_TOKENS: Final = ("tool_call", "executed")


def read(
    what: Source | Document,
    limits: Limits = DEFAULT_LIMITS,
    *,
    profile: str | None = None,
    external_exits: bool = False,
    approve: tuple[str, ...] = (),
) -> Document:
    """Read a chain as a document; raises InvalidDocument with all that is wrong with it.

    Without a *profile* its shape decides. With *external_exits* a target like `__next__` ends the
    chain. *approve* are the tools, or their providers, about whose calls people are asked.
    """
    if profile is not None and profile not in PROFILES:
        raise AslError(f"no profile {profile!r} of chains; there are {', '.join(PROFILES)}")
    foreign = what if isinstance(what, Document) else parse_source(what, limits)
    foreign = replace(foreign, dialect="contenox")
    findings = SCHEMA.check(foreign.value)
    raise_for_errors(foreign, findings)
    chain = Chain(foreign.value, profile or profile_of(foreign.value))
    findings += rules.of_names(chain)
    raise_for_errors(foreign, findings)
    findings += rules.of_tasks(chain, external_exits=external_exits)
    raise_for_errors(foreign, findings)
    made = build_machine(chain, approve)
    findings += made.findings
    findings += _unreachable(chain, made)
    findings += _endless(made)
    said: dict[str, Json] = {"external_exits": True} if external_exits else {}
    if approve:
        said["approve"] = [*approve]
    return document(foreign, _document(chain, made, said), made.origins, findings)


def profile_of(value: Mapping[str, Any]) -> str:
    """Return the profile that a chain is written for: it names its engine, or by its shape."""
    if value.get("x-engine") == ENGINE:
        return "runtime"
    tasks = value["tasks"]
    branches = [
        branch
        for task in tasks
        for branch in ((task.get("transition") or {}).get("branches") or ())
    ]
    said = {branch.get("when") for branch in branches if branch.get("operator") == "equals"}
    if any(task.get("handler") == "route" or "tools" in task for task in tasks):
        return "union"
    if any("edge" in branch for branch in branches) or said & {*_ENGINE_TOKENS}:
        return "union"
    composes = (str((branch.get("compose") or {}).get("strategy")) for branch in branches)
    if any(branch.get("operator") in _SEED for branch in branches) or said & {*_SEED_TOKENS}:
        return "seed"
    return "seed" if any(each.startswith(JSON_PATH) for each in composes) else "union"


def _unreachable(chain: Chain, made: ContenoxMachine) -> Iterator[Finding]:
    for name, task in chain.tasks.items():
        if name not in made.reached:
            message = f"no transition leads to {name!r}, so it is left out"
            hint = "let a branch lead to it, or remove it"
            yield Finding("CX-UNREACHABLE", message, f"{task.pointer}/id", hint)


def _endless(made: ContenoxMachine) -> Iterator[Finding]:
    states = made.machine["States"]
    assert isinstance(states, dict)
    if not any(each["Type"] in ("Succeed", "Fail") for each in states.values()):
        message = "no path through this chain ends"
        yield Finding("CX-NO-END", message, "/tasks", "let a branch lead to 'end'", at_key=True)


def _document(chain: Chain, made: ContenoxMachine, reading: Mapping[str, Json]) -> dict[str, Json]:
    comment = chain.value.get("description")
    value: dict[str, Json] = {"Comment": comment} if comment else {}
    kept: dict[str, Json] = {"profile": chain.profile, "chain": chain.value}
    if reading:
        kept["reading"] = {**reading}
    return {**value, "QueryLanguage": "JSONata", **made.machine, "Metadata": {METADATA: kept}}
