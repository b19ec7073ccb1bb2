"""Random documents of every language, for runs with random scripted agents.

A seed makes a document, the same one at all times. What goes round asks an agent on its way, so
that a run that does not end is stopped by how often agents are asked.
"""

import json
import random
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

__all__ = ["GENERATED", "INPUTS", "Draw", "Made"]

Json = Any


class Made(NamedTuple):
    """A document, and the files that it imports."""

    document: dict[str, Json]
    files: Mapping[str, Json] = {}


DATA: Final[Mapping[str, Json]] = {
    "kind": "a",
    "n": 7,
    "list": ["p", "q"],
    "user": {"name": "Ann", "tags": ["x"]},
    "when": "2024-01-01T00:00:30Z",
    "ok": True,
}
INPUTS: Final[Mapping[str, tuple[Json, ...]]] = {
    "asl": (DATA,),
    "amazon": (DATA,),
    "codemie": (DATA,),
    "contenox": ("a", "a", "7", DATA),
    "flujo": ({"input": "text", "context": DATA},),
}
"""What documents of each language may be given."""
NAMES: Final = ("A", "B", "C", "D", "E")
FIELDS: Final = ("kind", "n", "list", "user", "when", "ok")
RESULTS: Final = ("$.a", "$.b", "$.c", "$.a.in", "$.user.said")


class Draw(random.Random):
    """Random choices."""

    def one(self, *each: Json) -> Json:
        return self.choice(each)

    def often(self, chance: float = 0.5) -> bool:
        return self.random() < chance


# --------------------------------------------------------------------------------------------
# Native, and Amazon's

VALUES: Final[Mapping[str, tuple[Json, ...]]] = {
    "String": ("a", "yes", "", "a b", "7", "2024-01-01T00:00:30Z"),
    "Numeric": (7, 0.5, -2, 0),
    "Boolean": (True, False),
    "Timestamp": ("2024-01-01T00:00:30Z", "2025-01-01T00:00:00Z"),
}
COMPARED: Final = ("Equals", "LessThan", "LessThanEquals", "GreaterThan", "GreaterThanEquals")
KINDS_OF: Final = ("IsNull", "IsPresent", "IsString", "IsNumeric", "IsBoolean", "IsTimestamp")
PATTERNS: Final = ("a*", "*e*", "y*s", "*", "yes", "a\\*", "*a*b*")
INTRINSICS: Final = (
    "States.Format('{} and \\{{}\\}', $.kind, $.n)",
    "States.Format('hi {}', $.a)",
    "States.Array($.kind, $.n)",
    "States.MathAdd($.n, 1)",
    "States.JsonToString($.user)",
    "States.ArrayLength($.list)",
    "States.ArrayGetItem($.list, 0)",
    "States.JsonMerge($.user, $.user, false)",
    "States.StringSplit($.kind, ',')",
    "States.ArrayContains($.list, 'p')",
)


def _paths(draw: Draw) -> str:
    return draw.one(
        "$",
        "$.kind",
        "$.n",
        "$.user",
        "$.user.name",
        "$.list",
        "$.list[0]",
        "$.list[-1]",
        "$.none",
        "$.a",
        "$.b",
        "$.a.kind",
        "$.b.n",
        "$.a.in",
        "$.list[*]",
        "$.user.tags[0]",
    )


def _rule(draw: Draw, depth: int = 0) -> dict[str, Json]:
    if depth < 2 and draw.often(0.25):
        word = draw.one("And", "Or", "Not")
        if word == "Not":
            return {"Not": _rule(draw, depth + 1)}
        return {word: [_rule(draw, depth + 1) for _ in range(draw.randint(1, 2))]}
    path = _paths(draw)
    if "*" in path:
        path = "$.kind"
    match draw.randint(0, 5):
        case 0:
            return {"Variable": path, draw.choice(KINDS_OF): draw.often()}
        case 1:
            return {"Variable": path, "StringMatches": draw.choice(PATTERNS)}
        case 2:
            kind = draw.one("String", "Numeric", "Timestamp", "Boolean")
            word = "Equals" if kind == "Boolean" else draw.choice(COMPARED)
            return {"Variable": path, f"{kind}{word}Path": draw.one("$.kind", "$.n", "$.ok", "$.a")}
    kind = draw.choice([*VALUES])
    word = "Equals" if kind == "Boolean" else draw.choice(COMPARED)
    return {"Variable": path, f"{kind}{word}": draw.choice(VALUES[kind])}


def _template(draw: Draw) -> dict[str, Json]:
    made: dict[str, Json] = {}
    for key in draw.sample(["task", "text", "n", "who", "prompt"], draw.randint(1, 3)):
        match draw.randint(0, 6):
            case 0 | 1:
                made[f"{key}.$"] = _paths(draw)
            case 2:
                made[f"{key}.$"] = draw.choice(INTRINSICS)
            case 3:
                made[key] = draw.one({"in.$": "$.kind"}, {"deep": {"x.$": "$.n"}}, [1, "two"], {})
            case 4:
                made[f"{key}.$"] = draw.one(
                    "$$.Execution.Name", "$$.State.Name", "$$.Execution.Input.n"
                )
            case _:
                made[key] = draw.one(
                    "do it",
                    3,
                    None,
                    "say {{x}}",
                    "of {{kind}}",
                    "",
                    "{{.input}}",
                    "a $.b {% 1 %}",
                    True,
                )
    return made


def _retriers(draw: Draw) -> list[Json]:
    made: list[Json] = []
    for _ in range(draw.randint(1, 2)):
        retrier: dict[str, Json] = {
            "ErrorEquals": draw.one(
                ["Agent.Odd"], ["States.TaskFailed"], ["Agent.Odd", "Agent.Down"]
            )
        }
        if draw.often():
            retrier["MaxAttempts"] = draw.randint(0, 3)
        if draw.often():
            retrier |= {"IntervalSeconds": draw.randint(1, 3), "BackoffRate": draw.one(1, 2)}
        if draw.often(0.2):
            retrier |= {"MaxDelaySeconds": 4, "JitterStrategy": "NONE"}
        made.append(retrier)
    if draw.often(0.3):
        made.append({"ErrorEquals": ["States.ALL"], "MaxAttempts": draw.randint(0, 2)})
    return made


def _catchers(draw: Draw, later: list[str]) -> list[Json]:
    listed = draw.one(
        [["States.ALL"]],
        [["Agent.Odd"]],
        [["Agent.Odd"], ["States.ALL"]],
        [["States.TaskFailed"]],
        [["Agent.Down", "States.Runtime"], ["States.TaskFailed"]],
    )
    return [
        {"ErrorEquals": names, "Next": draw.choice(later)}
        | draw.one({}, {}, {"ResultPath": None}, {"ResultPath": "$.a"}, {"ResultPath": "$.error"})
        for names in listed
    ]


class _Native:
    """Machines in JSONPath; *resource* makes of an agent's name the field that asks it."""

    def __init__(
        self, draw: Draw, resource: Callable[[str], dict[str, Json]], *, blocks: bool
    ) -> None:
        self.draw = draw
        self.resource = resource
        self.blocks = blocks
        self.files: dict[str, Json] = {}
        """All templates that are included, by their paths."""

    def whole(self, names: list[str]) -> Made:
        machine = self.machine(names)
        imports = {path.removesuffix(".json"): path for path in self.files}
        return Made({"Imports": imports, **machine} if imports else machine, self.files)

    def machine(self, names: list[str], depth: int = 0) -> dict[str, Json]:
        made = {
            name: self.state(name, names[index + 1 :], names, depth)
            for index, name in enumerate(names)
        }
        return {"StartAt": names[0], "States": _reached(names[0], made)}

    def state(self, name: str, later: list[str], every: list[str], depth: int) -> dict[str, Json]:
        draw = self.draw
        kinds = ["Task"] * 6 + ["Pass"] * 3 + ["Wait"]
        if later:
            kinds += ["Choice"] * 4 + ["Fail"]
        kinds += [] if depth else ["Parallel", "Map"]
        kinds += ["Succeed"]
        if self.blocks:
            kinds += ["Checkpoint", "Approval", "Include"] if not depth else []
            kinds += ["Include"] if depth == 1 and "T" not in every else []
        kind = draw.choice(kinds)
        state: dict[str, Json] = {"Type": kind}
        others = every if kind == "Task" else later
        if kind == "Choice":
            return state | self.choice(later)
        if kind == "Succeed":
            return state | self.filters()
        if kind == "Fail":
            return state | draw.one(
                {"Error": "Broken", "Cause": "so {{x}} it is"},
                {},
                {"Error": "Odd", "CausePath": "$.kind"},
            )
        following = draw.one(None, *others) if others else None
        state |= {"Next": following} if following else {"End": True}
        match kind:
            case "Wait":
                return (
                    state
                    | self.filters()
                    | self.assigned()
                    | draw.one(
                        {"Seconds": 5},
                        {"Seconds": 0},
                        {"SecondsPath": "$.n"},
                        {"Timestamp": "2024-01-01T00:00:30Z"},
                        {"TimestampPath": "$.when"},
                    )
                )
            case "Pass":
                state |= self.filters() | self.placed()
                state |= draw.one(
                    {}, {"Result": draw.one("text", 5, {"kind": "b"}, "", [1], None)}, {}
                )
                if "Result" not in state and draw.often():
                    state["Parameters"] = _template(draw)
                return state | self.assigned()
            case "Checkpoint":
                return state | {"Name": "saved"} | draw.one({}, {"ResultPath": "$.saved"})
            case "Approval":
                return self.approval(state, later)
            case "Parallel":
                state["Branches"] = [
                    self.machine(names, depth + 1)
                    for names in (["P", "Q"], ["R"])[: draw.randint(1, 2)]
                ]
            case "Map":
                state |= self.iteration(depth)
            case "Include":
                state |= self.included(depth)
            case _:
                state |= self.resource(f"agent {name}")
                if draw.often():
                    state["Parameters"] = _template(draw)
                if draw.often(0.2):
                    state["TimeoutSeconds"] = 60
        state |= self.filters() | self.placed() | self.assigned()
        if draw.often(0.25):
            state["ResultSelector"] = draw.one(
                {"kind.$": "$.kind"}, {"x": 1, "n.$": "$"}, {"k.$": "$[0]"}
            )
        if draw.often(0.35):
            state["Retry"] = _retriers(draw)
        if later and draw.often(0.35):
            state["Catch"] = _catchers(draw, later)
        return state

    def choice(self, later: list[str]) -> dict[str, Json]:
        draw = self.draw
        rules = [{**_rule(draw), "Next": draw.choice(later)} for _ in range(draw.randint(1, 3))]
        if draw.often(0.2):
            rules[0]["Assign"] = {"v": "by rule"}
        made: dict[str, Json] = {"Choices": rules, **self.filters()}
        return made | ({"Default": draw.choice(later)} if draw.often(0.7) else {})

    def approval(self, state: dict[str, Json], later: list[str]) -> dict[str, Json]:
        draw = self.draw
        state |= {"Prompt": draw.one("Go on?", "Is {{ $.kind }} right?")}
        state |= draw.one({}, {"ResultPath": "$.p"}, {"Options": ["yes", "no", "later"]})
        if later and draw.often():
            place = "$.p.approval" if "ResultPath" in state else "$.approval"
            word = state.get("Options", ["approve"])[0]
            del state["Next" if "Next" in state else "End"]
            rule = {"Variable": place, "StringEquals": word, "Next": draw.choice(later)}
            state |= {"Choices": [rule], "Default": draw.choice(later)}
        return state

    def iteration(self, depth: int) -> dict[str, Json]:
        draw = self.draw
        made: dict[str, Json] = {
            "ItemProcessor": self.machine(draw.one(["P"], ["P", "Q"]), depth + 1)
        }
        made |= draw.one(
            {"ItemsPath": "$.list"}, {"ItemsPath": "$.list"}, {"ItemsPath": "$.user.tags"}, {}
        )
        if draw.often(0.4):
            made["ItemSelector"] = draw.one(
                {"kind.$": "$$.Map.Item.Value", "n.$": "$.n"}, {"i.$": "$$.Map.Item.Index"}
            )
        made |= draw.one({}, {"MaxConcurrency": 1}, {"MaxConcurrency": 2})
        return made | draw.one(
            {}, {}, {"ToleratedFailurePercentage": 50}, {"ToleratedFailureCount": 1}
        )

    def included(self, depth: int) -> dict[str, Json]:
        """A template in a file of its own; some are told a word."""
        draw, name = self.draw, f"t{len(self.files)}"
        self.files[f"{name}.json"] = {}
        machine = self.machine(draw.one(["T"], ["T", "U"]), depth + 1)
        text = re.sub(r"\{\{([^{}\"]*)\}\}", r"\1", json.dumps(machine))
        made: dict[str, Json] = {"Template": name}
        parameters: dict[str, Json] = {}
        if draw.often():
            parameters["word"] = {"Type": "string", "Default": "it"}
            text = text.replace("do it", "do {{word}}")
            made |= draw.one(
                {}, {"Parameters": {"word": "that"}}, {"Parameters": {"word.$": "$.kind"}}
            )
        self.files[f"{name}.json"] = {"Parameters": parameters, **json.loads(text)}
        return made

    def filters(self) -> dict[str, Json]:
        draw, made = self.draw, {}
        if draw.often(0.15):
            made["InputPath"] = draw.one(None, _paths(draw), _paths(draw))
        if draw.often(0.15):
            made["OutputPath"] = draw.one(None, _paths(draw), _paths(draw))
        return made

    def placed(self) -> dict[str, Json]:
        draw = self.draw
        return {"ResultPath": draw.one(None, "$", *RESULTS, *RESULTS)} if draw.often(0.7) else {}

    def assigned(self) -> dict[str, Json]:
        draw = self.draw
        return (
            {"Assign": draw.one({"v": 1}, {"v.$": "$"}, {"w.$": "$.kind"})}
            if draw.often(0.1)
            else {}
        )


def _reached(start: str, made: dict[str, dict[str, Json]]) -> dict[str, Json]:
    found: set[str] = set()
    todo = [start]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            state = made[name]
            ways = [state.get("Next"), state.get("Default")]
            ways += [each["Next"] for key in ("Choices", "Catch") for each in state.get(key, ())]
            todo += [each for each in ways if each]
    return {name: each for name, each in made.items() if name in found}


def _native(draw: Draw) -> Made:
    names = list(NAMES[: draw.randint(1, 5)])
    if draw.often(0.3):
        return Made(_queried(draw, names))
    return _Native(draw, lambda name: {"Agent": name}, blocks=True).whole(names)


def _amazon(draw: Draw) -> Json:
    def resource(name: str) -> dict[str, Json]:
        function = name.replace(" ", "-")
        return {"Resource": f"arn:aws:lambda:us-east-1:123456789012:function:{function}"}

    names = list(NAMES[: draw.randint(1, 5)])
    if draw.often(0.3):
        return _queried(draw, names, resource)
    return _Native(draw, resource, blocks=False).machine(names)


QUERIES: Final = (
    "$states.input",
    "$states.input.kind",
    "$states.input.n + 1",
    "$states.input.user.name",
    "'of ' & $states.input.kind",
    "$states.input.list[0]",
    "$string($states.input.n)",
    "$exists($states.input.none)",
    "$states.input.list.$uppercase($)",
    "$count($states.input.list)",
    "{'x': $states.input.kind, 'y': [$states.input.n]}",
    "$states.context.Execution.Name",
)
OUTPUTS: Final = (
    "$merge([$states.input, {'a': $states.result}])",
    "$merge([$states.input, {'b': $states.result.kind}])",
    "$states.result",
    "{'kind': $states.input.kind, 'n': $states.input.n, 'a': $states.result}",
    "$states.input",
)
CONDITIONS: Final = (
    "$states.input.kind = 'a'",
    "$states.input.a = 'yes'",
    "$states.input.n > 3",
    "$states.input.a.kind != 'a'",
    "$exists($states.input.a)",
    "$not($states.input.ok)",
    "$states.input.kind in ['a', 'b']",
    "$states.input.ok and $states.input.n = 7",
    "$contains($states.input.kind, 'a')",
    "$states.input.user.name = 'Ann' or false",
    "$count($states.input.list) > 1",
    "$states.input.n >= 7 and $states.input.a = null",
)


def _queried(
    draw: Draw,
    names: list[str],
    resource: Callable[[str], dict[str, Json]] = lambda name: {"Agent": name},
) -> Json:
    """A machine in JSONata."""

    def query(text: str) -> str:
        return f"{{% {text} %}}"

    def state(name: str, later: list[str]) -> dict[str, Json]:
        kinds = ["Task"] * 4 + ["Pass", "Succeed"] + (["Choice"] * 3 if later else [])
        kind = draw.choice(kinds)
        made: dict[str, Json] = {"Type": kind}
        if kind == "Choice":
            rules = [
                {"Condition": query(draw.choice(CONDITIONS)), "Next": draw.choice(later)}
                for _ in range(draw.randint(1, 2))
            ]
            if draw.often(0.2):
                rules[0]["Output"] = query("$merge([$states.input, {'c': 1}])")
            made |= {"Choices": rules, "Default": draw.choice(later)}
            return made | draw.one({}, {}, {"Output": query("$states.input")})
        if kind == "Succeed":
            return made | draw.one({}, {"Output": query(draw.choice(QUERIES))})
        others = names if kind == "Task" else later
        following = draw.one(None, *others) if others else None
        made |= {"Next": following} if following else {"End": True}
        if kind == "Pass":
            made["Output"] = query(draw.one("$merge([$states.input, {'b': 2}])", *QUERIES))
            return made
        made |= resource(f"agent {name}")
        if draw.often(0.7):
            made["Arguments"] = draw.one(
                {"task": query(draw.choice(QUERIES))},
                {"task": "do it", "n": query("$states.input.n")},
                {},
            )
        if draw.often(0.7):
            made["Output"] = query(draw.choice(OUTPUTS))
        if draw.often(0.2):
            made["Assign"] = {"v": query("$states.result")}
        if draw.often(0.3):
            made["Retry"] = _retriers(draw)
        if later and draw.often(0.35):
            made["Catch"] = [
                {"ErrorEquals": each["ErrorEquals"], "Next": each["Next"]}
                | draw.one(
                    {}, {"Output": query("$merge([$states.input, {'e': $states.errorOutput}])")}
                )
                for each in _catchers(draw, later)
            ]
        return made

    made = {name: state(name, names[index + 1 :]) for index, name in enumerate(names)}
    return {"QueryLanguage": "JSONata", "StartAt": names[0], "States": _reached(names[0], made)}


# --------------------------------------------------------------------------------------------
# CodeMie


def _codemie(draw: Draw) -> Json:
    names = list(NAMES[: draw.randint(1, 5)])
    states, nodes = [], []
    for index, name in enumerate(names):
        later = [*names[index + 1 :], "end"]
        flags: dict[str, Json] = {}
        if draw.often(0.4):
            flags["output_key"] = draw.one("kind", "x", "y")
        flags |= draw.one({}, {}, {}, {"store_in_context": False}, {"append_to_context": True})
        flags |= draw.one(
            {}, {}, {}, {"clear_context_store": "keep_current"}, {"include_in_llm_history": False}
        )
        made: dict[str, Json] = {"id": name}
        if draw.often(0.2):
            nodes.append(
                {
                    "id": f"n{name}",
                    "custom_node_id": "transform_node",
                    "config": {"mappings": [draw.choice(MAPPINGS)]},
                }
            )
            made["custom_node_id"] = f"n{name}"
        else:
            made |= {"assistant_id": f"agent{name}", "task": draw.choice(TASKS)}
            made |= draw.one({}, {}, {"retry_policy": {"max_attempts": draw.randint(1, 3)}})
            made |= draw.one({}, {}, {}, {"interrupt_before": True})
            made |= draw.one({}, {}, {}, {"resolve_dynamic_values_in_prompt": False})
        made["next"] = _codemie_next(draw, later, names, flags, asks="assistant_id" in made)
        states.append(made)
    assistants = [{"id": f"agent{name}", "system_prompt": "You help."} for name in names]
    used = str(states)
    flow: dict[str, Json] = {
        "assistants": [each for each in assistants if repr(each["id"]) in used]
    }
    return flow | ({"custom_nodes": nodes} if nodes else {}) | {"states": states}


TASKS: Final = (
    "do it",
    "of {{kind}}",
    "{{x}} and {{y}}",
    "say {{user.name}} {{none}}",
    "{{list}}",
    "{{n}}",
    "",
    "{{kind}}",
)
MAPPINGS: Final[tuple[Json, ...]] = (
    {"output_field": "t", "type": "constant", "value": "tea"},
    {"output_field": "x", "type": "extract", "source_path": "kind"},
    {"output_field": "y", "type": "extract", "source_path": "user.name"},
    {"output_field": "n", "type": "template", "template": "of {{kind}}"},
    {"output_field": "kind", "type": "constant", "value": {"deep": 1}},
)
EXPRESSIONS: Final = (
    "kind == 'a'",
    "n > 5",
    "x == 'yes'",
    "'kind' in keys",
    "not kind",
    "n == 7 and kind == 'b'",
    "n in [1, 7]",
    "x is None",
    "kind != 'a'",
    "kind == 'a' or n < 3",
    "text.startswith('t')",
)


def _codemie_next(
    draw: Draw, later: list[str], every: list[str], flags: Json, *, asks: bool
) -> Json:
    targets = [*later, *(every if asks else [])]
    match draw.randint(0, 5):
        case 0:
            condition = {"expression": draw.choice(EXPRESSIONS), "then": draw.choice(targets)}
            return flags | {"condition": {**condition, "otherwise": draw.choice(later)}}
        case 1:
            cases = [
                {"condition": draw.choice(EXPRESSIONS), "state_id": draw.choice(targets)}
                for _ in range(draw.randint(1, 2))
            ]
            return flags | {"switch": {"cases": cases, "default": draw.choice(later)}}
    return flags | {"state_id": draw.choice(later)}


# --------------------------------------------------------------------------------------------
# Contenox

PROMPTS: Final = (
    "well?",
    "of {{.input}}",
    "{{.previous_output}}!",
    "{{.A}}",
    "so {{.input.kind}}",
    "{{var:who|nobody}}",
    "{{.last_error}}",
    "{{if .input}}yes{{else}}no{{end}}",
    "{{.A_error}}",
    "{{.input.user.name}}",
)


def _contenox(draw: Draw) -> Json:
    names = list(NAMES[: draw.randint(1, 5)])
    tasks: list[Json] = []
    for index, name in enumerate(names):
        later = [*names[index + 1 :], "end"]
        handler = draw.one(
            "tools",
            "tools",
            "tools",
            "prompt_to_string",
            "prompt_to_string",
            "noop",
            "raise_error",
            "parse_number",
            "condition_key",
            "chat_completion",
            "prompt_to_js",
            "parse_score",
        )
        task: dict[str, Json] = {"id": name, "handler": handler}
        if handler == "tools":
            task["tools"] = {"name": f"agent{name}"} | draw.one(
                {}, {"args": {"task": "do it"}}, {"tool_name": "x", "args": {"k": "{{var:who}}"}}
            )
        if handler == "condition_key":
            task["valid_conditions"] = {"yes": True, "no": True}
        if draw.often(0.5):
            earlier = names[:index] or names[:1]
            task |= draw.one(
                {"prompt_template": draw.choice(PROMPTS)},
                {"prompt_template": draw.choice(PROMPTS)},
                {"input_var": draw.one("input", *earlier) if index else "input"},
            )
        task |= draw.one({}, {}, {"retry_on_failure": draw.randint(1, 2)}, {"timeout": "60s"})
        asks = handler not in ("noop", "raise_error")
        task["transition"] = _contenox_to(draw, later, names if asks else [])
        tasks.append(task)
    return {"id": "c", "tasks": tasks}


def _contenox_to(draw: Draw, later: list[str], every: list[str]) -> Json:
    made: dict[str, Json] = {"branches": []}
    for _ in range(draw.randint(0, 2)):
        operator, when = draw.one(
            ("equals", "yes"),
            ("equals", "7"),
            ("contains", "a"),
            ("starts_with", "y"),
            ("ends_with", "o"),
            ("gt", "5"),
            ("in_range", "1-8"),
            ("not_equals", "no"),
            ("equals", "ok"),
            ("equals", "executed"),
        )
        goto = draw.choice([*later, *every])
        made["branches"].append({"operator": operator, "when": when, "goto": goto})
    made["branches"].append({"operator": "default", "when": "", "goto": draw.choice(later)})
    return made | ({"on_failure": later[0]} if later[0] != "end" and draw.often(0.4) else {})


# --------------------------------------------------------------------------------------------
# Flujo

TEMPLATES: Final = (
    "do it",
    "{{ previous_step }}",
    "of {{ context.kind }}",
    "{{ steps.A.output }}",
    "{{ context.x }} it",
    "{{ context.user.name }}",
    "{{ context.none or 'nothing' }}",
    "{{ previous_step | upper }}",
)
WHENS: Final = (
    "output.last_output == 'yes'",
    "context.kind == 'a'",
    "output.last_output > 5",
    "context.n == 7",
    "not context.none",
    "output.event == 'success'",
    "context.x == 'no'",
    "output.last_output.kind == 'a'",
    "output.last_step.name == 'A' and context.ok",
    "'a' in output.last_output",
    "output.last_output in ['yes', 'no']",
)
DECIDED: Final = (
    "previous_step == 'yes'",
    "context.kind == 'a'",
    "previous_step.kind == 'a'",
    "context.n > 3",
    "steps.A == 'yes'",
)


OPERATIONS: Final = (
    ("set", "context.x", "was {{ previous_step }}"),
    ("set", "context.kind", "b"),
    ("set", "context.said", {"deep": 1}),
    ("append", "context.heard", "{{ previous_step }}"),
    ("append", "context.list", "{{ context.n }}"),
    ("merge", "context.user", '{"name": "{{ context.kind }}"}'),
    ("merge", "context.said", {"more": True}),
)
"""What loops and maps do around their rounds."""
COMING_BACK: Final[tuple[Json, ...]] = (
    {},
    {"updates_context": True},
    {"updates_context": True, "config": {"outputs": [{"child": "x", "parent": "y"}]}},
    {"updates_context": True, "config": {"outputs": {"kind": "kind", "n": "x"}}},
    {"sink_to": "x"},
    {"config": {"on_failure": "skip"}},
    {"config": {"on_failure": "continue_with_default"}},
)
GIVEN_TO: Final[tuple[Json, ...]] = (
    {},
    {"inherit_context": True},
    {"inherit_context": True},
    {"input_to": "import_artifacts"},
    {"input_to": "both", "inherit_context": True},
    {"input_to": "scratchpad", "input_scratchpad_key": "q"},
)


class _Flujo:
    """Steps of a blueprint, each with a name of its own."""

    def __init__(self, draw: Draw, files: dict[str, Json] | None = None) -> None:
        self.draw = draw
        self.count = 0
        self.imports: dict[str, Json] = {}
        self.files = {} if files is None else files
        """All blueprints that are imported, by their paths."""

    def blueprint(self, steps: list[Json]) -> dict[str, Json]:
        return (
            {"name": "main"}
            | ({"imports": self.imports} if self.imports else {})
            | {"steps": steps}
        )

    def imported(self, name: str) -> dict[str, Json]:
        """A step that runs another blueprint."""
        draw, path = self.draw, f"part{len(self.files)}.yaml"
        self.files[path] = {}
        child = _Flujo(draw, self.files)
        whole = draw.often(0.2)
        self.files[path] = child.blueprint([child.machine()] if whole else child.steps(2, 1))
        self.imports[f"i{name}"] = path
        made: dict[str, Json] = {"name": name, "uses": f"imports.i{name}"}
        if draw.often(0.4):
            made["input"] = draw.choice(TEMPLATES)
        back = draw.choice(COMING_BACK)
        config = draw.choice(GIVEN_TO) | back.get("config", {})
        return made | back | ({"config": config} if config else {})

    def operations(self) -> Json:
        draw = self.draw
        chosen = draw.sample(OPERATIONS, draw.randint(1, 2))
        return [{verb: {"target": target, "value": value}} for verb, target, value in chosen]

    def around(self, *, loop: bool) -> dict[str, Json]:
        """What a loop or a map says around its rounds."""
        draw = self.draw
        made: dict[str, Json] = {}
        if draw.often(0.3):
            made["init"] = self.operations()
        output = draw.one(
            {"output_template": "so {{ previous_step }}"},
            {"output": {"one": "{{ previous_step }}", "two": "{{ context.kind }}"}},
        )
        if not loop:
            return made | ({"finalize": output} if draw.often(0.3) else {})
        if draw.often(0.3):
            made["state"] = self.operations()
        if draw.often(0.3):
            made["propagation"] = draw.one(
                "context",
                "previous_output",
                "auto",
                {"next_input": "{{ context.kind }} of {{ previous_step }}"},
                '{"was": "{{ previous_step }}"}',
            )
        return made | (output if draw.often(0.25) else {})

    def name(self) -> str:
        self.count += 1
        return chr(ord("A") + self.count - 1) if self.count <= 26 else f"S{self.count}"

    def steps(self, most: int, depth: int = 0, *, asks: bool = False) -> list[Json]:
        made = [self.step(depth) for _ in range(self.draw.randint(1, most))]
        return [self.agent(), *made] if asks else made

    def agent(self) -> dict[str, Json]:
        draw, name = self.draw, self.name()
        made: dict[str, Json] = {"name": name, "uses": f"desk:agent{name}"}
        if draw.often(0.4):
            made["input"] = draw.choice(TEMPLATES)
        made |= draw.one({}, {}, {"sink_to": "x"}, {"updates_context": True})
        made |= draw.one(
            {}, {}, {"config": {"max_retries": draw.randint(0, 2)}}, {"config": {"timeout": 30}}
        )
        if draw.often(0.1):
            made["fallback"] = {"name": f"{name}f", "uses": f"desk:agent{name}f"}
        return made

    def step(self, depth: int) -> dict[str, Json]:
        draw = self.draw
        if depth > 1 or draw.often(0.6):
            return self.agent()
        name = self.name()
        match draw.randint(0, 8):
            case 7 | 8 if len(self.files) < 3:
                return self.imported(name)
            case 0:
                body = {"true": self.steps(1, depth + 1), "false": self.steps(1, depth + 1)}
                return {
                    "kind": "conditional",
                    "name": name,
                    "condition_expression": draw.choice(DECIDED),
                    "branches": body,
                }
            case 1:
                loop = {
                    "body": self.steps(1, depth + 1, asks=True),
                    "max_loops": draw.randint(1, 3),
                    "exit_expression": draw.choice(DECIDED),
                }
                loop |= self.around(loop=True)
                return {"kind": "loop", "name": name, "loop": loop}
            case 2:
                branches = {"one": self.steps(1, depth + 1), "two": self.steps(1, depth + 1)}
                reduce = draw.one({}, {"reduce": "values"}, {"on_branch_failure": "ignore"})
                return {"kind": "parallel", "name": name, "branches": branches} | reduce
            case 3:
                body = {"iterable_input": "list", "body": self.steps(1, depth + 1)}
                return {"kind": "map", "name": name, "map": body | self.around(loop=False)}
            case 4:
                made = {
                    "kind": "hitl",
                    "name": name,
                    "message": draw.one("Go on?", "{{ context.kind }}?"),
                }
                return made | draw.one({}, {"sink_to": "x"})
            case 5:
                skill = draw.one("passthrough", "stringify")
                return {"name": name, "agent": {"id": f"flujo.builtins.{skill}"}} | draw.one(
                    {}, {"input": draw.choice(TEMPLATES)}
                )
        value = draw.one("no", 7, {"name": "Bob"})
        return {
            "name": name,
            "agent": {"id": "flujo.builtins.context_set"},
            "input": {"path": draw.one("x", "user"), "value": value},
        }

    def machine(self) -> dict[str, Json]:
        draw = self.draw
        names = [f"s{index}" for index in range(draw.randint(1, 4))]
        states: dict[str, Json] = {}
        rules: list[Json] = []
        for index, name in enumerate(names):
            later = [*names[index + 1 :], "done"]
            states[name] = {"steps": self.steps(2, 1, asks=True)}
            for _ in range(draw.randint(0, 2)):
                rules.append(
                    {
                        "from": name,
                        "on": "success",
                        "to": draw.choice([*names, "done"]),
                        "when": draw.choice(WHENS),
                    }
                )
            if draw.often(0.9):
                rules.append({"from": name, "on": "success", "to": draw.choice(later)})
            if draw.often(0.5):
                rules.append({"from": name, "on": "failure", "to": draw.choice(later)})
        if draw.often(0.5):
            rules.append({"from": "*", "on": "failure", "to": "failed"})
        return {
            "kind": "StateMachine",
            "name": "machine",
            "start_state": names[0],
            "end_states": ["done", "failed"],
            "states": states,
            "transitions": rules,
        }


def _flujo(draw: Draw) -> Made:
    made = _Flujo(draw)
    steps = [made.machine()] if draw.often() else made.steps(3)
    return Made(made.blueprint(steps), made.files)


GENERATED: Final[Mapping[str, Callable[[Draw], Made]]] = {
    "asl": _native,
    "amazon": lambda draw: Made(_amazon(draw)),
    "codemie": lambda draw: Made(_codemie(draw)),
    "contenox": lambda draw: Made(_contenox(draw)),
    "flujo": _flujo,
}
"""What makes a document of each language."""
