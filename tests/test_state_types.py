"""State types: one descriptor each, no list of their names beside it, and a seam for more."""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import Draft202012Validator

import asl
from asl.cli import reference
from asl.core.diagnostics import Finding, Severity
from asl.core.errors import AslError
from asl.program import Step
from asl.states import STATE_TYPES
from asl.states.base import Compiler, Node, Outline, StateType, describe_field
from asl.states.calls import Invocation, Target
from asl.states.effects import StateFrame
from asl.states.fields import FieldIndex
from asl.states.registry import BUILT_IN, UNKNOWN, StateTypeRegistry
from asl.states.schemas import foreign_fields, free_fields, known_fields
from tests.parsed import parsed

Json = Any
CODE: Final = Path(__file__).resolve().parents[1] / "asl"
DIALECTS: Final = ("amazon", "codemie", "contenox", "flujo")


# A type from outside -----------------------------------------------------------------------------


def compile_echo(compiler: Compiler, step: Step) -> None:
    """Compile an Echo: an agent says again what it is given."""
    target, payload = Target("agent", compiler.state["Agent"], compiler.name), compiler.payload()

    async def work(data: Json, frame: StateFrame) -> Json:
        return await frame.effects.call(frame, Invocation(target, payload(data, frame)))

    step.work = work
    step.finish = compiler.finish()


def check_echo(node: Node) -> Iterator[Finding]:
    """Nobody echoes in silence."""
    if node.value.get("Agent") == "":
        yield Finding("V-TASK-01", f"nobody echoes in {node.name!r}", node.at("Agent"))


URN: Final = "urn:asl:schema:"
SCHEMA: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": f"{URN}states:Echo",
    "type": "object",
    "required": ["Type", "Agent"],
    "x-required": {"Type": "V-ST-01", "Agent": "V-TASK-01"},
    "x-rule": "V-TOP-03",
    "properties": {
        "Type": {"const": "Echo"},
        "Comment": {"type": "string", "x-inert": True},
        "QueryLanguage": {"enum": ["JSONPath", "JSONata"]},
        "Agent": {"type": "string", "x-rule": "V-TASK-01", "x-agent": "V-TASK-03"},
        "Parameters": {"x-language": "JSONPath", "x-jsonpath": "template"},
        "Arguments": {"x-language": "JSONata", "x-jsonata": "template"},
        "Volume": {"type": ["number", "string"], "x-rule": "V-TASK-02", "x-jsonata": "number"},
        "VolumePath": {
            "type": "string",
            "x-rule": "V-TASK-02",
            "x-language": "JSONPath",
            "x-jsonpath": "reference path",
        },
        "ResultPath": {
            "$ref": f"{URN}common#/$defs/nullablePath",
            "x-rule": "V-ST-05",
            "x-language": "JSONPath",
            "x-jsonpath": "result path",
        },
        "Output": {"x-language": "JSONata", "x-jsonata": "template", "x-after": "result"},
        "Retry": {"type": "array", "items": {"$ref": f"{URN}Retrier"}},
        "Catch": {"type": "array", "items": {"$ref": f"{URN}Catcher"}},
        "Next": {"type": "string"},
        "End": {"type": "boolean"},
    },
    "additionalProperties": False,
}
ECHO: Final = StateType(
    "Echo",
    compile_echo,
    check_echo,
    schema=SCHEMA,
    effect=True,
    outline=Outline.HEXAGON,
    describe=describe_field("Agent"),
)

DOCUMENT: Final[dict[str, Json]] = {
    "StartAt": "Say",
    "States": {
        "Say": {
            "Type": "Echo",
            "Agent": "Voice",
            "Parameters": {"text.$": "$.text"},
            "ResultPath": "$.said",
            "Retry": [{"ErrorEquals": ["Hoarse"], "IntervalSeconds": 2, "MaxAttempts": 2}],
            "Catch": [{"ErrorEquals": ["Mute"], "ResultPath": "$.error", "Next": "Quiet"}],
            "Next": "Done",
        },
        "Done": {"Type": "Succeed"},
        "Quiet": {"Type": "Pass", "Result": "quiet", "ResultPath": "$.mood", "End": True},
    },
}


@pytest.fixture(autouse=True)
def echo(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let there be the type Echo, for the tests that do not look for packages."""
    if "monkeypatch" in request.fixturenames:
        yield
        return
    STATE_TYPES.register(ECHO)
    yield
    STATE_TYPES.unregister("Echo")


def ran(*answers: Json) -> asl.Result:
    """Run the document; the agent gives these answers one after the other."""
    left = list(answers)

    def voice(given: Json) -> Json:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return f"{given['text']} {answer}"

    return asl.run(DOCUMENT, {"text": "hey"}, agents={"Voice": voice}, clock=asl.VirtualClock())


def test_it_is_checked() -> None:
    """By its schema, by its own check, and by those of all states."""
    assert asl.check(DOCUMENT).ok
    wrong = {**DOCUMENT["States"]["Say"], "Agnet": 1, "Agent": "", "Next": "Nowhere"}
    report = asl.check({**DOCUMENT, "States": {**DOCUMENT["States"], "Say": wrong}})
    assert {(each.code, each.pointer) for each in report.diagnostics} >= {
        ("V-TOP-09", "/States/Say/Agnet"),
        ("V-TASK-01", "/States/Say/Agent"),
        ("V-ST-03", "/States/Say/Next"),
    }
    missing = asl.check(DOCUMENT, agents=["Other"])
    assert [each.code for each in missing.diagnostics] == ["V-TASK-03"]


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"ResultPath": "$.a["}, [("V-ST-05", "ResultPath")]),
        ({"VolumePath": "volume"}, [("V-TASK-02", "VolumePath")]),
        ({"Volume": "{% 1 %}"}, [("V-TASK-02", "Volume")]),
        ({"Parameters": {"a.$": "nothing"}}, [("V-ST-09", "Parameters/a.$")]),
        ({"Parameters": {"a": "$.b"}}, [("V-ST-11", "Parameters/a")]),
        ({"Arguments": {}}, [("V-ST-07", "Arguments")]),
        ({"Output": "x"}, [("V-ST-07", "Output")]),
    ],
)
def test_its_fields_are_read_as_its_schema_says_in_jsonpath(
    fields: Json, found: list[tuple[str, str]]
) -> None:
    state = {"Type": "Echo", "Agent": "Voice", **fields, "End": True}
    report = asl.check({"StartAt": "Say", "States": {"Say": state}})
    wanted = [(code, f"/States/Say/{place}") for code, place in found]
    assert [(each.code, each.pointer) for each in report.diagnostics] == wanted


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"Volume": "{% $states.input.volume %}"}, []),
        ({"Volume": "{% 'loud' %}"}, [("V-JSONATA-06", "Volume")]),
        ({"Volume": "{% $states.result %}"}, [("V-JSONATA-04", "Volume")]),
        ({"Output": "{% $states.result %}"}, []),
        ({"Arguments": {"a": "{% ( %}"}}, [("V-JSONATA-01", "Arguments/a")]),
        ({"VolumePath": "$.a"}, [("V-ST-07", "VolumePath")]),
        ({"Parameters": {}}, [("V-ST-07", "Parameters")]),
    ],
)
def test_its_fields_are_read_as_its_schema_says_in_jsonata(
    fields: Json, found: list[tuple[str, str]]
) -> None:
    state = {"Type": "Echo", "QueryLanguage": "JSONata", "Agent": "Voice", **fields, "End": True}
    report = asl.check({"StartAt": "Say", "States": {"Say": state}})
    wanted = [(code, f"/States/Say/{place}") for code, place in found]
    assert [(each.code, each.pointer) for each in report.diagnostics] == wanted


def test_the_aws_profile_has_no_such_type() -> None:
    """Whatever a package adds is no type of Amazon's."""
    report = asl.check(DOCUMENT, profile="aws")
    assert ("V-ST-01", "/States/Say/Type") in {(each.code, each.pointer) for each in report.errors}


def test_it_runs_and_is_in_the_history() -> None:
    """Its result lies where `ResultPath` says, and it is entered and exited."""
    result = ran("you")
    assert result.output == {"text": "hey", "said": "hey you"}
    types = [each.type for each in result.events]
    assert types[1:3] == ["EchoStateEntered", "EchoStateExited"]


def test_it_is_retried() -> None:
    """A retrier takes the error, and history tells of the delay."""
    result = ran(asl.StateError("Hoarse", ""), "again")
    assert result.output["said"] == "hey again"
    told = [each.details for each in result.events if each.type == "RetryScheduled"]
    assert [(each["retry"], each["delay"]) for each in told] == [(1, 2.0)]


def test_its_error_is_caught() -> None:
    """A catcher takes the error and says where to go."""
    result = ran(asl.StateError("Mute", "no voice"))
    assert result.output["mood"] == "quiet"
    assert result.output["error"]["Error"] == "Mute"
    assert [each.details["next"] for each in result.events if each.type == "ErrorCaught"] == [
        "Quiet"
    ]


@pytest.mark.parametrize(
    ("form", "drawn"),
    [("mermaid", '[/"Say<br/>Voice<br/>Retry"/]'), ("dot", "shape=hexagon"), ("svg", "Voice")],
)
def test_it_is_drawn(form: str, drawn: str) -> None:
    """With the outline and the words of its descriptor."""
    assert drawn in asl.graph(DOCUMENT, format=form)


def test_it_is_planned() -> None:
    """Its agent is one that may be called, and nothing bounds what that costs."""
    plan = asl.plan(DOCUMENT)
    assert plan.agents == {"Voice": ["Say"]}
    assert ("Say", "Done") in plan.ways
    assert ("Say", "Quiet") in plan.ways
    assert plan.cost.maximum is None
    assert plan.cost.states == ("Say",)


def test_editors_know_it() -> None:
    """The schema of documents describes its states, and so takes part in completion."""
    bundle = reference.bundle()
    assert Draft202012Validator(bundle).is_valid(DOCUMENT)
    wrong = {**DOCUMENT["States"]["Say"], "Agnet": 1}
    assert not Draft202012Validator(bundle).is_valid(
        {**DOCUMENT, "States": {**DOCUMENT["States"], "Say": wrong}}
    )


@pytest.mark.parametrize("name", DIALECTS)
def test_no_conversion_drops_it_silently(name: str) -> None:
    """A writer that does not know a type reports an error for it."""
    conversion = asl.convert(DOCUMENT, name)
    lost = [each for each in conversion.losses if each.code == "L-TYPE"]
    assert [(each.pointer, each.severity) for each in lost] == [("/States/Say", Severity.ERROR)]
    assert not conversion.ok


# The seam ----------------------------------------------------------------------------------------


FOREIGN_MODULES: Final = {"raises": "1 / 0", "exits": "raise SystemExit(3)"}
"""Modules of a package that cannot be imported."""


def found(monkeypatch: pytest.MonkeyPatch, path: Path, name: str) -> StateTypeRegistry:
    """Return a registry in an installation with a package that offers a value of this module."""
    value = name if ":" in name else f"{__name__}:{name}"
    point = EntryPoint("Echo", value, "asl.states")
    for module, code in FOREIGN_MODULES.items():
        (path / f"{module}.py").write_text(code)
    monkeypatch.syspath_prepend(path)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [point])
    return StateTypeRegistry(BUILT_IN)


def test_a_package_adds_a_type(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It offers its descriptor under an entry point."""
    types = found(monkeypatch, tmp_path, "ECHO")
    assert types["Echo"].schema is SCHEMA
    assert [*types][-1] == "Echo"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("SCHEMA", "is no StateType"),
        ("TASK_AGAIN", "there is a state type 'Task' already"),
        ("BARE", "the state type 'Bare' has no schema"),
        ("ABSENT", "the entry point 'Echo' of asl.states cannot be loaded"),
        ("raises:X", "cannot be loaded: ZeroDivisionError"),
        ("exits:X", "cannot be loaded: SystemExit: 3"),
        ("NAMELESS", "the name of a state type must be a text, not 3"),
        ("UNCHECKED", "'Echo' has no function as 'check'"),
        ("WRONG_SCHEMA", "schema of the state type 'Echo' is wrong at .*'objekt'"),
        ("NO_SCHEMA", "schema of the state type 'Echo' is wrong"),
        ("OTHER_REF", "refers to 'urn:nowhere', which cannot be read"),
        ("OTHER_ID", "needs the \"\\$id\" 'urn:asl:schema:states:Echo'"),
    ],
)
def test_what_is_no_new_type_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, message: str
) -> None:
    """The message says what is wrong with what the package offers."""
    types = found(monkeypatch, tmp_path, name)
    for _ in range(2):
        with pytest.raises(AslError, match=message):
            types.get("Echo")


def test_broken_package_is_ignored_with_a_warning_by_other_types(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A type that is unknown stays unknown; the package is named."""
    types = found(monkeypatch, tmp_path, "ABSENT")
    with pytest.warns(UserWarning, match="'Echo' of asl.states cannot be loaded.*it is ignored"):
        assert "Pas" not in types
    assert "Echo" not in [*types]


def raising_check(node: Node) -> Iterator[Finding]:
    raise ZeroDivisionError("no")


def wrong_check(node: Node) -> Iterator[Finding]:
    yield 3  # type: ignore[misc]


def raising_compile(compiler: Compiler, step: Step) -> None:
    raise ZeroDivisionError("no")


def empty_compile(compiler: Compiler, step: Step) -> None:
    pass


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"check": raising_check}, "the check of the state type 'Loud' failed for 'Say': ZeroDiv"),
        ({"check": lambda node: None}, "the check of the state type 'Loud' failed for 'Say': Type"),
        ({"check": wrong_check}, "failed for 'Say': TypeError: 3 is no Finding"),
        ({"compile": raising_compile}, "the state type 'Loud' cannot compile 'Say': ZeroDivision"),
        ({"compile": empty_compile}, "cannot compile 'Say': .* 'transform', 'choose' and 'work'"),
    ],
)
def test_fault_of_a_descriptor_names_its_type(changes: Json, message: str) -> None:
    reference = {
        **SCHEMA,
        "$id": f"{URN}states:Loud",
        "properties": {**SCHEMA["properties"], "Type": {"const": "Loud"}},
    }
    STATE_TYPES.register(replace(ECHO, name="Loud", schema=reference, **changes))
    state = {"Type": "Loud", "Agent": "Voice", "End": True}
    try:
        with pytest.raises(AslError, match=message):
            asl.run({"StartAt": "Say", "States": {"Say": state}}, agents={"Voice": print})
    finally:
        STATE_TYPES.unregister("Loud")


TASK_AGAIN: Final = StateType("Task", compile_echo, check_echo, schema=SCHEMA)
BARE: Final = StateType("Bare", compile_echo, check_echo)
NAMELESS: Final = replace(ECHO, name=3)  # type: ignore[arg-type]
UNCHECKED: Final = replace(ECHO, check=None)  # type: ignore[arg-type]
WRONG_SCHEMA: Final = replace(ECHO, schema={**SCHEMA, "type": "objekt"})
NO_SCHEMA: Final = replace(ECHO, schema=3)  # type: ignore[arg-type]
OTHER_REF: Final = replace(
    ECHO, schema={**SCHEMA, "properties": {**SCHEMA["properties"], "A": {"$ref": "urn:nowhere"}}}
)
OTHER_ID: Final = replace(ECHO, schema={**SCHEMA, "$id": f"{URN}states:Other"})


# Lists of names ----------------------------------------------------------------------------------

ALLOWED: Final = {
    "engine/frame.py": 1,  # members of the context object
    "expr/paths/closures.py": 1,  # members of the context object
    "states/registry.py": 1,  # where the descriptor of each is
}
"""Files with literals that hold several names of state types -> how many. It only shrinks."""


FIELDS_ALLOWED: Final = {
    "checks/transitions.py": 1,  # fields with the name of a state, or of whether it is the last
    "compose/expansion.py": 1,  # what an Include does not need once it holds its machine
    "conformance/drafts/facts.py": 2,  # fields that speak of other data than a state's input
    "conformance/drafts/search.py": 1,  # fields with texts that no data is compared with
    "engine/map_run.py": 1,  # beginnings of the names of events
    "graphs/planning.py": 1,  # blocks that may name an agent, or compute its name
}
"""The same for literals that hold several names of fields of states."""


BLOCK_FIELDS_ALLOWED: Final = {
    **FIELDS_ALLOWED,
    "__init__.py": 2,  # names of the front door that are also those of fields
    "checks/tool_policies.py": 1,  # the lists of a Tools block that may contradict each other
    "compose/expansion.py": 2,  # those of an Include, and what a template has in common with it
    "conformance/drafts/choice_rules.py": 2,  # operators, and fields of a choice rule that are none
    "effects/tool_enforcement.py": 1,  # the lists of a Tools block that only a broker can enforce
    "engine/usage.py": 1,  # the kinds of amounts
    "executions/requirements.py": 1,  # fields that name an agent
    "graphs/planning.py": 2,  # the same, and blocks that may name one
    "graphs/labels.py": 1,  # operators of choice rules
}
"""The same for literals that hold several names of fields at any depth of states."""


@cache
def literals() -> list[tuple[str, set[object]]]:
    """Return the constants in each list of the package, with the path of its module."""
    found = []
    for path in CODE.rglob("*.py"):
        for node in ast.walk(parsed(path)[1]):
            parts: list[ast.expr | None] = []
            if isinstance(node, ast.Tuple | ast.List | ast.Set):
                parts = [*node.elts]
            elif isinstance(node, ast.Dict):
                parts = node.keys
            held: set[object] = {each.value for each in parts if isinstance(each, ast.Constant)}
            if held:
                found.append((path.relative_to(CODE).as_posix(), held))
    return found


def counted(names: frozenset[str], least: int) -> dict[str, int]:
    """Return how many literals of each module hold so many names or more."""
    return dict(Counter(path for path, held in literals() if len(held & names) >= least))


def test_no_list_of_state_types_stands_beside_the_descriptors() -> None:
    """What has to know a property of a type asks its descriptor.

    A dialect may say what it has in the place of a type.
    """
    found = counted(frozenset(STATE_TYPES), 2)
    own = {path for path in found if path.startswith("dialects/")}
    assert {path: found[path] for path in found.keys() - own} == ALLOWED


def test_no_list_of_fields_stands_beside_the_schemas() -> None:
    """What has to know a property of a field reads it off its schema.

    A state type may name its own fields, and a dialect those that it writes.
    """
    names = frozenset().union(*(known_fields(f"states:{name}") for name in STATE_TYPES))
    found = counted(names, 4)
    own = {path for path in found if path.startswith(("states/", "dialects/"))}
    assert {path: found[path] for path in found.keys() - own} == FIELDS_ALLOWED


def test_no_list_of_fields_of_blocks_stands_beside_the_schemas() -> None:
    """The same holds for the fields of objects within states, such as blocks and choice rules."""
    fields = FieldIndex(lambda field: True).fields(UNKNOWN)
    found = counted(frozenset(each.name for group in fields.values() for each in group), 4)
    own = {path for path in found if path.startswith(("states/", "dialects/"))}
    assert {path: found[path] for path in found.keys() - own} == BLOCK_FIELDS_ALLOWED


@pytest.mark.parametrize(
    ("kind", "foreign"), [("Task", "PerItem"), ("Map", "PerBranch"), ("Parallel", "AggregateBy")]
)
def test_the_schema_of_a_block_says_for_which_types_a_field_is(kind: str, foreign: str) -> None:
    """A field with `x-states` belongs to those types alone, one without it to all."""
    fields = foreign_fields("blocks:Progress", kind)
    assert foreign in fields
    assert "Milestones" not in fields


def test_the_schemas_name_the_fields_with_objects_of_the_author() -> None:
    """What `x-free` marks is not searched for fields of the language."""
    assert {"Attribution", "Filter", "Schema"} <= free_fields()
