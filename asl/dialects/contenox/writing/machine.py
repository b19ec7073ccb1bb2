"""The states of a document as tasks: each is looked at until nothing new is learnt of its data."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from asl.core.values import Json
from asl.dialects.contenox.writing.chain import Chain, pointer
from asl.dialects.contenox.writing.fields import report
from asl.dialects.contenox.writing.knowledge import Env, joined
from asl.dialects.contenox.writing.state import State, Way
from asl.dialects.contenox.writing.values import Moving, Part, Unknown, Value

__all__ = ["GIVEN", "Kind", "Machine"]

GIVEN: Final = Part("input")
"""What a chain is given."""
ROUNDS: Final = 40
"""How often a state is looked at, until everything about its data is taken as unknown."""
Handler: TypeAlias = Callable[[State], Iterable[Way]]


class Kind(NamedTuple):
    """How a state type is written: a row of the table.

    `write(state)` adds the tasks of a state and yields where it leads. `fields` are those that it
    deals with, beside those of all states; None where it reports the state as a whole.
    """

    write: Handler
    fields: frozenset[str] | None = None


class Machine:
    """All states of the document of a chain."""

    def __init__(self, chain: Chain, kinds: Mapping[str, Kind], given: Value = GIVEN) -> None:
        self.chain = chain
        self.kinds = kinds
        self.given = given
        """The data in which a document begins."""
        self.start: str = chain.value["StartAt"]

    def written(self) -> dict[str, Json]:
        """Return the chain with the tasks of all states that are reached."""
        chain = self.chain
        self.learn()
        chain.begun()
        others = (name for name in chain.states if name != self.start and name in chain.envs)
        reached = dict.fromkeys([self.start, *others])
        for name in reached:
            for _ in self.looked_at(name):
                pass
        self.told(reached)
        return chain.written()

    def learn(self) -> None:
        """Follow the data along all ways, until nothing new is learnt."""
        envs = self.chain.envs
        envs[self.start] = Env(self.given, GIVEN)
        seen: dict[str, int] = {}
        todo = {self.start: None}  # in order
        while todo:
            name = next(iter(todo))
            del todo[name]
            seen[name] = seen.get(name, 0) + 1
            for target, env in self.looked_at(name):
                if target not in self.chain.states:
                    continue  # a template says it once it is filled in
                old = envs.get(target)
                new = env if old is None else joined(target, old, env)
                if seen.get(target, 0) > ROUNDS:
                    new = Env(Unknown(), Part(Moving(target)))
                if new != old:
                    envs[target] = new
                    todo.setdefault(target)

    def looked_at(self, name: str) -> Iterator[Way]:
        """Write a state with what is known about its data; yield where it leads."""
        state = State(self.chain, name, self.chain.envs[name])
        kind = self.kinds[str(state.value.get("Type"))]
        report(state, kind.fields)
        yield from kind.write(state)

    def told(self, reached: Mapping[str, object]) -> None:
        """Say which states have another name there, and which are left out."""
        chain = self.chain
        for name, id in chain.ids.items():
            if name in chain.states and id != name and name in reached:
                chain.lost("L-NAME", f"no task can be called {name!r}", pointer(name), f"{id!r}")
        for name in chain.states:
            if name not in reached:
                message = "no transition of the chain leads here any more"
                chain.lost("L-DROPPED", message, pointer(name), "the state is left out")
