"""Wait: goes on after a delay or at a point in time (6.6)."""

from collections.abc import Awaitable, Callable, Iterator, Mapping

from asl.core import aws_messages
from asl.core.diagnostics import Finding, Wording
from asl.core.errors import EvaluationFailed, StateError
from asl.core.values import Json, excerpt, is_integer
from asl.expr.frame import Evaluate, ExpressionFrame
from asl.expr.times import Instant, instant, instant_of_java, parse_epoch, seconds_of
from asl.program import Step
from asl.states.base import Compiler, Node, Outline, StateType, expression_text
from asl.states.effects import StateFrame
from asl.states.numbers import compile_number

MAX_DELAY = 2_147_483_647
"""Seconds that a Wait may last; recorded AWS runs fail beyond it."""


def compile_wait(compiler: Compiler, step: Step) -> None:
    """Compile a Wait: the output is the filtered input, whatever the delay."""
    effective_input, when = compiler.input(), _when(compiler)

    def work(data: Json, frame: StateFrame) -> Awaitable[Json]:
        wake = when(effective_input(data, frame), frame)
        if wake - frame.now > MAX_DELAY:
            raise StateError("States.Runtime", "Wait state delay is too long.")
        return frame.effects.timer(frame, wake)

    leave = compiler.leave()
    step.work = work
    step.finish = lambda data, result, frame: (
        effective_input(data, frame)
        if leave is None
        else leave(data, effective_input(data, frame), frame)
    )


def _when(compiler: Compiler) -> Callable[[Json, ExpressionFrame], float]:
    """Return `(effective input, frame) -> wake time` in epoch seconds."""
    state = compiler.state
    if "Seconds" in state:
        seconds = compile_number(
            compiler, "Seconds", 0
        )  # computed, it may be more than a written one
        assert seconds is not None
        return lambda data, frame: frame.now + seconds(data, frame)
    if "SecondsPath" in state:
        return _seconds_path(_given(compiler, "SecondsPath"), state["SecondsPath"])
    if "Timestamp" in state:
        computed = compiler.computed_field("Timestamp", "string")
        if computed is not None:
            return _timestamp(computed, instant_of_java if compiler.profile.aws else instant)
        moment = parse_epoch(state["Timestamp"])
        return lambda data, frame: moment
    return _timestamp_path(_given(compiler, "TimestampPath"), state["TimestampPath"])


def _given(compiler: Compiler, field: str) -> Evaluate:
    """Compile a path whose absence has AWS's own wording for waits."""
    path, text = compiler.reference(field), compiler.state[field]

    def value(data: Json, frame: ExpressionFrame) -> Json:
        try:
            return path(data, frame)
        except StateError as error:
            raise StateError(
                error.name, f"The {field} parameter does not reference an input value: {text}"
            ) from None

    return value


def _seconds_path(path: Evaluate, text: str) -> Callable[[Json, ExpressionFrame], float]:
    def when(data: Json, frame: ExpressionFrame) -> float:
        seconds = path(data, frame)
        if not is_integer(seconds):
            fault = "cannot be parsed as a long value"
        elif seconds < 0:
            fault = "references a negative value"
        else:
            # Beyond the bound the exact number does not matter, and a float may not hold it.
            return frame.now + float(min(seconds, 2 * MAX_DELAY))
        raise StateError(
            "States.Runtime", f"The SecondsPath parameter {fault}: {text} == {_shown(seconds)}"
        )

    return when


def _timestamp_path(path: Evaluate, text: str) -> Callable[[Json, ExpressionFrame], float]:
    def when(data: Json, frame: ExpressionFrame) -> float:
        moment = path(data, frame)
        if type(moment) is not str or instant(moment) is None:
            raise StateError(
                "States.Runtime",
                "The TimestampPath parameter does not reference a valid ISO-8601 extended offset "
                f"date-time format string: {text} == {_shown(moment)}",
            )
        return parse_epoch(moment)

    return when


def _timestamp(
    computed: Evaluate, read: Callable[[Json], Instant | None]
) -> Callable[[Json, ExpressionFrame], float]:
    def when(data: Json, frame: ExpressionFrame) -> float:
        moment = computed(data, frame)
        found = read(moment)
        if found is None:
            raise EvaluationFailed(
                "The Timestamp field cannot be parsed as an ISO-8601 extended offset date-time "
                f"format string: {_shown(moment)}",
                "Timestamp",
            )
        return seconds_of(found)

    return when


def _shown(value: Json) -> str:
    return value if type(value) is str and len(value) < 200 else excerpt(value, 200)


def check_wait(node: Node) -> Iterator[Finding]:
    """Exactly one of the four ways to say how long; a date that exists."""
    forms = ("Seconds", "SecondsPath", "Timestamp", "TimestampPath")
    given = [form for form in forms if form in node.value]
    if not given:
        yield Finding(
            "V-WAIT-01",
            f"state {node.name!r} has no time to wait for",
            node.pointer,
            hint=f"add one of {', '.join(forms)}",
            at_key=True,
            aws=Wording(aws_messages.exactly_one(*forms)),
        )
    if len(given) > 1:
        yield Finding(
            "V-WAIT-01",
            f"{' and '.join(map(repr, given))} exclude each other",
            node.pointer,
            "keep one of them",
            related=tuple((node.at(form), f"{form!r} is here") for form in given),
            at_key=True,
            aws=Wording(aws_messages.at_most_one(*forms)),
        )
    moment = node.value.get("Timestamp")
    if type(moment) is str and not moment.startswith("{%") and instant(moment) is None:
        yield Finding(
            "V-WAIT-03",
            f"{moment!r} names no real date and time",
            node.at("Timestamp"),
            'a timestamp looks like "2030-01-31T13:45:00Z"',
            aws=Wording(aws_messages.NO_TIMESTAMP),
        )


def describe_wait(state: Mapping[str, Json]) -> Iterator[str]:
    """Yield how long or until when the state waits."""
    for field in ("Seconds", "SecondsPath", "Timestamp", "TimestampPath"):
        if field in state:
            value = expression_text(state[field])
            yield f"until {value}" if field.startswith("Timestamp") else f"{value} seconds"


WAIT = StateType(
    "Wait",
    compile_wait,
    check_wait,
    aws=True,
    waits=True,
    outline=Outline.OVAL,
    describe=describe_wait,
)
