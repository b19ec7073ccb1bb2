"""Compile intrinsic calls to closures (Specification 5)."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias

from asl.core.errors import ExpressionFault, StateError
from asl.core.profile import Profile
from asl.core.values import Json
from asl.core.work import WorkExceeded
from asl.expr.frame import Evaluate, ExpressionFrame, constant
from asl.expr.intrinsics.arguments import SMALL, IntrinsicFailure
from asl.expr.intrinsics.checks import count_fault
from asl.expr.intrinsics.grammar import (
    Argument,
    IntrinsicCall,
    LiteralArgument,
    PathArgument,
    TextArgument,
    function_of,
)
from asl.expr.intrinsics.strings import FORMAT, fill, format_, template, unmatched_brace

CompilePath: TypeAlias = Callable[[str, int], Evaluate]
"""Compiles a path argument from its text and its offset in the call."""


def compile(
    call: IntrinsicCall, compile_path: CompilePath, compile_optional: CompilePath, profile: Profile
) -> Evaluate:
    """Compile a call. Calls of constants are computed during compilation.

    Args:
        call: The parsed call.
        compile_path: Compiles path arguments.
        compile_optional: Compiles paths whose missing value is null: the arguments of
            `States.Coalesce`.
        profile: The profile.

    Returns:
        The closure. It raises StateError: States.IntrinsicFailure, in the profile `aws`
        States.Runtime (AWS, recorded).

    Raises:
        ExpressionFault: V-INTR-03 for a wrong number of arguments, or an error of the path
            compilers.
    """
    evaluate = _evaluate(_Compiler(compile_path, compile_optional, profile).call(call))
    return _as_on_aws(evaluate, call.text) if profile.aws else evaluate


def _as_on_aws(evaluate: Evaluate, text: str) -> Evaluate:
    def attempt(data: Json, frame: ExpressionFrame) -> Json:
        try:
            return evaluate(data, frame)
        except IntrinsicFailure as failed:
            words = f"There was an error while evaluating the intrinsic function: {text}"
            raise StateError("States.Runtime", f"{words}. {failed.aws_message}") from None

    return attempt


_Part: TypeAlias = Evaluate | LiteralArgument
"""A compiled argument: a closure or a constant."""


def _evaluate(part: _Part) -> Evaluate:
    return constant(part.value) if isinstance(part, LiteralArgument) else part


class _Compiler:
    def __init__(
        self, compile_path: CompilePath, compile_optional: CompilePath, profile: Profile
    ) -> None:
        self.compile_path = compile_path
        self.compile_optional = compile_optional
        self.profile = profile

    def call(self, call: IntrinsicCall) -> _Part:
        fault = count_fault(call)
        if fault is not None:
            raise ExpressionFault(fault, call.offset, "V-INTR-03")
        function = function_of(call)
        arguments = call.arguments
        apply = function.call
        if call.name == FORMAT and isinstance(arguments[0], TextArgument):
            raw = arguments[0].raw
            refused = self.profile.aws and unmatched_brace(raw)
            known = partial(format_, self.profile, raw)
            apply = known if refused else partial(fill, self.profile, template(raw))
            arguments = arguments[1:]
        elif function.needs_profile:
            apply = partial(apply, self.profile)
        path = self.compile_optional if function.missing_is_null else self.compile_path
        parts = [self.argument(argument, path) for argument in arguments]
        if function.needs_frame:
            return _applied_in_frame(call.name, apply, [_evaluate(part) for part in parts])
        if all(isinstance(part, LiteralArgument) for part in parts):
            with suppress(StateError):  # a call that fails must fail when the state runs
                values = [part.value for part in parts if isinstance(part, LiteralArgument)]
                return LiteralArgument(apply(*values), call.offset)
        return _counted(call.name, apply, parts) if function.counted else _applied(apply, parts)

    def argument(self, argument: Argument, path: CompilePath) -> _Part:
        match argument:
            case PathArgument(text, offset):
                return path(text, offset)
            case TextArgument(value, _, offset):
                return LiteralArgument(value, offset)
            case IntrinsicCall():
                return self.call(argument)
            case LiteralArgument():
                return argument


def _applied(apply: Callable[..., Json], parts: Sequence[_Part]) -> Evaluate:
    """Apply a function to its arguments; the usual numbers of arguments need no list."""
    match parts:
        case [only]:
            one = _evaluate(only)
            return lambda data, frame: apply(one(data, frame))
        case [first, LiteralArgument(value)]:
            one = _evaluate(first)
            return lambda data, frame: apply(one(data, frame), value)
        case [first, second]:
            one, two = _evaluate(first), _evaluate(second)
            return lambda data, frame: apply(one(data, frame), two(data, frame))
        case [first, second, third]:
            one, two, three = _evaluate(first), _evaluate(second), _evaluate(third)
            return lambda data, frame: apply(one(data, frame), two(data, frame), three(data, frame))
    several = [_evaluate(part) for part in parts]
    return lambda data, frame: apply(*[part(data, frame) for part in several])


CHARACTERS: Final = 64
MEMBERS: Final = 8
"""Members handled in one step."""
SIZED: Final = (str, list, dict)


def _counted(name: str, apply: Callable[..., Json], parts: Sequence[_Part]) -> Evaluate:
    """Apply a function and count its work by the sizes of its arguments and of its result."""

    def count(sized: Json, frame: ExpressionFrame, made: bool = False) -> None:
        size = len(sized) if type(sized) is str else len(sized) * CHARACTERS // MEMBERS
        try:
            frame.work.spend(size // CHARACTERS)
            if made:
                frame.work.built += size
        except WorkExceeded as exceeded:
            raise _too_much_work(name, exceeded) from None

    if len(parts) == 1:
        only = _evaluate(parts[0])

        def evaluate_one(data: Json, frame: ExpressionFrame) -> Json:
            value = only(data, frame)
            if type(value) in SIZED and len(value) > SMALL:
                count(value, frame)
            result = apply(value)
            if type(result) in SIZED and len(result) > SMALL:
                count(result, frame, made=True)
            return result

        return evaluate_one
    several = [_evaluate(part) for part in parts]

    def evaluate(data: Json, frame: ExpressionFrame) -> Json:
        values = [part(data, frame) for part in several]
        for value in values:
            if type(value) in SIZED and len(value) > SMALL:
                count(value, frame)
        result = apply(*values)
        if type(result) in SIZED and len(result) > SMALL:
            count(result, frame, made=True)
        return result

    return evaluate


def _too_much_work(name: str, exceeded: WorkExceeded) -> StateError:
    return StateError("States.Runtime", f"{name}: {exceeded}")


def _applied_in_frame(name: str, apply: Callable[..., Json], parts: Sequence[Evaluate]) -> Evaluate:
    def evaluate(data: Json, frame: ExpressionFrame) -> Json:
        try:
            return apply(frame, *[part(data, frame) for part in parts])
        except WorkExceeded as exceeded:
            raise _too_much_work(name, exceeded) from None

    return evaluate
