"""A debate on its way: rounds and turns, who hears what, and the decision (companion 2.2 to 2.7).

It asks agents and reads nothing else, so the same answers make the same debate.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from asl.core.errors import StateError
from asl.core.pointers import escape
from asl.core.values import Json, compact, is_number
from asl.program import Machine
from asl.states.calls import CallOptions, CallPart, Invocation, Target, TargetCheck
from asl.states.effects import FanOut, StateFrame
from asl.states.numbers import TimeLimits

__all__ = [
    "ARBITER",
    "STYLES",
    "VISIBLE",
    "Debate",
    "DebateTerms",
    "Tally",
    "count_votes",
    "take_turn",
]

VOTE_FIELDS = ("vote", "decision", "position")
"""Where a response says what its agent votes for; the first that holds a vote counts."""


class Tally(NamedTuple):
    """The result of a count of votes."""

    votes: dict[str, Json]
    """The vote of every voter, None for an abstention."""
    leading: tuple[Json, ...]
    """The options with the most votes, each as its first voter wrote it."""
    agreement: float
    """The share of all voters who are for a leading option."""

    def has_consensus(self, threshold: float | None) -> bool:
        """Whether one option has so large a share; without a threshold more than half."""
        enough = self.agreement > 0.5 if threshold is None else self.agreement >= threshold
        return enough and len(self.leading) == 1

    @property
    def is_tied(self) -> bool:
        """Whether several options have the most votes."""
        return len(self.leading) > 1


def count_votes(voters: Sequence[str], latest: Mapping[str, Json]) -> Tally:
    """Count the votes in the latest response of each of the *voters*."""
    votes = {voter: _vote(latest.get(voter)) for voter in voters}
    options: dict[Json, list[Json]] = {}
    for vote in votes.values():
        if vote is not None:
            options.setdefault(_option(vote), []).append(vote)
    most = max(map(len, options.values()), default=0)
    leading = tuple(given[0] for given in options.values() if len(given) == most)
    return Tally(votes, leading, most / len(voters) if voters else 0.0)


def _vote(response: Json) -> Json:
    if type(response) is not dict:
        return None
    said = (response.get(key) for key in VOTE_FIELDS)
    return next((each for each in said if isinstance(each, str | bool) or is_number(each)), None)


def _option(vote: Json) -> Json:
    """Return what is the same for equal votes: texts regardless of case and outer blanks."""
    return (type(vote) is bool, vote.strip().casefold() if type(vote) is str else vote)


STYLES = ("turn_based", "simultaneous", "free_form", "reactive")
PASSING = ("free_form", "reactive")
"""The styles in which an agent may have nothing to say."""
VISIBLE = ("all", "own", "own_only", "previous_only", "none")
ARBITER = "Arbiter"
"""The name of the arbiter in `TieBreaker`."""


class DebateTerms(NamedTuple):
    """The evaluated fields of the state."""

    agents: Sequence[str]
    topic: Json
    parameters: Mapping[str, Json]
    style: str
    visible: str
    speakers: Sequence[str]
    rounds: int
    max_rounds: int
    """Maximum number of rounds without consensus."""
    required: bool
    arbiter: str | None
    voters: Sequence[str] | None
    """None for a debate without votes."""
    threshold: float | None
    tie_breaker: str | None
    """The agent that decides a tie."""
    limits: TimeLimits
    """The timeout is that of the whole debate."""


async def take_turn(frame: StateFrame, target: Target, turn: Mapping[str, Json]) -> Json:
    """Call an agent for its turn, in the machine of the debate or in a child machine.

    Raises:
        StateError: The call fails, or the time of the debate is over.
    """
    timeout, heartbeat = turn["limits"]
    options = CallOptions(timeout, heartbeat, target.state, part=CallPart(*turn["part"]))
    left = options.remaining(frame.now)
    if left is not None and left <= 0:
        raise StateError("States.Timeout", options.cause("answer", timeout))
    frame.note("DebateTurnStarted", turn["who"])
    answer = await frame.effects.call(frame, Invocation(target, turn["parameters"], options))
    frame.note("DebateTurn", {**turn["who"], "response": _response(answer)})
    return answer


def _response(answer: Json) -> Json:
    """Return the response in an answer; the answer itself without `response`."""
    return answer["response"] if type(answer) is dict and "response" in answer else answer


class Debate:
    """A debate with its history."""

    def __init__(
        self,
        terms: DebateTerms,
        frame: StateFrame,
        targets: Mapping[str, Target],
        machines: Mapping[str, Machine],
    ) -> None:
        self.terms = terms
        self.frame = frame
        self.targets = targets
        """The agents that the document names."""
        self.machines = machines
        """The machines of concurrent turns, by agent."""
        self.began = frame.now
        self.rounds = 0
        """How many rounds have been held."""
        self.history: list[Json] = []
        self.responses: list[Json] = []
        self.latest: dict[str, Json] = {}
        """The latest response of each agent."""
        self.history_lengths: dict[str, int] = {}
        """How long the history was after the latest turn of each agent."""

    async def run(self) -> Json:
        """Hold the debate and return its result.

        Raises:
            StateError: An agent fails.
        """
        terms = self.terms
        named = dict.fromkeys([*terms.agents, terms.arbiter, terms.tie_breaker])
        targets = [self._target(name) for name in named if name is not None]
        await self.frame.effects.call(self.frame, TargetCheck(targets))
        await self._discuss()
        tally = self._tally()
        decision = await self._decide(tally)
        if decision["consensus"] is not None:
            told = {key: decision[key] for key in ("decision", "consensus", "decidedBy")}
            self.frame.note("DebateDecided", told | _counts(tally))
        return {
            "topic": terms.topic,
            "rounds": self.rounds,
            "participants": list(terms.agents),
            "history": self.history,
            "responses": self.responses,
            **decision,
            **_counts(tally),
        }

    def _target(self, agent: str) -> Target:
        return self.targets.get(agent) or Target("agent", agent, self.frame.step.name)

    # Rounds

    async def _discuss(self) -> None:
        """Hold rounds until the last one, a round without responses, or consensus."""
        number = 0
        for total in (self.terms.rounds, self.terms.max_rounds):
            while number < total:
                number += 1
                before = len(self.history)
                await self._round(number, total)
                if len(self.history) == before or (self.terms.required and self._agreed()):
                    return

    def _agreed(self) -> bool:
        tally = self._tally()
        return tally is not None and tally.has_consensus(self.terms.threshold)

    async def _round(self, number: int, total: int) -> None:
        if self.terms.style == "simultaneous":
            await self._at_once(number, total)
            return
        for agent in self.terms.speakers:
            if self._is_asked(agent, number):
                turn = self._turn(agent, number, total)
                self._took(agent, number, await take_turn(self.frame, self._target(agent), turn))

    def _is_asked(self, agent: str, number: int) -> bool:
        """Return whether an agent has a turn; a reactive one needs new entries in the history."""
        if self.terms.style != "reactive" or number == 1:
            return True
        return self.history_lengths[agent] < len(self.history)

    async def _at_once(self, number: int, total: int) -> None:
        """Hold a round of concurrent turns, each in a child machine, on the earlier history."""
        frame, speakers = self.frame, self.terms.speakers

        def child(index: int) -> StateFrame:
            agent = speakers[index]
            return frame.child(index, self.machines[agent], self._turn(agent, number, total))

        joined = await frame.effects.fan_out(frame, FanOut(len(speakers), child))
        for agent, answer in zip(speakers, joined.values, strict=True):
            self._took(agent, number, answer)

    def _took(self, agent: str, number: int, answer: Json) -> None:
        """Record the answer of an agent in its turn."""
        self.rounds = number
        if not (self.terms.style in PASSING and _passes(answer)):
            entry = {"round": number, "agent": agent, "response": _response(answer)}
            self.history.append(entry)
            self.responses.append(answer)
            self.latest[agent] = answer
        self.history_lengths[agent] = len(self.history)

    # Calls

    def _turn(self, agent: str, number: int, total: int) -> Json:
        engine = {
            "topic": self.terms.topic,
            "round": number,
            "totalRounds": total,
            "isFinalRound": number == total,
            "history": self._visible(agent),
        }
        return self._call(engine, f"{number}/{escape(agent)}", {"round": number, "agent": agent})

    def _visible(self, agent: str) -> list[Json]:
        """Return the history visible to an agent at its turn."""
        visible = self.terms.visible
        if visible == "none":
            return []
        if visible == "previous_only":
            return self.history[-1:]
        return [entry for entry in self.history if visible == "all" or entry["agent"] == agent]

    def _call(self, engine: dict[str, Json], part: str, speaker: dict[str, Json]) -> Json:
        """Return the data of a call as JSON, since it may be the input of a machine."""
        own = self.terms.parameters
        parameters = {**engine, **own}
        if type(own.get("history")) is list:
            parameters["history"] = [*own["history"], *engine["history"]]
        parameters.setdefault("prompt", _prompt(parameters))
        return {
            "parameters": parameters,
            "who": speaker,
            "limits": self.terms.limits,
            "part": (f"{self.frame.visit_key}#{part}", self.frame.retries + 1, self.began),
        }

    # The decision

    def _tally(self) -> Tally | None:
        """Count the votes; None for a debate without votes."""
        voters = self.terms.voters
        return None if voters is None else count_votes(voters, self.latest)

    async def _decide(self, tally: Tally | None) -> dict[str, Json]:
        """Return the decision and its author (companion 2.6)."""
        terms = self.terms
        if tally is None and not terms.required:
            return {"decision": None, "consensus": None, "decidedBy": None}
        if tally is not None and tally.has_consensus(terms.threshold):
            return {"decision": tally.leading[0], "consensus": True, "decidedBy": "vote"}
        tied = tally is not None and tally.is_tied and terms.tie_breaker is not None
        judge = terms.tie_breaker if tied else terms.arbiter
        if judge is None:
            return {"decision": None, "consensus": False, "decidedBy": None}
        result = await take_turn(self.frame, self._target(judge), self._judgement(judge))
        decision = _decision(result)
        return {
            "decision": decision,
            "consensus": decision is not None,
            "decidedBy": "tiebreaker" if tied else "arbiter",
            "arbiterResult": result,
        }

    def _judgement(self, judge: str) -> Json:
        engine = {
            "topic": self.terms.topic,
            "isFinalRound": True,
            "history": list(self.history),
            "role": "arbiter",
        }
        return self._call(engine, "arbiter", {"agent": judge, "role": "arbiter"})


def _passes(answer: Json) -> bool:
    return type(answer) is dict and answer.get("pass") is True


def _decision(result: Json) -> Json:
    """Return the decision of an arbiter, None for none."""
    if type(result) is dict:
        return result["decision"] if "decision" in result else result.get("response")
    return result if type(result) is str else None


def _counts(tally: Tally | None) -> dict[str, Json]:
    if tally is None:
        return {}
    return {"votes": tally.votes, "agreement": round(tally.agreement, 3)}


def _prompt(parameters: Mapping[str, Json]) -> str:
    """Return the parameters of an agent as a prompt."""
    lines = [f"Topic: {_text(parameters['topic'])}"]
    if "round" in parameters:
        total = parameters.get("totalRounds")
        of = "" if total is None else f" of {_text(total)}"
        lines.append(f"Round {_text(parameters['round'])}{of}.")
    if parameters.get("role") == "arbiter":
        lines.append("You are the arbiter of this debate: decide.")
    elif parameters["isFinalRound"] is True:
        lines.append("This is the final round.")
    history = parameters["history"]
    if type(history) is not list or not history:
        return "\n".join([*lines, "The discussion has not started."])
    return "\n".join([*lines, "The discussion so far:", *map(_line, history)])


def _line(entry: Json) -> str:
    if type(entry) is not dict or not {"agent", "response"} <= entry.keys():
        return f"- {_text(entry)}"
    return f"- {_text(entry['agent'])}: {_text(entry['response'])}"


def _text(value: Json) -> str:
    return value if type(value) is str else compact(value)
