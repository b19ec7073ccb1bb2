"""Give every Include the machine that it runs (Specification 9).

An Include names an imported document; afterwards its `Template` holds that document with the
parameters filled in. An argument that is known only at run time stays a parameter of the held
template.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from asl.compose import modules, overrides, parameters
from asl.compose.parameters import Parameter, declared_parameters
from asl.compose.placeholders import escape_braces, names, unescape_braces
from asl.compose.substitution import MAX_INSERTED, Argument, OpenArgument, Substitution, TooLarge
from asl.core.diagnostics import Finding, Severity, did_you_mean
from asl.core.document import Composition, Document, origin_of
from asl.core.errors import AslError
from asl.core.pointers import escape
from asl.core.source import DEFAULT_LIMITS, DOCUMENT_LIMITS, Source
from asl.core.values import Json, compact
from asl.expr.query_protocol import query_source
from asl.expr.templates import SUFFIX, is_dynamic
from asl.states import type_of
from asl.states.machines import nested_machines

__all__ = ["expand", "instantiate"]

MAX_NESTED: Final = 16
"""Levels of nested Includes (Specification 1.2)."""
MAX_VALUES: Final = DOCUMENT_LIMITS.max_values
"""Values of all included machines together."""
_LANGUAGES: Final = ("JSONPath", "JSONata")
_NO_PART: Final = ("Imports", "Module", "Exports", "_lock", "Version", "Metadata", "Observability")
"""Fields of a document that are not part of its machine."""
_HEAD: Final = (*_NO_PART, "Parameters")
_CONSUMED: Final = ("Parameters", "EntryPoint", "ExitPoint", "Override")
"""Fields that an expanded Include does not need."""
_ORDER: Final = ("Comment", "QueryLanguage", "Parameters", "StartAt", "States")
_SETTINGS: Final = ("Checkpointing",)
"""Settings of a document for its own executions, which affect no result."""


def expand(document: Document, arguments: Mapping[str, Json] | None = None) -> Document:
    """Return a document whose Includes hold their machines; the same object if it has none.

    Args:
        document: The document with its imports.
        arguments: Values for the parameters of the document itself, completed by its defaults; None
            leaves them open.

    Raises:
        AslError: The document does not declare a parameter of this name.
    """
    composition = document.composition
    written = document.value if composition is None else composition.written
    expander = _Expander(document)
    value = expander.root(written, arguments)
    if value is document.value and not expander.findings:
        return document
    imports = {} if composition is None else composition.imports
    put_together = Composition(
        written,
        imports,
        expander.origins,
        tuple(expander.findings),
        expander.heads,
        expander.arguments,
    )
    return replace(document, value=value, composition=put_together)


def instantiate(
    template: Mapping[str, Json], arguments: Mapping[str, Json]
) -> tuple[dict[str, Json], list[Finding]]:
    """Return the machine of a template held by an Include, for arguments of a run.

    The findings use JSON Pointers that start at the template.
    """
    filling = Substitution(arguments, data=True)
    filled = {**filling.document(template), "Parameters": {}}
    expander = _Expander(Document(filled, Source()))
    machine = expander.machine(filled, "", "JSONPath", _Text(expander.document))
    return machine, [*filling.findings, *expander.findings]


@dataclass(frozen=True, slots=True)
class _Text:
    """A document being composed, its arguments, and the documents around it."""

    document: Document
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    around: tuple[Document, ...] = ()

    @property
    def way(self) -> tuple[Document, ...]:
        """The documents from the outermost to this one."""
        return (*self.around, self.document)

    @property
    def imports(self) -> Mapping[str, Document]:
        composition = self.document.composition
        return {} if composition is None else composition.imports

    @property
    def imported(self) -> Mapping[str, Json]:
        """The imports of the document, readable or not."""
        composition = self.document.composition
        written = self.document.value if composition is None else composition.written
        imports = written.get("Imports")
        return imports if type(imports) is dict else {}

    @property
    def open(self) -> bool:
        return any(isinstance(each, OpenArgument) for each in self.arguments.values())


class _Expander:
    """The expansion of one document."""

    def __init__(self, document: Document) -> None:
        self.document = document
        composition = document.composition
        self.origins = {} if composition is None else dict(composition.origins)
        self.findings: list[Finding] = []
        self.heads: dict[str, Mapping[str, Json]] = {}
        self.arguments: dict[str, str] = {}
        self.count = 0
        self.inserted = 0

    def root(self, written: Mapping[str, Json], given: Mapping[str, Json] | None) -> Json:
        """Expand the document itself."""
        if type(written.get("Parameters")) is not dict:
            if given:
                raise AslError("this document is no template: it takes no parameters")
            return self.machine(written, "", "JSONPath", _Text(self.document))
        self.findings += parameters.check(written, "")
        arguments = self._own_arguments(declared_parameters(written), given)
        filling = Substitution(arguments)
        try:
            filled = filling.document(written)
        except TooLarge:
            self._too_large("")
            return written
        self._take(filling, (self.document, ""), "")
        filled["Parameters"] = _left(written["Parameters"], arguments)
        self.heads[""] = {"Parameters": written["Parameters"]}
        return self.machine(filled, "", "JSONPath", _Text(self.document, arguments))

    def _own_arguments(
        self, declarations: Mapping[str, Parameter], given: Mapping[str, Json] | None
    ) -> dict[str, Argument]:
        """Return the arguments of a template that is run or checked by itself."""
        for name in given or ():
            if name not in declarations:
                hint = did_you_mean(name, declarations) or f"it has {', '.join(declarations)}"
                raise AslError(f"the template has no parameter {name!r} ({hint})")
        arguments: dict[str, Argument] = {}
        for name, parameter in declarations.items():
            value = (given or {}).get(name, parameter.default)
            misfit = "has no value" if value is None and parameter.required else None
            if value is not None and name in (given or {}):
                misfit = parameter.violation(value)
            if misfit is not None:
                severity = Severity.INFO if given is None else None
                hint = "give it in the Include; a run takes --param NAME=TEXT, NAME:=JSON"
                place = f"/Parameters/{escape(name)}"
                message = f"the parameter {name!r} {misfit}"
                self.findings.append(Finding("V-TPL-03", message, place, hint, severity=severity))
            unknown = given is None or misfit is not None
            arguments[name] = OpenArgument(dynamic=False) if unknown else value
        return arguments

    # Walking the machines

    def machine(self, machine: Json, pointer: str, language: str, text: _Text) -> Json:
        """Return a machine with its Includes expanded; the same object if it has none."""
        states = machine.get("States")
        if type(states) is not dict:
            return machine
        language = _language(machine, language)
        changed: dict[str, Json] = {}
        for name, state in states.items():
            if type(state) is dict and type_of(state).machines:
                place = f"{pointer}/States/{escape(name)}"
                made = self._state(state, place, _language(state, language), text)
                if made is not state:
                    changed[name] = made
        return {**machine, "States": {**states, **changed}} if changed else machine

    def _state(self, state: Json, pointer: str, language: str, text: _Text) -> Json:
        if state["Type"] == "Include":
            try:
                return self._include(state, pointer, language, text)
            except TooLarge:
                self._too_large(pointer)
                return state
        made = state
        for steps, machine in nested_machines(state):
            place = pointer + "".join(f"/{step}" for step in steps)
            inner = self.machine(machine, place, language, text)
            if inner is not machine:
                made = _replaced(made, steps, inner)
        return made

    # One Include

    def _include(self, state: Json, pointer: str, language: str, text: _Text) -> Json:
        """Return an Include with its machine, or unchanged if it cannot be expanded."""
        found = self._template(state, pointer, text)
        given = state.get("Parameters", {})
        if found is None or type(given) is not dict or type(state.get("Override", {})) is not dict:
            return state
        template, home = found
        base = f"{pointer}/Template"
        arguments = self._arguments(given, pointer, declared_parameters(template), language, text)
        place = self._origin(base)
        if home is not text.document:
            place = home, ""
            for key in template:
                self.origins[f"{base}/{escape(key)}"] = home, f"/{escape(key)}"
        self.findings += parameters.check(template, base)
        self.heads[base] = {key: template[key] for key in _HEAD if key in template}
        machine = template
        if type(template.get("Parameters")) is dict:
            filling = Substitution(arguments)
            machine = filling.document(template)
            self._take(filling, place, base)
            for at, name in filling.whole.items():
                if name in given:
                    self.arguments[base + at] = f"{pointer}/Parameters/{escape(name)}"
            machine["Parameters"] = _left(template["Parameters"], arguments)
        machine = self._overridden(state, pointer, machine, arguments)
        entered = self._entered(state, pointer, machine, arguments)
        if entered is None:
            return state
        self._spend(entered, base)
        inner = _Text(home, arguments, text.way)
        included = {key: value for key, value in state.items() if key not in _CONSUMED}
        if left := _left(given, arguments):
            included["Parameters"] = left
        included["Template"] = self.machine(self._bare(entered, base), base, "JSONPath", inner)
        return included

    def _template(
        self, state: Json, pointer: str, text: _Text
    ) -> tuple[dict[str, Json], Document] | None:
        """Return the template of an Include and the document with its source."""
        name = state.get("Template")
        if type(name) is dict:
            return name, text.document
        if type(name) is not str or (text.open and "{{" in name):
            return None
        place = f"{pointer}/Template"
        if name not in text.imported:
            hint = did_you_mean(name, text.imported) or _import_of(name)
            message = f"nothing is imported as {name!r}"
            self.findings.append(Finding("V-INC-01", message, place, hint))
        elif name not in text.imports:
            if text.document.composition is None:
                message = f"the import {name!r} was not read: load the document from its file"
                self.findings.append(Finding("V-IMP-01", message, place))
        elif (home := text.imports[name]).source in [each.source for each in text.way]:
            message = f"{name!r} leads back to a document around this Include"
            hint = "use a Workflow state for recursion, with a Choice that ends it"
            self.findings.append(Finding("V-INC-05", message, place, hint))
        elif len(text.around) >= MAX_NESTED:
            message = f"Includes are nested more than {MAX_NESTED} deep"
            hint = "run the innermost one as a child execution, with a Workflow state"
            self.findings.append(Finding("V-INC-05", message, place, hint))
        else:
            return _written(home), home
        return None

    def _arguments(
        self,
        given: Mapping[str, Json],
        pointer: str,
        declarations: Mapping[str, Parameter],
        language: str,
        text: _Text,
    ) -> dict[str, Argument]:
        """Return a value, or an open argument, for every parameter.

        An invalid value counts as open, so that other faults of the template are found.
        """
        unknown = OpenArgument(dynamic=False)
        known: dict[str, Argument] = {}
        for key, value in given.items():
            name = _name(key, language)
            place = f"{pointer}/Parameters/{escape(key)}"
            if name not in declarations:
                self.findings.append(_surplus(name, declarations, place))
                continue
            known[name] = _argument(key, value, language, text)
            misfit = None
            if not isinstance(known[name], OpenArgument) and known[name] is not None:
                misfit = declarations[name].violation(known[name])
            if misfit is not None:
                message = f"the argument {name!r} {misfit}"
                self.findings.append(Finding("V-INC-03", message, place))
                known[name] = unknown
        for name, parameter in declarations.items():
            if known.get(name) is None:
                known[name] = parameter.default
                if parameter.default is None and parameter.required:
                    message = f"the template needs a value for {name!r}"
                    place = f"{pointer}/Parameters" if given else pointer
                    hint = f"add {name!r}, or '{name}.$' for a value of the data"
                    self.findings.append(Finding("V-INC-02", message, place, hint, at_key=True))
                    known[name] = unknown
        return known

    def _overridden(
        self, state: Json, pointer: str, machine: Json, arguments: Mapping[str, Argument]
    ) -> Json:
        patch = state.get("Override")
        if type(patch) is not dict:
            return machine
        place = f"{pointer}/Override"
        self.findings += overrides.check(machine.get("States"), patch, place)
        own = overrides.filter_patch(machine.get("States"), patch)
        patched, changed = overrides.apply_patch(
            machine, escape_braces(own) if _open(arguments) else own
        )
        for each in changed:
            self.origins[f"{pointer}/Template{each}"] = self._origin(place + each)
            self.arguments.pop(f"{pointer}/Template{each}", None)
        return patched

    def _entered(
        self, state: Json, pointer: str, machine: Json, arguments: Mapping[str, Argument]
    ) -> Json:
        """Return the machine of a module from its entry to its exit; others unchanged."""
        if machine.get("Module") is not True:
            for key in ("EntryPoint", "ExitPoint"):
                if key in state:
                    message = f"{key!r} is for modules, and this template has a 'StartAt'"
                    place = f"{pointer}/{key}"
                    self.findings.append(Finding("V-INC-04", message, place, at_key=True))
            return machine
        self.findings += modules.check(machine, f"{pointer}/Template")
        entry, exit = state.get("EntryPoint"), state.get("ExitPoint")
        faults = list(modules.check_points(machine, entry, exit, pointer))
        if faults:
            self.findings += faults
            if type(machine["States"]) is not dict or not machine["States"]:
                return None
            entry, exit = next(iter(machine["States"])), None  # other faults are found there
        linked = modules.extract_machine(machine, entry, exit)
        if exit is not None and exit not in linked["States"] and not _open(arguments):
            message = f"no transition leads from {entry!r} to {exit!r}"
            self.findings.append(Finding("V-MOD-03", message, f"{pointer}/ExitPoint"))
        if "StartAt" not in machine:
            self.origins[f"{pointer}/Template/StartAt"] = self._origin(f"{pointer}/EntryPoint")
        return linked

    def _bare(self, machine: Json, pointer: str) -> Json:
        """Return the fields of an included document that belong to its machine."""
        for key in _SETTINGS:
            if key in machine:
                message = f"{key!r} of a document has no effect where it is included"
                place = f"{pointer}/{key}"
                self.findings.append(Finding("V-INC-07", message, place, at_key=True))
        dropped = (*_NO_PART, *_SETTINGS)
        keys = [*_ORDER, *(key for key in machine if key not in _ORDER)]
        return {key: machine[key] for key in keys if key in machine and key not in dropped}

    # Places

    def _take(self, filling: Substitution, written: tuple[Document, str], pointer: str) -> None:
        """Merge the findings and positions of a filled template at a JSON Pointer."""
        self.inserted += filling.inserted
        if self.inserted > MAX_INSERTED:
            raise TooLarge
        self.findings += (
            each._replace(pointer=pointer + each.pointer) for each in filling.findings
        )
        home, at = written
        for new, old in filling.renamed.items():
            self.origins[pointer + new] = home, at + old

    def _origin(self, pointer: str) -> tuple[Document, str]:
        return origin_of(pointer, self.document, self.origins)

    # Limits

    def _spend(self, machine: Json, pointer: str) -> None:
        """Count the values of an included machine; raises TooLarge beyond the limits."""
        deepest = DEFAULT_LIMITS.max_depth - pointer.count("/")
        level: list[Json] = [machine]
        for _ in range(deepest):
            self.count += len(level)
            if not level:
                return
            if self.count > MAX_VALUES:
                break
            level = [part for value in level for part in _parts(value)]
        raise TooLarge

    def _too_large(self, pointer: str) -> None:
        message = "the document becomes too large, or nested too deeply, with what is included here"
        self.findings.append(Finding("READ-04", message, pointer, at_key=True))


def _parts(value: Json) -> Iterable[Json]:
    if type(value) is dict:
        return value.values()
    return value if type(value) is list else ()


def _import_of(name: str) -> str:
    """Return the advice for an unknown import, which may be a path."""
    if "/" not in name and not name.endswith((".json", ".yaml", ".yml")):
        return "add it to 'Imports' at the top"
    imports = compact({"part": name})
    return f'give it a name, as in "Imports": {imports}, and write "Template": "part"'


def _surplus(name: str, declarations: Mapping[str, Parameter], pointer: str) -> Finding:
    hint = did_you_mean(name, declarations)
    if hint is None:
        hint = f"it takes {', '.join(declarations)}" if declarations else "it takes no parameters"
    message = f"the template has no parameter {name!r}"
    return Finding("V-INC-03", message, pointer, hint, at_key=True)


def _argument(key: str, value: Json, language: str, text: _Text) -> Argument:
    """Return the value of an argument, or an open argument."""
    opens = [text.arguments[name] for name in names(value) if name in text.arguments]
    waiting = [each for each in opens if isinstance(each, OpenArgument)]
    if _computed(key, value, language) or any(each.dynamic for each in waiting):
        return OpenArgument(dynamic=True)
    if waiting:
        return OpenArgument(dynamic=False)
    return unescape_braces(value) if text.open else value


def _computed(key: str, value: Json, language: str) -> bool:
    """Return whether an argument is evaluated when the Include runs."""
    if language == "JSONPath":
        return key.endswith(SUFFIX) or is_dynamic(value)
    if type(value) is str:
        return query_source(value) is not None
    return any(_computed(key, part, language) for part in _parts(value))


def _name(key: str, language: str) -> str:
    return key.removesuffix(SUFFIX) if language == "JSONPath" else key


def _open(arguments: Mapping[str, Argument]) -> bool:
    return any(isinstance(each, OpenArgument) for each in arguments.values())


def _left(values: Mapping[str, Json], arguments: Mapping[str, Argument]) -> dict[str, Json]:
    """Return the declarations or arguments of parameters that are still open."""
    return {
        key: value
        for key, value in values.items()
        if isinstance(arguments.get(key, arguments.get(key.removesuffix(SUFFIX))), OpenArgument)
    }


def _written(document: Document) -> dict[str, Json]:
    composition = document.composition
    value: dict[str, Json] = document.value if composition is None else composition.written
    return value


def _language(holder: Mapping[str, Json], otherwise: str) -> str:
    chosen = holder.get("QueryLanguage")
    return chosen if type(chosen) is str and chosen in _LANGUAGES else otherwise


def _replaced(value: Json, steps: tuple[str | int, ...], part: Json) -> Json:
    """Return a value with another part at *steps*."""
    if not steps:
        return part
    first, *rest = steps
    copy = value.copy()
    copy[first] = _replaced(value[first], tuple(rest), part)
    return copy
