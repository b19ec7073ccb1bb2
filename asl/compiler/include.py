"""The machine of an Include: compiled once, or for each set of values of its open parameters.

Parameters known before the run are filled in before. A parameter that depends on the data of a run
(Specification 9.2) is filled in when the Include runs; the machines of the latest values are
cached.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from asl.compose.expansion import instantiate
from asl.compose.parameters import Parameter, declared_parameters
from asl.compose.substitution import OpenArgument, Substitution
from asl.core.codes import lookup
from asl.core.diagnostics import Finding
from asl.core.document import Document
from asl.core.errors import StateError
from asl.core.profile import Profile
from asl.core.source import Source
from asl.core.values import Json, compact
from asl.program import Machine, MachineOf, Step

__all__ = ["compile_include"]

KEPT: Final = 64
"""Number of cached machines of one Include."""
KEY: Final = 4096
"""Maximum length of arguments for which a machine is cached."""


def compile_include(
    step: Step,
    template: Mapping[str, Json],
    profile: Profile,
    compile: Callable[[Mapping[str, Json]], Machine],
    machines: Mapping[str, Machine],
) -> MachineOf:
    """Compile the document of an Include.

    Args:
        step: The Include.
        template: The included document.
        profile: Rules of the language.
        compile: Compiles a machine in its place and adds it and those within it to *machines*.
        machines: All machines of the workflow, by pointer.
    """
    parameters = declared_parameters(template)
    if not parameters:
        machine = compile(template)
        return lambda arguments: machine
    filled = _IncludedMachines(template, parameters, profile, compile, machines)
    step.fill = filled.machines
    return filled.machine


class _IncludedMachines:
    """Machines of a template whose parameters depend on the data of a run."""

    def __init__(
        self,
        template: Mapping[str, Json],
        parameters: Mapping[str, Parameter],
        profile: Profile,
        compile: Callable[[Mapping[str, Json]], Machine],
        compiled: Mapping[str, Machine],
    ) -> None:
        self.template = template
        self.parameters = parameters
        self.profile = profile
        self.compile = compile
        self.compiled = compiled
        self.cache: dict[str, tuple[Machine, Mapping[str, Machine]]] = {}
        filling = Substitution(dict.fromkeys(parameters, OpenArgument(dynamic=True)))
        filling.document(template)
        self.checked = filling.checked

    def machine(self, arguments: Mapping[str, Json]) -> Machine:
        """Return the machine for the arguments of a run."""
        values = {name: self._value(name, arguments.get(name)) for name in self.parameters}
        return self._made(values)[0]

    def machines(self, values: Mapping[str, Json]) -> Mapping[str, Machine]:
        """Return the machine for the values of the parameters, and those within it, by pointer."""
        return self._made(values)[1]

    def _made(self, values: Mapping[str, Json]) -> tuple[Machine, Mapping[str, Machine]]:
        key = compact(values)
        if key in self.cache:
            return self.cache[key]
        machine = self.compile(self._definition(values))
        made = replace(machine, filled=values), dict(self.compiled)
        if len(key) <= KEY:
            if len(self.cache) >= KEPT:
                del self.cache[next(iter(self.cache))]
            self.cache[key] = made
        return made

    def _value(self, name: str, given: Json) -> Json:
        parameter = self.parameters[name]
        if given is None:
            if parameter.required and parameter.default is None:
                raise _refused(f"the template needs a value for {name!r}")
            return parameter.default
        misfit = parameter.violation(given)
        if misfit is not None:
            raise _refused(f"the argument {name!r} {misfit}")
        return given

    def _definition(self, values: Mapping[str, Json]) -> Mapping[str, Json]:
        definition, findings = instantiate(self.template, values)
        for finding in findings:
            if lookup(finding.code).severity == "error":
                raise _refused(f"{_place(finding)}: {finding.message}")
        if self.checked:
            from asl.checks import check

            document = Document(definition, Source())
            report = check(document, self.profile, for_run=True, ignore_blocks=True)
            for error in report.errors:
                raise _refused(f"{error.pointer[1:]}: {error.message}")
        return definition


def _place(finding: Finding) -> str:
    return finding.pointer[1:] or "the template"


def _refused(cause: str) -> StateError:
    return StateError("States.TemplateError", cause)
