"""Debate: agents discuss a topic in rounds and may decide on it (6.10, companion 2)."""

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping

from asl.core.diagnostics import Finding, Severity
from asl.core.values import Json, is_integer, is_number
from asl.expr.frame import Evaluate, constant
from asl.expr.templates import SUFFIX
from asl.program import Step, Work
from asl.states.base import Compiler, Node, Outline, StateType
from asl.states.calls import Target
from asl.states.debate_rounds import ARBITER, STYLES, VISIBLE, Debate, DebateTerms, take_turn
from asl.states.effects import StateFrame
from asl.states.numbers import MAX_SECONDS, check_time_limits, compile_time_limits
from asl.states.settings import BlockSettings

TOPIC = "General discussion"
TOPICS = ("Topic", "Topic.$", "TopicPath")
"""The fields with the topic."""
ROUNDS = 3
METHODS = ("voting", "arbiter")
VOTING = ("Threshold", "RequiredMajority", "VotingAgents")
"""The fields of `Consensus` that ask for a vote, whatever the `Method` (companion 2.5)."""
LONGER = "MaxRoundsForConsensus"
DECIDING = ("Arbiter", "Method", "TieBreaker", LONGER)
"""The fields that say more about a decision, and bring none about by themselves."""
REQUIRE = 'set "Required": true'
VOTE = 'set "Method": "voting"'


def compile_debate(compiler: Compiler, step: Step) -> None:
    """Compile a Debate: its terms, its turns, and the placement of the result.

    A turn is an effect of the state, or a child machine if turns are concurrent.
    """
    agreed, agents = _terms(compiler), compiler.state["Agents"]
    targets = {agent: Target("agent", agent, compiler.name) for agent in agents}
    machines = {
        agent: compiler.task(agent, _beside(target), "Agents", index)
        for index, (agent, target) in enumerate(targets.items())
    }

    def work(data: Json, frame: StateFrame) -> Awaitable[Json]:
        return Debate(agreed(data, frame), frame, targets, machines).run()

    step.work = work
    step.finish = compiler.finish()


def _beside(target: Target) -> Work:
    return lambda turn, frame: take_turn(frame, target, turn)


def _terms(compiler: Compiler) -> Callable[[Json, StateFrame], DebateTerms]:
    """Compile the evaluated fields: `(raw input, frame) -> terms`."""
    effective_input, jsonata = compiler.input(), compiler.jsonata
    agents: list[str] = compiler.state["Agents"]
    topic, rounds = _topic(compiler), compiler.scalar("Rounds") or constant(None)
    communication = compiler.template("Communication") or constant({})
    consensus = compiler.template("Consensus") or constant({})
    extra = "Arguments" if jsonata else "Parameters"
    parameters = compiler.template(extra) or constant({})
    limits = compile_time_limits(compiler)

    def terms(raw: Json, frame: StateFrame) -> DebateTerms:
        data = effective_input(raw, frame)
        about, number = topic(data, frame), rounds(data, frame)
        spoken = BlockSettings(communication(data, frame), jsonata, "Communication.")
        sought = BlockSettings(consensus(data, frame), jsonata, "Consensus.")
        own = BlockSettings({"Rounds": number, extra: parameters(data, frame)}, jsonata)
        required = sought.flag("Required")
        arbiter = sought.name("Arbiter") or (agents[-1] if required else None)
        speakers = _speakers(spoken, agents, arbiter if required else None)
        voters = _voters(sought, agents, speakers)
        breaker = sought.name("TieBreaker")
        if breaker == ARBITER and breaker not in agents:
            breaker = arbiter
        held = own.count("Rounds", MAX_SECONDS) or ROUNDS
        most = sought.count("MaxRoundsForConsensus", MAX_SECONDS) or held
        return DebateTerms(
            agents=agents,
            topic=about,
            parameters=own.members(extra),
            style=spoken.choice("Style", STYLES) or STYLES[0],
            visible=spoken.choice("VisibleHistory", VISIBLE) or VISIBLE[0],
            speakers=speakers,
            rounds=held,
            max_rounds=max(held, most) if required and voters is not None else held,
            required=required,
            arbiter=arbiter,
            voters=voters,
            threshold=sought.fraction("RequiredMajority") or sought.fraction("Threshold"),
            tie_breaker=breaker,
            limits=(None, None) if limits is None else limits(data, frame),
        )

    return terms


def _topic(compiler: Compiler) -> Evaluate:
    if "TopicPath" in compiler.state:
        return compiler.reference("TopicPath")
    return compiler.text("Topic") or constant(TOPIC)


def _speakers(spoken: BlockSettings, agents: list[str], arbiter: str | None) -> list[str]:
    """Return the speakers in order; *arbiter* only decides."""
    speakers = [agent for agent in agents if agent != arbiter]
    order = spoken.names("Order", agents)
    if order is None:
        return speakers
    listed = [agent for agent in order if agent != arbiter]
    if len(listed) < len(speakers):
        raise spoken.invalid_value("Order", f"a list of all who speak ({', '.join(speakers)})")
    return listed


def _voters(sought: BlockSettings, agents: list[str], speakers: list[str]) -> list[str] | None:
    """Return the voters, None for a debate without votes."""
    voting = sought.choice("Method", METHODS) == "voting"
    if voting or any(field in sought for field in VOTING):
        return sought.names("VotingAgents", agents) or speakers
    return None


def check_debate(node: Node) -> Iterator[Finding]:
    """Check topic, limits, and the fields of `Consensus`."""
    yield from _topics(node)
    yield from check_time_limits(node)
    consensus = node.value.get("Consensus")
    if type(consensus) is dict:
        yield from _shares(node, consensus)
        yield from _idle(node, consensus)


def _topics(node: Node) -> Iterator[Finding]:
    given = [field for field in TOPICS if field in node.value]
    if not given:
        yield Finding(
            "V-DEB-02",
            f"{node.name!r} has no topic",
            node.pointer,
            "add 'Topic'; without it the agents hold a general discussion",
            severity=Severity.WARNING,
            at_key=True,
        )
    for field in given[1:]:
        yield Finding(
            "V-DEB-02",
            f"{given[0]!r} and {field!r} exclude each other",
            node.at(field),
            "a debate has one topic",
            related=((node.at(given[0]), f"{given[0]!r} is here"),),
            at_key=True,
        )


def _idle(node: Node, consensus: Mapping[str, Json]) -> Iterator[Finding]:
    """Find fields of `Consensus` without effect (companion 2.3 to 2.6)."""
    names = {field.removesuffix(SUFFIX): field for field in consensus}
    required, method = consensus.get("Required", False), consensus.get("Method", METHODS[1])
    known = type(required) is bool and method in METHODS
    if not known or not consensus.keys().isdisjoint(("Required.$", "Method.$")):
        return
    voting = method == "voting" or not names.keys().isdisjoint(VOTING)
    if required or voting:
        for field, why, hint in _without_effect(node, names.keys(), required, voting):
            if field in names:
                place = node.at("Consensus", names[field])
                message = f"{field!r} has no effect {why}"
                yield Finding("V-DEB-10", message, place, hint, at_key=True)
    elif not names.keys().isdisjoint(DECIDING):
        message = "the debate has no decision: consensus is not required, and there is no vote"
        hint = f"{REQUIRE}, or {VOTE}"
        yield Finding("V-DEB-10", message, node.at("Consensus"), hint, at_key=True)


def _without_effect(
    node: Node, names: Collection[str], required: bool, voting: bool
) -> Iterator[tuple[str, str, str]]:
    """Yield the fields that have no effect: the field, why, and what to do."""
    most, held = node.value["Consensus"].get(LONGER), node.value.get("Rounds", ROUNDS)
    if not voting:
        yield from ((field, "without a vote", VOTE) for field in ("TieBreaker", LONGER))
    elif not required:
        yield LONGER, "where consensus is not required", REQUIRE
    elif is_integer(most) and is_integer(held) and most < held and "Rounds.$" not in node.value:
        yield LONGER, f"as {held} rounds are held anyway", "make it more than Rounds"
    if "RequiredMajority" in names:
        yield "Threshold", "together with 'RequiredMajority'", "keep one of them"


def _shares(node: Node, consensus: Mapping[str, Json]) -> Iterator[Finding]:
    for field in ("Threshold", "RequiredMajority"):
        if is_number(consensus.get(field)) and consensus[field] == 1:
            yield Finding(
                "V-DEB-06",
                "a single vote against, or an abstention, prevents consensus",
                node.at("Consensus", field),
                severity=Severity.WARNING,
            )


def describe_debate(state: Mapping[str, Json]) -> Iterator[str]:
    """Yield the participants."""
    agents = state.get("Agents")
    if type(agents) is list:
        yield ", ".join(map(str, agents))


DEBATE = StateType(
    "Debate",
    compile_debate,
    check_debate,
    effect=True,
    forks=True,
    budgeted=True,
    calls=lambda state: True,
    insertions=(("Topic",),),
    outline=Outline.HEXAGON,
    describe=describe_debate,
)
