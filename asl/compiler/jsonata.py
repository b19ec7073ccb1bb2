"""Compiler of states in JSONata: `Arguments`, `Assign` and `Output` (Specification 3.6).

An expression reads `$states`, so every closure here takes an object with `input`, and `result` or
`errorOutput` if present.
"""

from typing import Self

from asl.compiler.state import StateCompiler, compile_matcher
from asl.core.profile import Missing
from asl.core.values import Json
from asl.expr.choice_rules import Predicate
from asl.expr.frame import Evaluate, ExpressionFrame, assign_variables, identity
from asl.expr.jsonata import templates
from asl.expr.result_path import InsertResult
from asl.program import Catcher, Finish

__all__ = ["JsonataCompiler"]


class JsonataCompiler(StateCompiler):
    """Compiles the fields of a state in JSONata."""

    jsonata = True
    reads = "input"
    """Member of `$states` that a closure takes; empty for all of it."""

    def compiler_after(self) -> Self:
        twin = self._twin()
        twin.reads = ""
        return twin

    def _query(self, field: str) -> Evaluate | None:
        """Compile the template in *field*; the closure takes `$states`."""
        if field not in self.state:
            return None
        return templates.compile_template(self.state[field], self._site(field))

    def _site(self, field: str) -> templates.ExpressionSite:
        place = self.place + field
        return templates.ExpressionSite(place, self.name, self.effect, self.token, self.profile.aws)

    def input(self) -> Evaluate:
        return identity

    def payload(self) -> Evaluate:
        return self.template("Arguments") or identity

    def template(self, field: str, missing: Missing | None = None) -> Evaluate | None:
        query = self._query(field)
        return query if query is None or not self.reads else _on_input(query)

    def computed_field(self, field: str, kind: str) -> Evaluate | None:
        value = self.state.get(field)
        if type(value) is not str or templates.query_source(value) is None:
            return None
        return _on_input(templates.compile_typed(value, self._site(field), kind))

    def reference(self, field: str) -> Evaluate:
        """Refuse a reference path, which JSONata lacks.

        Raises:
            AssertionError: Always.
        """
        raise AssertionError(f"{field!r} has no place in JSONata (V-ST-07)")

    def expression(self, field: str, text: str) -> Evaluate:
        """Refuse a path, which JSONata lacks.

        Raises:
            AssertionError: Always.
        """
        raise AssertionError(f"{field!r} has no place in JSONata (V-ST-07)")

    def condition(self) -> Predicate:
        written = self.state["Condition"]
        if type(written) is bool:
            return lambda data, frame: written
        return _on_input(templates.compile_typed(written, self._site("Condition"), "boolean"))

    def text(self, field: str) -> Evaluate | None:
        return self.template(field)

    def scalar(self, field: str, missing: Missing | None = None) -> Evaluate | None:
        return self.template(field)

    def finish(
        self, absent: InsertResult | None = None, inserts: tuple[Finish, ...] = ()
    ) -> Finish | None:
        return self._finish("result", absent, inserts) if self.effect else self.leave()

    def placement(self, inserts: tuple[Finish, ...]) -> Finish | None:
        return self.finish(inserts=inserts)

    def leave(self) -> Finish | None:
        return self._finish(None)

    def constant_result(self, result: Json) -> Evaluate | None:
        return None

    def catcher(self) -> Catcher:
        output = self._finish("errorOutput")
        return Catcher(
            compile_matcher(self.state["ErrorEquals"], self.profile),
            output or (lambda raw, error_output, frame: error_output),
            self.steps[self.state["Next"]],
        )

    def _finish(
        self,
        member: str | None,
        absent: InsertResult | None = None,
        inserts: tuple[Finish, ...] = (),
    ) -> Finish | None:
        """Compile `Assign` and `Output`.

        Args:
            member: Name of the result in `$states`.
            absent: Places the result if there is no `Output`.
            inserts: Steps that insert block outputs.
        """
        assign, output = self.limit_variables(self._query("Assign")), self._query("Output")
        if assign is None and output is None and not inserts:
            return absent

        def finish(raw: Json, result: Json, frame: ExpressionFrame) -> Json:
            states = {"input": raw}
            if member is not None:
                states[member] = result
            if output is not None:
                outcome = output(states, frame)
            else:
                outcome = result if absent is None else absent(raw, result, frame)
            for insert in inserts:
                outcome = insert(outcome, result, frame)
            if assign is not None:
                # All expressions of a state see the values from before it (Specification 3.7).
                frame.variables = assign_variables(frame.variables, assign(states, frame))
            return outcome

        return finish


def _on_input(query: Evaluate) -> Evaluate:
    """Turn a closure on `$states` into one on the input."""
    return lambda data, frame: query({"input": data}, frame)
