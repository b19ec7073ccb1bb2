"""Plans: what a document may do, and that it never costs more than the plan says."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import asl
from asl.graphs.paths import strongly_connected

Json = Any
TASK = {"Type": "Task", "Agent": "A"}


def document(budget: Json = None, **states: Json) -> Json:
    """A document of these states, which begins with the first."""
    found = {"StartAt": next(iter(states)), "States": states}
    return found if budget is None else {**found, "Budget": budget}


def costs(whole: Json, **given: Json) -> tuple[float | None, list[str]]:
    """What the plan says of the cost: the most, and the states that it names."""
    found = asl.plan(whole, **given).to_json()["cost"]
    return found["most"], found.get("unlimited", found.get("callsOf"))


def limited(most: float, **more: Json) -> Json:
    return {**TASK, "Budget": {"MaxCost": most}, **more}


def test_what_nothing_limits_has_no_bound() -> None:
    """Not even a large number."""
    assert costs(document(A={**TASK, "End": True})) == (None, ["A"])


def test_unused_retry_is_ignored() -> None:
    """Whatever stands there: on a Pass it is a warning alone."""
    assert costs(document(A={"Type": "Pass", "Retry": [None], "End": True})) == (0, [])


def test_what_asks_no_agent_costs_nothing() -> None:
    """Whatever else it does."""
    whole = document(A={"Type": "Wait", "Seconds": 5, "Next": "A2"}, A2={"Type": "Succeed"})
    assert costs(whole) == (0, [])


def test_states_add_up() -> None:
    """On the dearest way."""
    whole = document(
        A=limited(1, Next="C"),
        C={
            "Type": "Choice",
            "Choices": [{"Variable": "$.x", "IsPresent": True, "Next": "B"}],
            "Default": "D",
        },
        B=limited(5, Next="E"),
        D=limited(2, Next="E"),
        E=limited(0.5, End=True),
    )
    assert costs(whole) == (6.5, [])


def test_the_workflow_limits_all() -> None:
    """By its own limit, and the last call."""
    whole = document({"MaxCost": 3}, A=limited(2, Next="B"), B=limited(2, End=True))
    assert costs(whole) == (5, [])
    whole = document({"MaxCost": 30}, A=limited(2, Next="B"), B=limited(2, End=True))
    assert costs(whole) == (4, [])
    whole = document({"MaxCost": 3}, A=limited(2, Next="B"), B={**TASK, "End": True})
    assert costs(whole) == (5, ["B"])
    whole = document({"Pool": "p", "MaxFromPool": 3}, A={**TASK, "End": True})
    assert costs(whole) == (3, ["A"])


@pytest.mark.parametrize(
    "budget", [{"MaxCost": 3, "OnExceed": "Continue"}, {"MaxCost.$": "$.limit"}, {"MaxTokens": 5}]
)
def test_a_limit_that_stops_nothing_is_none(budget: Json) -> None:
    """One that is computed is not known."""
    assert costs(document(budget, A={**TASK, "End": True}))[0] is None


def test_a_loop_has_no_bound() -> None:
    """Unless a budget around it stops it."""
    again = {"Type": "Choice", "Choices": [{"Variable": "$.x", "IsNull": False, "Next": "A"}]}
    states = {"A": limited(1, Next="B"), "B": {**again, "Default": "C"}, "C": limited(2, End=True)}
    assert costs(document(**states)) == (None, ["A"])
    assert costs(document({"MaxCost": 9}, **states)) == (11, ["A"])


def test_a_loop_that_is_entered_where_nothing_is_asked_has_no_bound() -> None:
    """It is no matter at which of its states a loop begins."""
    choice = {"Type": "Choice", "Choices": [{"Variable": "$.x", "IsNull": False, "Next": "A"}]}
    states = {
        "A": {"Type": "Pass", "Next": "B"},
        "B": limited(1, Next="C"),
        "C": {**choice, "Default": "D"},
        "D": {"Type": "Succeed"},
    }
    assert costs(document(**states)) == (None, ["B"])


@given(
    st.dictionaries(
        st.sampled_from("abcdefg"), st.lists(st.sampled_from("abcdefg"), max_size=3), max_size=7
    )
)
def test_groups_of_states_lead_back_to_each_other(further: dict[str, list[str]]) -> None:
    """They are those that the reach of each tells, and come after all to which they lead."""

    def reach(name: str) -> set[str]:
        seen: set[str] = set()
        waiting = list(further.get(name, ()))
        while waiting:
            if (each := waiting.pop()) not in seen:
                seen.add(each)
                waiting += further.get(each, ())
        return seen

    done: set[str] = set()
    for group, again in strongly_connected("abcdefg", further):
        for name in group:
            assert {name, *group} == {name} | {e for e in reach(name) if name in reach(e)}
            assert again == (name in reach(name))
            assert reach(name) <= done | set(group)
        assert done.isdisjoint(group)
        done.update(group)
    assert done == set("abcdefg")


def test_forks() -> None:
    """Branches add up; items may be many."""
    branches = [document(L=limited(1, End=True)), document(R=limited(2, End=True))]
    both = {"Type": "Parallel", "Branches": branches, "End": True}
    assert costs(document(P=both)) == (3, [])
    retried = {**both, "Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 2}]}
    assert costs(document(P=retried)) == (9, [])
    each = {"Type": "Map", "ItemProcessor": document(T=limited(1, End=True)), "End": True}
    assert costs(document(M=each))[0] is None
    assert costs(document(M={**each, "Budget": {"MaxCost": 4}})) == (4, [])
    assert costs(document(M={**each, "ItemProcessor": document(Z={"Type": "Succeed"})})) == (0, [])


def test_a_map_is_bounded_by_what_is_written() -> None:
    """By its items where they are written, or by the most that are read."""
    each = {"Type": "Map", "ItemProcessor": document(T=limited(2, End=True)), "End": True}
    assert costs(document(M=each)) == (None, ["M"])
    again = {"Retry": [{"ErrorEquals": ["States.ALL"], "MaxAttempts": 1}]}
    written = {"QueryLanguage": "JSONata", **document(M={**each, **again, "Items": [1, 2, 3]})}
    assert costs(written) == (12, [])
    reader = {
        "Resource": "arn:aws:states:::s3:getObject",
        "ReaderConfig": {"InputType": "JSON", "MaxItems": 5},
        "Parameters": {"Bucket": "b", "Key": "k"},
    }
    mode = {"ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}}
    read = {**each, "ItemReader": reader, "ItemProcessor": {**each["ItemProcessor"], **mode}}
    assert costs(document(M=read)) == (10, [])


ONE = document(T={**TASK, "End": True})
DEBATE = {"Type": "Debate", "Agents": ["A", "B", "C"], "Topic": "t"}


SEVERAL = [
    {"Type": "Parallel", "Branches": [ONE, document(U={**TASK, "End": True})]},
    {"Type": "Map", "ItemProcessor": ONE},
    DEBATE,
    {**DEBATE, "Communication": {"Style": "simultaneous"}},
]
"""States that make several calls."""


@pytest.mark.parametrize("state", [TASK, *SEVERAL])
def test_one_call_may_exceed_the_limit_of_the_workflow(state: Json) -> None:
    """However many run at the same time."""
    found = asl.plan(document({"MaxCost": 10}, S={**state, "End": True})).cost
    assert (found.maximum, len(found.states) > 0, found.visits) == (10, True, ())
    limited = {**state, "Budget": {"MaxCost": 12}, "End": True}
    found = asl.plan(document({"MaxCost": 10}, S=limited)).cost
    assert (found.maximum, found.states) == ((22, ()) if state is TASK else (10, ("S",)))


@pytest.mark.parametrize("state", SEVERAL)
def test_one_call_may_exceed_the_limit_of_a_state(state: Json) -> None:
    """Of several in its visit."""
    found = asl.plan(document(S={**state, "Budget": {"MaxCost": 10}, "End": True})).cost
    assert (found.maximum, found.states, found.visits) == (10, (), ("S",))
    assert found.to_json() == {"most": 10.0, "callsOf": [], "callPerVisitOf": ["S"]}


def test_calls_aside_are_counted() -> None:
    """What a judge costs nobody knows by the price of the model of the state."""
    prices = {"m": {"input": 1, "output": 1}}
    task = {**TASK, "Model": {"Preferred": "m"}, "Generation": {"MaxTokens": 5}, "End": True}
    task["Budget"] = {"MaxInputTokens": 10}
    assert costs(document(T=task), prices=prices) == (15, [])
    judged = {**task, "Guardrails": {"Output": {"Validator": "Judge"}}}
    assert costs(document(T=judged), prices=prices) == (None, ["T"])
    warned = {**task, "Budget": {"MaxInputTokens": 10, "OnExceed": "Continue"}}
    assert costs(document(T=warned), prices=prices) == (None, ["T"])


def test_prices_and_bounds_of_tokens() -> None:
    """What may go in and come out has a price."""
    task = {**TASK, "Budget": {"MaxInputTokens": 100, "MaxOutputTokens": 10}, "End": True}
    assert asl.plan(document(A=task)).to_json()["tokens"]["most"] == 110
    priced = document(A={**task, "Model": {"Preferred": "m", "Fallback": "n"}})
    prices = {"m": {"input": "0.01", "output": "0.1"}, "n": 0}
    assert costs(priced, prices=prices) == (2, [])
    assert costs(priced, prices={"m": 0})[0] is None


def test_one_model_may_read_what_another_one_answers() -> None:
    """So each direction has the price of the model that is dearest there."""
    task = {**TASK, "Budget": {"MaxInputTokens": 100, "MaxOutputTokens": 10}, "End": True}
    task["Model"] = {"Preferred": "m", "Fallback": "n", "FallbackOn": ["X"]}
    prices = {"m": {"input": "0.01", "output": "0.1"}, "n": {"input": "0.1", "output": "0.01"}}
    assert costs(document(A=task), prices=prices) == (11, [])


@pytest.mark.parametrize(
    ("computed", "most"),
    [
        (
            {
                "Guardrails": {
                    "Output": {"Rules": [{"Type": "length", "Max": 9, "Action.$": "$.a"}]}
                }
            },
            30,
        ),
        (
            {
                "Guardrails": {
                    "Output": {
                        "MaxRetries.$": "$.n",
                        "Rules": [{"Type": "length", "Max": 9, "Action": "retry"}],
                    }
                }
            },
            None,
        ),
        ({"Guardrails": {"Output": {"MaxRetries.$": "$.n"}}}, 20),
        ({"Model": {"Preferred": "m", "Fallback.$": "$.m"}}, None),
        ({"Model": {"Preferred.$": "$.m", "Fallback": "m"}}, None),
    ],
)
def test_what_the_data_decides_is_no_bound(computed: Json, most: float | None) -> None:
    """Computed retries and models: as many, and as dear, as anybody likes."""
    task = {
        **TASK,
        "Model": {"Preferred": "m"},
        "Budget": {"MaxInputTokens": 10},
        "Generation": {"MaxTokens": 10},
        "End": True,
    }
    prices = {"m": {"input": 1, "output": 1}}
    assert costs(document(A={**task, **computed}), prices=prices)[0] == most


def test_who_is_asked_may_be_computed() -> None:
    """Then the plan names what computes it."""
    rules = [{"Type": "custom", "Agent.$": "$.judge"}]
    whole = document(A={**TASK, "Guardrails": {"Input": {"Rules": rules}}, "End": True})
    assert asl.plan(whole).to_json()["agents"] == {"$.judge": ["A"], "A": ["A"]}


def test_who_is_asked() -> None:
    """All names, with the states that use them."""
    whole = {
        **document(
            {"MaxTokens": 5, "Fallback": {"Cascade": [{"When": "Always", "Agent": "Spare"}]}},
            A={
                **TASK,
                "Guardrails": {"Output": {"Validator": "Judge"}},
                "Model": {"Preferred": "m", "Fallback": ["n"]},
                "Tools": {"Allowed": ["files", "web"], "Denied": ["rm"]},
                "Next": "B",
            },
            B={"Type": "Task", "Resource": "arn:aws:lambda:us-east-1:1:function:f", "Next": "C"},
            C={"Type": "Approval", "Prompt": "?", "Options": ["yes"], "Next": "D"},
            D={"Type": "Workflow", "WorkflowId": "w", "End": True},
        ),
        "ToolCategories": {"files": ["read", "rm"]},
    }
    plan = asl.plan(whole).to_json()
    assert plan["agents"] == {"A": ["A"], "Judge": ["A"], "Spare": ["A"]}
    assert plan["resources"] == {"arn:aws:lambda:us-east-1:1:function:f": ["B"]}
    assert plan["tools"] == {"read": ["A"], "web": ["A"]}
    assert plan["models"] == {"m": ["A"], "n": ["A"]}
    assert (plan["people"], plan["workflows"]) == (["C"], {"w": ["D"]})
    assert (plan["ways"], plan["complete"]) == ([["A", "B", "C", "D"]], True)


def test_many_ways_are_cut() -> None:
    """A plan lists as many as it is asked for, and says so."""
    states: Json = {}
    for n in range(12):
        states[f"C{n}"] = {
            "Type": "Choice",
            "Choices": [{"Variable": "$.x", "IsNull": True, "Next": f"P{n}"}],
            "Default": f"C{n + 1}",
        }
        states[f"P{n}"] = {"Type": "Pass", "Next": f"C{n + 1}"}
    plan = asl.plan(document(**states, C12={"Type": "Succeed"}), limit=7)
    assert (len(plan.ways), plan.complete) == (7, False)


def test_ways_that_lead_to_no_end_are_not_followed_for_ever() -> None:
    """Nine states that lead to each other have more ways than anybody could list."""
    names = [f"S{n}" for n in range(9)]
    states = {
        name: {
            "Type": "Choice",
            "Choices": [{"Variable": "$.x", "NumericEquals": 1, "Next": each} for each in names],
            "Default": names[0],
        }
        for name in names
    }
    plan = asl.plan({"StartAt": "S0", "States": states})
    assert (plan.ways, plan.complete) == ((), False)


def test_a_long_chain_is_planned() -> None:
    """The number of states is no matter."""
    states = {f"S{n}": limited(1, Next=f"S{n + 1}") for n in range(1500)}
    assert costs(document(**states, S1500={"Type": "Succeed"}))[0] == 1500


def test_an_unsound_document_is_refused() -> None:
    """Nobody plans what cannot run."""
    with pytest.raises(asl.InvalidDocument):
        asl.plan(document(A={**TASK, "Next": "B"}))


@given(
    st.lists(
        st.tuples(st.integers(1, 30), st.integers(0, 3), st.booleans()), min_size=1, max_size=6
    ),
    st.none() | st.integers(1, 60),
)
def test_no_run_costs_more_than_its_plan(
    states: list[tuple[int, int, bool]], limit: int | None
) -> None:
    """With agents that keep to their limits, whatever fails on the way."""
    written: Json = {}
    for n, (most, retries, _) in enumerate(states):
        written[f"S{n}"] = {
            "Type": "Task",
            "Agent": f"A{n}",
            "Budget": {"MaxTokens": most},
            "Retry": [{"ErrorEquals": ["X"], "MaxAttempts": retries, "IntervalSeconds": 1}],
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": f"S{n + 1}"}],
            "Next": f"S{n + 1}",
        }
    whole = document(
        None if limit is None else {"MaxTokens": limit},
        **written,
        **{f"S{len(states)}": {"Type": "Succeed"}},
    )
    agents: Json = {}
    for n, (most, retries, fails) in enumerate(states):
        calls = most // (retries + 1)

        def agent(parameters: Json, calls: int = calls, fails: bool = fails) -> Json:
            if fails:
                error = asl.StateError("X")
                error.usage = {"_tokens": calls}
                raise error
            return {"_tokens": calls}

        agents[f"A{n}"] = agent
    result = asl.run(whole, agents=agents, clock="virtual")
    most_of_all = asl.plan(whole).tokens.maximum
    assert most_of_all is not None
    assert result.usage["tokens"] <= most_of_all


def test_a_template_may_lead_to_a_state_that_its_parameters_name() -> None:
    catcher = {"ErrorEquals": ["E"], "Next": "{{handler}}"}
    task = {"Type": "Task", "Agent": "Judge", "Catch": [catcher], "End": True}
    template = {
        "Parameters": {"handler": {"Type": "string"}},
        "StartAt": "A",
        "States": {"A": task},
    }
    assert list(asl.plan(template).agents) == ["Judge"]


def test_the_budget_of_an_included_document_bounds_its_visit() -> None:
    """What runs within it may spend no more than that together."""
    states = {"P": {"Type": "Task", "Agent": "A", "End": True}}
    template = {"StartAt": "P", "Budget": {"MaxCost": 0.5}, "States": states}
    include = {"Type": "Include", "Template": template, "End": True}
    assert costs(document(I=include))[0] == 0.5


def test_a_template_by_itself_is_planned_as_far_as_it_is_known() -> None:
    """A state that only a parameter fills in is no state yet."""
    states = {"S": {"Type": "Pass", "Next": "T"}, "T": "{{last}}"}
    plan = asl.plan({"Parameters": {"last": {}}, "StartAt": "S", "States": states})
    assert plan.ways == (("S", "T"),)
