"""Where the data of a machine is in front of each of its states.

The data of a document is in the context as long as results go into fields of it. A result that
replaces all data is the output of its step. Where ways meet on which the data is in different
places, the steps that made it write it into one field.
"""

from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Final, NamedTuple

from asl.dialects.flujo.blueprint import STEP
from asl.dialects.flujo.writing.places import (
    CONTEXT,
    FLOW,
    Environment,
    forget,
    is_in_context,
    join,
    output_of,
    resolve,
)
from asl.dialects.lowering import Flow, StepExit, WorkStep
from asl.dialects.names import FreshNames
from asl.dialects.terms import (
    INDEX,
    INPUT,
    ITEM,
    RESULT,
    DataPath,
    Literal,
    Record,
    Term,
    Text,
    Unknown,
    merge,
    placement,
    put,
    replace,
)

__all__ = [
    "WORKING",
    "DataLayout",
    "Put",
    "StepNames",
    "Where",
    "answer_field",
    "branch_names",
    "fields_written",
    "map_environment",
]

WORKING: Final = frozenset(("Task", "Parallel", "Map", "Approval"))
"""Types whose states are steps with an output."""
_COMBINED: Final = merge(DataPath(INPUT), DataPath(RESULT))
"""The output of a state whose result is merged into its input."""


class Where(Enum):
    """What a step does with what it has made."""

    NOTHING = "nothing"
    OUTPUT = "output"
    """It is the output of the step, and not in the context."""
    SINK = "sink"
    """The output is put into a field of the context."""
    MERGE = "merge"
    """The members of the output are put into the context."""
    SET = "set"
    """A known value, or a copy of a field, is put into a field of the context."""
    VALUE = "value"
    """A known value becomes the output of the step."""
    ELSEWHERE = "elsewhere"
    """No step makes it: who reads it reads the places that it is made of."""


class Put(NamedTuple):
    """What a step does with what it has made, at which path of the context."""

    where: Where
    path: tuple[str, ...] = ()
    value: Term = Literal(None)


class StepNames:
    """The names of the steps of a blueprint, by the JSON Pointers of states."""

    def __init__(self, written: Iterable[tuple[str, str]]) -> None:
        """Create names for a document.

        Args:
            written: The fields of the context that states write, with the states' pointers. No
                step has the name of a field that others write: the platform reads `context.NAME`
                as the output of a step where the field is null.
        """
        self.fields: dict[str, set[str]] = {}
        for field, pointer in written:
            self.fields.setdefault(field, set()).add(pointer)
        self._taken = FreshNames(mark="_")
        self._known: dict[str, str] = {}

    def of(self, step: WorkStep) -> str:
        """Return the name of a state's step."""
        if step.pointer not in self._known:
            own = self.fields.get(step.name) == {step.pointer}
            self._known[step.pointer] = self._taken.new(step.name) if own else self.new(step.name)
        return self._known[step.pointer]

    def new(self, wanted: str) -> str:
        """Return a name that no other step and no field has."""
        return self._taken.new(f"{wanted}{STEP}" if wanted in self.fields else wanted)

    def field(self, wanted: str) -> str:
        """Return the name of a field of the context that no state writes."""
        name = wanted
        while name in self.fields or name in self._taken:
            name = f"{name}_"
        self.fields[name] = set()
        return name


def fields_written(flow: Flow) -> Iterator[tuple[str, str]]:
    """Yield the fields of the data that the states of a machine write, with their pointers."""
    for step in flow.steps.values():
        outputs = [(step.output, step.pointer)]
        outputs += [(each.output, each.pointer) for each in step.handlers]
        for output, pointer in outputs:
            found = placement(output)
            if found is not None and found.steps:
                yield found.steps[0], pointer
        if step.kind == "Approval":
            yield answer_field(step), step.pointer
        for inner in step.machines.values():
            yield from fields_written(inner)


def output_term(step: WorkStep) -> Term:
    """Return the output of a state, with the object of a Parallel's results as its result."""
    found = placement(step.output) if branch_names(step) is not None else None
    return step.output if found is None else put(DataPath(INPUT), found.steps, DataPath(RESULT))


def branch_names(step: WorkStep) -> tuple[str, ...] | None:
    """Return the names under which a Parallel puts the results of its branches into an object."""
    found = placement(step.output) if step.kind == "Parallel" else None
    if found is None or not isinstance(found.value, Record) or found.value.base is not None:
        return None
    names = {value: key for key, value in found.value.members if isinstance(value, DataPath)}
    listed = tuple(names.get(DataPath(RESULT, (index,)), "") for index in range(len(step.machines)))
    return listed if all(listed) and len(listed) == len(found.value.members) else None


def answer_field(step: WorkStep) -> str:
    """Return the field of the context that has the answer of an Approval."""
    steps = placed_steps(step)
    return steps[0] if steps else "approval"


def placed_steps(step: WorkStep) -> tuple[str, ...]:
    """Return the keys of the place of a state's output, none if it replaces all data."""
    found = placement(step.output)
    return () if found is None else found.steps


class DataLayout:
    """The places of the data of one machine.

    Attributes:
        before: The environment in front of each state that is reached.
        ends: The environments at the ends of the machine, by the states that end it.
    """

    def __init__(
        self,
        flow: Flow,
        names: StepNames,
        given: Environment,
        *,
        shared: bool = True,
        linear: bool = True,
    ) -> None:
        """Look for the places of the data.

        Args:
            flow: The machine.
            names: The names of steps.
            given: The environment in front of the machine.
            shared: Whether results are put into the context, which others may read.
            linear: Whether a step gets the output of the one before, not the input of the machine.
        """
        self.flow = flow
        self.names = names
        self.given = given
        self.shared = shared
        self.linear = linear
        self.kept: set[str] = set()
        """States whose output is put into the field `field`."""
        self.merging: set[str] = set()
        """States whose output is merged into the context."""
        self._field = ""
        self.before: dict[str, dict[str, Term]] = {}
        self.ends: list[tuple[WorkStep, Environment]] = []
        while not self._settled():  # each time, further steps write a field
            pass

    @property
    def field(self) -> str:
        """The field of the context in which the data is where ways meet."""
        if not self._field:
            self._field = self.names.field("result")
        return self._field

    # What steps do

    def placed(self, step: WorkStep, environment: Environment) -> Put:
        """Return what a step does with what it has made."""
        working = step.kind in WORKING
        found = placement(output_term(step))
        if step.kind == "Approval":
            return Put(Where.SINK, (answer_field(step),))
        if found is None:
            return Put(Where.NOTHING)
        data, name = environment[INPUT], step.name
        if not found.steps and working and found.value == DataPath(RESULT):
            if name in self.kept:
                return Put(Where.SINK, (self.field,))
            return Put(Where.MERGE if name in self.merging else Where.OUTPUT)
        within = self.shared and is_in_context(data)
        if step.output == _COMBINED and within:
            return Put(Where.NOTHING if step.kind == "Parallel" else Where.MERGE)
        if working:
            direct = within and found.steps and found.value == DataPath(RESULT)
            return Put(Where.SINK, found.steps) if direct else Put(Where.ELSEWHERE)
        if step.kind != "Pass":
            return Put(Where.ELSEWHERE)
        value = resolve(found.value, environment)
        if not found.steps:
            if isinstance(value, Literal) and value.value is not None:
                kept = (self.field,) if name in self.kept else ()
                return Put(Where.VALUE, kept, value)
            return Put(Where.ELSEWHERE)
        copied = isinstance(value, DataPath) and value.root == CONTEXT and _is_dotted(value)
        if within and (isinstance(value, Literal | Text) or copied):
            return Put(Where.SET, found.steps, value)
        return Put(Where.ELSEWHERE)

    def after(self, step: WorkStep, environment: Environment) -> dict[str, Term]:
        """Return the environment behind a step."""
        found = self.placed(step, environment)
        named = self.names.of(step)
        known = forget(environment, output_of(named))
        if found.path and found.where in (Where.SINK, Where.SET, Where.VALUE):
            known = forget(known, DataPath(CONTEXT, found.path))
        result: Term = output_of(named)
        if step.kind == "Approval":
            result = Record(None, (("approval", DataPath(CONTEXT, (answer_field(step),))),))
        made = {**known, RESULT: result}
        data = self._data(step, found, made)
        assigned = {f"${key}": resolve(value, made) for key, value in step.assign.items()}
        if self.linear and (step.kind in WORKING or found.where in (Where.SET, Where.VALUE)):
            known[FLOW] = output_of(named)
        return {**known, INPUT: data, **assigned}

    def _data(self, step: WorkStep, found: Put, made: Environment) -> Term:
        match found.where:
            case Where.NOTHING:
                return made[INPUT]
            case Where.MERGE:
                return DataPath(CONTEXT)
            case Where.SINK | Where.VALUE if step.name in self.kept:
                return DataPath(CONTEXT, (self.field,))
            case Where.VALUE:
                return output_of(self.names.of(step))
        if step.kind == "Approval" and not placed_steps(step):
            return _without(made[INPUT], answer_field(step))
        if step.kind == "Approval":
            return _opened(resolve(output_term(step), made))
        if found.where in (Where.SINK, Where.SET):
            return _without(made[INPUT], *found.path[:1])
        return _opened(resolve(output_term(step), made))

    def leaving(self, step: WorkStep, taken: StepExit, environment: Environment) -> dict[str, Term]:
        """Return the environment behind a step and one of its exits."""
        behind = self.after(step, environment)
        if taken.output is None and not taken.assign:
            return behind
        output = behind[INPUT] if taken.output is None else _opened(resolve(taken.output, behind))
        assigned = {f"${key}": resolve(value, behind) for key, value in taken.assign.items()}
        return {**behind, INPUT: output, **assigned}

    def deciding(self, step: WorkStep, environment: Environment) -> Environment:
        """Return the environment in which the conditions of a step's exits are read."""
        answer = DataPath(CONTEXT, (answer_field(step),))
        return {**environment, RESULT: Record(None, (("approval", answer),))}

    # The whole machine

    def _settled(self) -> bool:
        """Look at all states; return False where it has to be done with further fields."""
        self.before = {self.flow.start: dict(self.given)}
        self.ends = []
        arrived: dict[str, dict[tuple[str, int], dict[str, Term]]] = {}
        todo, rounds = [self.flow.start], 0
        most = 20 * len(self.flow.steps) + 100
        while todo and rounds < most:
            rounds += 1
            name = todo.pop(0)
            step = self.flow.steps[name]
            for index, (target, found) in enumerate(self._leads(step, self.before[name])):
                arrived.setdefault(target, {})[name, index] = found
                ways = [*arrived[target].values()]
                if target == self.flow.start:
                    ways.insert(0, dict(self.given))
                joined = self._joined(ways)
                if joined is None:
                    return False
                if joined != self.before.get(target):
                    self.before[target] = joined
                    if target not in todo:
                        todo.append(target)
        for name, environment in self.before.items():
            step = self.flow.steps[name]
            for each in step.exits:
                if each.target is None:
                    self.ends.append((step, self.leaving(step, each, environment)))
            if step.kind == "Succeed":
                self.ends.append((step, self.after(step, environment)))
        return not self._brings_home()

    def _brings_home(self) -> bool:
        """Let the makers of what a run results in write it into the context; False if none has to.

        The output of a last step is in the result of the run by itself.
        """
        lost = [
            each[INPUT]
            for _, each in self.ends
            if not is_in_context(each[INPUT]) and each[INPUT] != each[FLOW]
        ]
        found = self._makers(lost) if self.shared else set()
        self.merging |= found
        return bool(found)

    def _makers(self, data: list[Term]) -> set[str]:
        """Return the states whose outputs are among data, and are not in the context yet."""
        return {
            name
            for name, step in self.flow.steps.items()
            if output_of(self.names.of(step)) in data and name not in self.kept | self.merging
        }

    def _leads(
        self, step: WorkStep, environment: Environment
    ) -> Iterator[tuple[str, dict[str, Term]]]:
        for each in step.exits:
            if each.target is not None and each.target in self.flow.steps:
                yield each.target, self.leaving(step, each, environment)
        for handler in step.handlers:
            if handler.target in self.flow.steps:
                lost = {f"${key}": Unknown("an error") for key in handler.assign}
                yield handler.target, {**environment, **lost}

    def _joined(self, ways: list[dict[str, Term]]) -> dict[str, Term] | None:
        """Return the environment where ways meet; None where steps now write a field for that."""
        data = [each[INPUT] for each in ways]
        if any(each != data[0] for each in data) and self._unites(data):
            return None
        first, *others = ways
        found = dict(first)
        for other in others:
            for key in {*found, *other}:
                one = found.get(key, Unknown(key))
                found[key] = join(one, other.get(key, Unknown(key)))
        return found

    def _unites(self, data: list[Term]) -> bool:
        """Let the makers of data write it into the context; False if they do so already."""
        if not self.shared and any(is_in_context(each) for each in data):
            return False
        found = self._makers(data)
        merging = any(is_in_context(each) for each in data)
        (self.merging if merging else self.kept).update(found)
        return bool(found)


def _is_dotted(path: DataPath) -> bool:
    """Whether a built-in skill can name a path of the context."""
    return bool(path.steps) and all(
        isinstance(each, str) and each and "." not in each for each in path.steps
    )


def _without(data: Term, *keys: str) -> Term:
    """Return data in the context without the members that are in their place there."""
    if not isinstance(data, Record) or data.base != DataPath(CONTEXT):
        return data
    left = tuple((key, value) for key, value in data.members if key not in keys)
    return Record(data.base, left) if left else DataPath(CONTEXT)


def _opened(data: Term) -> Term:
    """Return data without members that are where its base has them."""

    def same(each: Term) -> Term | None:
        if isinstance(each, Record) and isinstance(each.base, DataPath):
            left = tuple(
                (key, _opened(value))
                for key, value in each.members
                if value != DataPath(each.base.root, (*each.base.steps, key))
            )
            return Record(each.base, left) if left else each.base
        return None

    return replace(data, same)


def map_environment(step: WorkStep, environment: Environment, item: str) -> dict[str, Term]:
    """Return the environment of the first state of a Map's iteration.

    Args:
        step: The Map.
        environment: The environment in front of it.
        item: Name of the step whose output is the item.
    """
    place = output_of(item)
    within = {**environment, ITEM: place, INDEX: Unknown("the index of an item"), FLOW: place}
    selector = step.fields.get("ItemSelector")
    within[INPUT] = place if selector is None else resolve(selector, within)
    return within
