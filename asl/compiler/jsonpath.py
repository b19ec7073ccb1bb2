"""Compiler of states in JSONPath: `InputPath`, `Parameters`, `ResultSelector`, `ResultPath`,
`OutputPath`.

The input and output processing of all state types is composed here, from only the steps that a
state has (Specification 3.1).
"""

from collections.abc import Mapping

from asl.compiler.state import StateCompiler, compile_matcher
from asl.core.errors import StateError
from asl.core.profile import Missing
from asl.core.values import Json
from asl.expr import intrinsics
from asl.expr.choice_rules import Operand, Predicate, compile_rule
from asl.expr.frame import Evaluate, ExpressionFrame, assign_variables, constant, identity
from asl.expr.paths import Path, PathUse, compile_path, parse_path
from asl.expr.result_path import (
    InsertResult,
    compile_constant_at,
    compile_result_path,
    report_conflict,
)
from asl.expr.templates import SUFFIX, compile_template, compile_text, is_path
from asl.program import Catcher, Finish

__all__ = ["JsonPathCompiler"]

_NULL_INPUT = "Unable to apply Path transformation to null or empty input."


class JsonPathCompiler(StateCompiler):
    """Compiles the fields of a state in JSONPath."""

    # Single texts

    def reference(self, field: str) -> Evaluate:
        return self._path(field, self.state[field])

    def expression(self, field: str, text: str) -> Evaluate:
        # Fail builds no result, so a missing path there is an error of the definition.
        missing = Missing.RUNTIME if self.own.type == "Fail" else self.profile.template
        return self._expression(field, text, missing)

    def computed_field(self, field: str, kind: str) -> Evaluate | None:
        return None

    def condition(self) -> Predicate:
        operand = Operand(self._variable, self._computed_variable, self._compared)
        return compile_rule(self.state, operand)

    def _path(
        self,
        field: str,
        text: str,
        missing: Missing = Missing.RUNTIME,
        call: str | None = None,
    ) -> Evaluate:
        use = PathUse(
            field, self.name, missing, self.effect, self.token, call, aws=self.profile.aws
        )
        return compile_path(self._parsed(text), use)

    def _parsed(self, text: str) -> Path:
        return parse_path(text, self.profile.aws)

    def _variable(self, text: str, strict: bool) -> Evaluate:
        if not strict:
            found = self._path("Variable", text, self.profile.variable)
            return self._transforming(found, text)
        path = self._path("Variable", text)
        return path if self._parsed(text).definite else _some(path, text)

    def _transforming(self, found: Evaluate, text: str) -> Evaluate:
        """Refuse the input null as AWS does, whatever the path."""
        if not self.profile.aws or self._parsed(text).root != "$":
            return found

        def transformed(data: Json, frame: ExpressionFrame) -> Json:
            if data is None:
                raise StateError("States.Runtime", _NULL_INPUT)
            return found(data, frame)

        return transformed

    def _compared(self, text: str) -> Evaluate:
        return self._path("Variable", text)

    def _computed_variable(self, text: str) -> Evaluate:
        return self._expression("Variable.$", text, self.profile.variable)

    def _expression(self, field: str, text: str, missing: Missing) -> Evaluate:
        if is_path(text, self.profile.aws):
            found = self._path(field, text, missing)
            return self._transforming(found, text) if field.endswith(SUFFIX) else found

        def argument(path: str, offset: int) -> Evaluate:
            return self._path(field, path, missing, text)

        def optional(path: str, offset: int) -> Evaluate:
            return self._path(field, path, Missing.NULL)

        return intrinsics.compile(intrinsics.parse(text), argument, optional, self.profile)

    # Input

    def input(self) -> Evaluate:
        return self._filter(self.state, "InputPath") or identity

    def payload(self) -> Evaluate:
        effective, parameters = self.input(), self.template("Parameters")
        if parameters is None:
            return effective
        if "InputPath" not in self.state:
            return parameters
        template = parameters
        return lambda data, frame: template(effective(data, frame), frame)

    def _filter(self, holder: Mapping[str, Json], field: str) -> Evaluate | None:
        if field not in holder:
            return None
        text = holder[field]
        return constant({}) if text is None else self._path(field, text)

    def template(self, field: str, missing: Missing | None = None) -> Evaluate | None:
        if field not in self.state:
            return None
        return self._template(self.state[field], missing or self.profile.template)

    def _template(self, template: Json, missing: Missing) -> Evaluate:
        return compile_template(
            template, lambda field, text: self._expression(field, text, missing)
        )

    def text(self, field: str) -> Evaluate | None:
        if f"{field}.$" in self.state:
            return self.expression(field, self.state[f"{field}.$"])
        return self._text(field, self.state[field]) if field in self.state else None

    def _text(self, field: str, written: Json) -> Evaluate:
        """Compile a text, or every text in a structure (Specification 3.8)."""
        missing = self.profile.template
        if type(written) is str:
            return compile_text(written, lambda text: self._expression(field, text, missing))
        if type(written) is list:
            parts = [self._text(field, part) for part in written]
            return lambda data, frame: [part(data, frame) for part in parts]
        if type(written) is not dict:
            return constant(written)
        fields = [
            (key.removesuffix(SUFFIX), self._expression(key, value, missing))
            if key.endswith(SUFFIX)
            else (key, self._text(field, value))
            for key, value in written.items()
        ]
        return lambda data, frame: {key: value(data, frame) for key, value in fields}

    def scalar(self, field: str, missing: Missing | None = None) -> Evaluate | None:
        if f"{field}.$" in self.state:
            text = self.state[f"{field}.$"]
            return self._expression(field, text, missing or self.profile.template)
        return constant(self.state[field]) if field in self.state else None

    # Output

    def finish(
        self, absent: InsertResult | None = None, inserts: tuple[Finish, ...] = ()
    ) -> Finish | None:
        return _finish(
            self.template("ResultSelector"),
            self._result_path() if "ResultPath" in self.state else absent,
            self._assign(),
            self._filter(self.state, "OutputPath"),
            inserts,
        )

    def placement(self, inserts: tuple[Finish, ...]) -> Finish | None:
        place = self._result_path() if "ResultPath" in self.state else None
        return _finish(self.template("ResultSelector"), place, None, None, inserts)

    def leave(self) -> Finish | None:
        # A choice rule has an Assign of its own; the OutputPath is its state's.
        return _finish(None, None, self._assign(), self._filter(self.whole, "OutputPath"))

    def constant_result(self, result: Json) -> Evaluate | None:
        if self.state.get("ResultPath") is None or not self.state.keys().isdisjoint(_SHAPING):
            return None
        path = self._parsed(self.state["ResultPath"])
        placed = compile_constant_at(path, result)
        return report_conflict(placed, path) if placed and self.profile.aws else placed

    def catcher(self) -> Catcher:
        output = _finish(None, self._result_path(), self._assign(), None)
        return Catcher(
            compile_matcher(self.state["ErrorEquals"], self.profile),
            output or (lambda raw, error_output, frame: error_output),
            self.steps[self.state["Next"]],
        )

    def _result_path(self) -> InsertResult | None:
        text = self.state.get("ResultPath", "$")
        path = None if text is None else self._parsed(text)
        place = compile_result_path(path)
        return report_conflict(place, path) if place and path and self.profile.aws else place

    def _assign(self) -> Evaluate | None:
        return self.limit_variables(self.template("Assign"))


_SHAPING = ("ResultSelector", "Assign", "OutputPath")
"""Fields with which a literal result is more than a value at its place."""


def _some(nodes: Evaluate, text: str) -> Evaluate:
    """Make an indefinite path that matches nothing a missing value, for `IsPresent`."""

    def some(data: Json, frame: ExpressionFrame) -> Json:
        found = nodes(data, frame)
        if not found:
            raise StateError("States.Runtime", f"'{text}' matches nothing")
        return found

    return some


def _finish(
    select: Evaluate | None,
    place: InsertResult | None,
    assign: Evaluate | None,
    output: Evaluate | None,
    inserts: tuple[Finish, ...] = (),
) -> Finish | None:
    """Compose the steps from a result to the output, without those that are absent."""
    if select is None and assign is None and output is None and not inserts:
        return place

    def finish(raw: Json, answer: Json, frame: ExpressionFrame) -> Json:
        result = answer if select is None else select(answer, frame)
        outcome = result if place is None else place(raw, result, frame)
        for insert in inserts:
            outcome = insert(outcome, answer, frame)
        if output is not None:
            outcome = output(outcome, frame)
        if assign is not None:
            # All expressions of a state see the values from before it (Specification 3.7).
            frame.variables = assign_variables(frame.variables, assign(result, frame))
        return outcome

    return finish
