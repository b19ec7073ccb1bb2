"""Static checks of intrinsic calls: V-INTR-01, 03, 05, 06, 07."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from asl.core.profile import Profile
from asl.core.values import type_name
from asl.expr.intrinsics.grammar import IntrinsicCall, LiteralArgument, TextArgument, function_of
from asl.expr.intrinsics.strings import (
    ALGORITHMS,
    FORMAT,
    canonical_algorithm,
    stray_brace,
    template,
)
from asl.expr.intrinsics.table import IntrinsicFunction


class CallFinding(NamedTuple):
    """A finding at `offset` (from 0) of the call's text; its code gives the severity."""

    code: str
    message: str
    offset: int
    hint: str | None = None


def check(call: IntrinsicCall, profile: Profile) -> Iterator[CallFinding]:
    """Yield the findings for a parsed call and the calls within it in a profile."""
    function = function_of(call)
    fault = count_fault(call)
    if function.agent_native and not profile.agent_native:
        yield CallFinding("V-INTR-01", f"{call.name} is not a function of AWS", call.offset)
    elif fault is not None:
        yield CallFinding("V-INTR-03", fault, call.offset)
    else:
        yield from _kinds(call, function)
        if call.name in _PARTICULARS:
            yield from _PARTICULARS[call.name](call, profile)
    for argument in call.arguments:
        if isinstance(argument, IntrinsicCall):
            yield from check(argument, profile)


def count_fault(call: IntrinsicCall) -> str | None:
    """Return the message for a wrong number of arguments, None for a correct one."""
    function = function_of(call)
    given = len(call.arguments)
    if given < function.minimum or (function.maximum is not None and given > function.maximum):
        return f"{call.name} takes {_count(function)}, not {given}"
    return None


def _count(function: IntrinsicFunction) -> str:
    least, most = function.minimum, function.maximum
    if most is None:
        return f"at least {least} {_plural(least)}"
    if least == most:
        return f"{most or 'no'} {_plural(most)}"
    return f"{least} to {most} arguments"


def _plural(count: int) -> str:
    return "argument" if count == 1 else "arguments"


def _kinds(call: IntrinsicCall, function: IntrinsicFunction) -> Iterator[CallFinding]:
    """Yield literal arguments of a type that the function always refuses."""
    for index, argument in enumerate(call.arguments):
        if isinstance(argument, LiteralArgument | TextArgument):
            wanted = function.takes[min(index, len(function.takes) - 1)]
            found = type_name(argument.value)
            if found not in wanted:
                kinds = " or ".join(sorted(wanted))
                yield CallFinding(
                    "V-INTR-03",
                    f"argument {index + 1} of {call.name} must be of type {kinds}, found {found}",
                    argument.offset,
                )


def _known(call: IntrinsicCall, index: int) -> LiteralArgument | TextArgument | None:
    """Return the argument if it exists and is a literal."""
    argument = call.arguments[index] if index < len(call.arguments) else None
    return argument if isinstance(argument, LiteralArgument | TextArgument) else None


def _json_merge(call: IntrinsicCall, profile: Profile) -> Iterator[CallFinding]:
    deep = _known(call, 2)
    if isinstance(deep, LiteralArgument) and deep.value is True:
        yield CallFinding(
            "V-INTR-03",
            "the third argument of States.JsonMerge must be false: it only merges shallowly",
            deep.offset,
            None if profile.aws else "use States.Merge for a deep merge",
        )


def _hash(call: IntrinsicCall, profile: Profile) -> Iterator[CallFinding]:
    algorithm = _known(call, 1)
    if not isinstance(algorithm, TextArgument) or algorithm.value in ALGORITHMS:
        return
    canonical = canonical_algorithm(algorithm.value)
    if canonical is None:
        yield CallFinding(
            "V-INTR-03",
            f"{algorithm.value!r} is not a hash algorithm",
            algorithm.offset,
            f"use one of {', '.join(ALGORITHMS)}",
        )
    else:
        yield CallFinding(
            "V-INTR-06",
            f"AWS does not know the hash algorithm {algorithm.value!r}",
            algorithm.offset,
            f"write '{canonical}'",
        )


def _math_add(call: IntrinsicCall, profile: Profile) -> Iterator[CallFinding]:
    if len(call.arguments) > 2:
        yield CallFinding(
            "V-INTR-06", "States.MathAdd of AWS takes exactly 2 arguments", call.offset
        )


def _array_range(call: IntrinsicCall, profile: Profile) -> Iterator[CallFinding]:
    if len(call.arguments) == 2:
        yield CallFinding(
            "V-INTR-06",
            "States.ArrayRange of AWS takes exactly 3 arguments",
            call.offset,
            "add the step 1",
        )
    step = _known(call, 2)
    if isinstance(step, LiteralArgument) and step.value == 0:
        yield CallFinding("V-INTR-03", "the step of States.ArrayRange must not be 0", step.offset)


def _math_random(call: IntrinsicCall, profile: Profile) -> Iterator[CallFinding]:
    given = len(call.arguments)
    if given == 1 or (profile.aws and given == 0):
        counts = "2 or 3" if profile.aws else "0, 2 or 3"
        message = f"States.MathRandom takes {counts} arguments, not {given}"
        yield CallFinding("V-INTR-03", message, call.offset)


def _format(call: IntrinsicCall, profile: Profile) -> Iterator[CallFinding]:
    text = call.arguments[0]
    if not isinstance(text, TextArgument):
        return
    brace = stray_brace(text.raw, profile)
    if brace is not None:
        yield CallFinding(
            "V-INTR-05",
            "a { that begins no {} must be escaped on AWS",
            text.offset + 1 + brace,
            r"write \{ and \} for braces that are text",
        )
    places = sum(type(part) is not str for part in template(text.raw))
    given = len(call.arguments) - 1
    if places != given:
        yield CallFinding(
            "V-INTR-07",
            f"the template has {places} {{}} for {given} {_plural(given)}, so the call fails",
            text.offset,
        )


_PARTICULARS: Mapping[str, Callable[[IntrinsicCall, Profile], Iterator[CallFinding]]] = {
    "States.JsonMerge": _json_merge,
    "States.Hash": _hash,
    "States.MathAdd": _math_add,
    "States.ArrayRange": _array_range,
    "States.MathRandom": _math_random,
    FORMAT: _format,
}
