"""Approval: requests a decision of people and continues by it (6.9, companion 1)."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from asl.core.errors import StateError
from asl.core.values import Json, compact
from asl.expr.choice_rules import Predicate
from asl.expr.frame import Evaluate, ExpressionFrame, assign_variables
from asl.expr.paths import PathUse, compile_path, parse_path
from asl.expr.result_path import compile_result_path, insert_at
from asl.program import Finish, Step
from asl.states.approval_checks import check_approval
from asl.states.approval_fields import (
    parse_approver_policy,
    parse_channels,
    parse_options,
    parse_waiting_plan,
)
from asl.states.base import Compiler, Outline, StateType, Tone, Transitions, expression_text
from asl.states.effects import RequestContent, StateFrame
from asl.states.settings import BlockSettings, invalid_field

EDITED = "$.editedContent"


def compile_approval(compiler: Compiler, step: Step) -> None:
    """Compile an Approval: the request, the placement of the decision, the next state."""
    ask = _question(compiler)

    async def work(data: Json, frame: StateFrame) -> Json:
        return await frame.effects.request(frame, ask(data, frame))

    step.work = work
    route = _Route(compiler, step)
    step.route = route.next
    step.finish = route.finish


# The request

_Fill: TypeAlias = Callable[[dict[str, Json], Json, ExpressionFrame], None]
"""Adds a part of the state to the request: `(request, effective input, frame)`."""


def _question(compiler: Compiler) -> Callable[[Json, StateFrame], RequestContent]:
    """Compile the request, with its members in order."""
    effective_input = compiler.input()
    prompt, options = compiler.text("Prompt"), compiler.template("Options")
    assert prompt is not None
    editable, policy = _editable(compiler), _policy(compiler)
    items, channels = _items(compiler), compiler.template("Notifications")
    plan, merges = _plan(compiler), "ResultPath" not in compiler.state

    def ask(raw: Json, frame: StateFrame) -> RequestContent:
        data = effective_input(raw, frame)
        shown = prompt(data, frame)
        if type(shown) not in (str, dict):
            shown = compact(shown)
        body: dict[str, Json] = {
            "state": compiler.name,
            "path": [*frame.place, compiler.name],
            "prompt": shown,
            "promptText": _text(shown),
            "options": parse_options(None if options is None else options(data, frame)),
        }
        if editable is not None:
            editable(body, data, frame)
        limits = plan(data, frame)
        if merges and type(raw) is dict and raw:
            limits["keeps"] = list(raw)
        if "written" in limits:
            body["timeout"] = limits.pop("written")
        if policy is not None:
            policy(body, data, frame)
        if items is not None:
            items(body, data, frame)
        if channels is not None:
            found = BlockSettings({"Notifications": channels(data, frame)}, compiler.jsonata)
            body["notifications"], limits["reminders"] = parse_channels(found)
        body["input"] = data
        return RequestContent("approval", body, limits)

    return ask


def _text(prompt: Json) -> str:
    if type(prompt) is str:
        return prompt
    parts = [prompt[key] for key in ("Title", "Description") if key in prompt]
    return ": ".join(part if type(part) is str else compact(part) for part in parts)


def _editable(compiler: Compiler) -> _Fill | None:
    if "Editable" not in compiler.state:
        return None
    written: Mapping[str, Json] = compiler.state["Editable"]
    target = written.get("ResultPath", EDITED)
    paths = [parse_path(text) for text in written.get("Fields", ())]
    last = [path.segments[-1] if path.segments else path.text for path in paths]
    use = PathUse("Editable.Fields", compiler.name, compiler.profile.template, True, False)
    fields = [
        (
            str(key) if last.count(key) == 1 else path.text.removeprefix("$."),
            compile_path(path, use),
        )
        for key, path in zip(last, paths, strict=True)
    ]

    def fill(body: dict[str, Json], data: Json, frame: ExpressionFrame) -> None:
        values = {key: value(data, frame) for key, value in fields}
        body["editable"] = {"fields": values, "resultPath": target}

    return fill


def _policy(compiler: Compiler) -> _Fill | None:
    policy, alias = compiler.template("Policy"), compiler.scalar("RequiredApprovers")
    if policy is None and alias is None:
        return None

    def fill(body: dict[str, Json], data: Json, frame: StateFrame) -> None:
        written = {} if policy is None else policy(data, frame)
        rules = BlockSettings(written, compiler.jsonata, "Policy.")
        other = None if alias is None else alias(data, frame)
        own = BlockSettings({"RequiredApprovers": other}, compiler.jsonata)
        body["policy"] = parse_approver_policy(
            rules, own.count("RequiredApprovers"), frame.requestor
        )

    return fill  # type: ignore[return-value]  # every frame of a state knows the requestor


def _items(compiler: Compiler) -> _Fill | None:
    if "ItemsPath" not in compiler.state:
        return None
    items, batch = compiler.reference("ItemsPath"), compiler.template("BatchMode")

    def fill(body: dict[str, Json], data: Json, frame: ExpressionFrame) -> None:
        found = items(data, frame)
        if type(found) is not list:
            raise invalid_field("ItemsPath", "the path of an array", found)
        written = {} if batch is None else batch(data, frame)
        rules = BlockSettings(written, compiler.jsonata, "BatchMode.")
        body["items"], body["batch"] = found, {}
        if rules.flag("AllowPartial"):
            body["batch"]["allowPartial"] = True
        least = rules.number("MinApproved", 0, 1)
        if least is not None:
            body["batch"]["minApproved"] = least

    return fill


# Timeout and escalation


def _plan(compiler: Compiler) -> Evaluate:
    timeout, action = compiler.scalar("Timeout"), compiler.scalar("OnTimeout")
    escalation = compiler.template("Escalation")
    message = compiler.compiler_at("Escalation").text("Message")
    otherwise = "Default" if "Default" in compiler.state else "Fail"

    def plan(data: Json, frame: ExpressionFrame) -> Json:
        rules = {} if escalation is None else escalation(data, frame)
        written: dict[str, Json] = {}
        if timeout is not None:
            written["Timeout"] = timeout(data, frame)
            written["OnTimeout"] = None if action is None else action(data, frame)
        text = None if message is None else message(data, frame)
        return parse_waiting_plan(BlockSettings(written, compiler.jsonata), otherwise, rules, text)

    return plan


# The decision


class _Way(NamedTuple):
    """The next state for a decision, and the assignments and output of its rule."""

    step: Step | None
    leave: Finish | None = None
    output: bool = False
    """Whether the rule has an `Output`."""


class _Route:
    """The placement of a decision in the data, and its next state (companion, 1.5 and 1.6)."""

    def __init__(self, compiler: Compiler, step: Step) -> None:
        state = compiler.state
        self.name, self.step = compiler.name, step
        count = len(state.get("Choices", ()))
        self.rules = [self._rule(compiler.compiler_at("Choices", index)) for index in range(count)]
        self.default = compiler.step(state["Default"]) if "Default" in state else None
        self.ends = state.get("End") is True
        self.edited = _place(state.get("Editable", {}).get("ResultPath", EDITED))
        path = state.get("ResultPath")
        self.view = None if path is None else compile_result_path(parse_path(path))
        self.replaces = path is not None and self.view is None
        """Whether the record is the whole output."""
        self.leave = compiler.finish(_merged)

    def _rule(self, compiler: Compiler) -> tuple[Predicate, _Way]:
        rule = compiler.state
        leave = compiler.leave() if "Assign" in rule or "Output" in rule else None
        way = _Way(compiler.step(rule["Next"]), leave, "Output" in rule)
        return _lenient(compiler.condition()), way

    def next(self, raw: Json, answer: Json, frame: ExpressionFrame) -> Step | None:
        """Return the next state; None if the machine ends."""
        return self._way(raw, answer, frame).step

    def _way(self, raw: Json, answer: Json, frame: ExpressionFrame) -> _Way:
        if "default" in answer:
            return _Way(self.default)
        view = self._view(raw, answer, frame)
        for holds, way in self.rules:
            if holds(view, frame):
                return way
        if self.default is not None:
            return _Way(self.default)
        if self.step.next is None and not self.ends:
            raise StateError(
                "States.NoChoiceMatched",
                f"Failed to transition out of the state '{self.name}': no rule of 'Choices' holds "
                f"for {answer['record']['approval']!r}, and there is no 'Default' and no 'Next'",
            )
        return _Way(self.step.next)

    def _view(self, raw: Json, answer: Json, frame: ExpressionFrame) -> Json:
        """Return the data for the rules: the record merged at the root and at `ResultPath`."""
        record = answer["record"]
        if self.replaces:
            return record
        merged = _merged(self._base(raw, answer), record, frame)
        return merged if self.view is None else self.view(merged, record, frame)

    def _base(self, raw: Json, answer: Json) -> Json:
        """Return the raw input with the edited values."""
        return insert_at(raw, self.edited, answer["edited"]) if "edited" in answer else raw

    def finish(self, raw: Json, answer: Json, frame: ExpressionFrame) -> Json:
        """Return the output; assign the variables of the state and of the chosen rule."""
        way, base = self._way(raw, answer, frame), self._base(raw, answer)
        before, record = frame.variables, answer["record"]
        output = record if self.leave is None else self.leave(base, record, frame)
        if way.leave is not None:
            after, frame.variables = frame.variables, before
            view = self._view(raw, answer, frame)
            given = way.leave(view, view, frame)
            output = given if way.output else output
            values = getattr(frame.variables, "assigned", {})
            own = {} if after is before else getattr(after, "assigned", {})
            frame.variables = assign_variables(before, {**own, **values})
        return output


def _place(path: str) -> tuple[Json, ...]:
    return parse_path(path).segments


def _merged(raw: Json, record: Json, frame: ExpressionFrame) -> Json:
    """Merge the record into the input; it replaces an input that is no object."""
    return {**raw, **record} if type(raw) is dict else record


def _lenient(holds: Predicate) -> Predicate:
    """Return a rule that is false if it reads an absent value; answers have optional keys."""

    def lenient(data: Json, frame: ExpressionFrame) -> bool:
        try:
            return holds(data, frame)
        except StateError:
            return False

    return lenient


def describe_approval(state: Mapping[str, Json]) -> Iterator[str]:
    """Yield the options and the timeout."""
    options = state.get("Options")
    if type(options) is list:
        yield " / ".join(map(str, options))
    if "Timeout" in state:
        yield f"within {expression_text(state['Timeout'])}"


APPROVAL = StateType(
    "Approval",
    compile_approval,
    check_approval,
    effect=True,
    waits=True,
    transitions=Transitions.RULES_OR_NEXT,
    insertions=(("Prompt",), ("Escalation", "Message")),
    outline=Outline.HOUSE,
    tone=Tone.HUMAN,
    describe=describe_approval,
)
