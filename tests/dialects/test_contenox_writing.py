"""Chains of Contenox made of other documents: what becomes of each state, and what is lost."""

from typing import Any

import pytest
from click.testing import CliRunner

import asl
from asl import Severity
from asl.cli.main import cli

TASK = {"Type": "Task", "Agent": "Worker"}


def written(states: dict[str, Any], **more: Any) -> asl.Conversion:
    for state in states.values():
        if not {"Next", "End", "Choices"} & state.keys() and state["Type"] not in (
            "Succeed",
            "Fail",
        ):
            state["End"] = True
    conversion = asl.convert({"StartAt": next(iter(states)), "States": states, **more}, "contenox")
    again = asl.load(conversion.text)
    assert again.dialect == "contenox"
    assert asl.check(again).ok
    # It passes the rules of the engine that it is for.
    assert asl.load(conversion.text, reading={"profile": "runtime"}).value == again.value
    # What was written is the chain of the document that it is read as.
    assert asl.convert(again, "contenox").document == conversion.document
    return conversion


def tasks(conversion: asl.Conversion) -> dict[str, Any]:
    return {each["id"]: each for each in conversion.document["tasks"]}


def told(conversion: asl.Conversion) -> set[str]:
    """What is lost or approximated."""
    return {each.code for each in conversion.losses if each.severity.value != "info"}


def test_a_task_is_a_tool() -> None:
    """Its agent is the provider, what is written out its arguments."""
    conversion = written(
        {
            "A": {**TASK, "Comment": "Works", "Parameters": {"task": "do"}, "Next": "B"},
            "B": {**TASK, "TimeoutSeconds": 90},
        },
        Comment="Two at work",
    )
    assert conversion.faithful
    assert conversion.document == {
        "id": "two-at-work",
        "description": "Two at work",
        "x-engine": "2026-06",
        "token_limit": 131_072,
        "tasks": [
            {
                "id": "A",
                "description": "Works",
                "handler": "tools",
                "tools": {"name": "Worker", "args": {"task": "do"}},
                "transition": {"branches": [{"operator": "default", "when": "", "goto": "B"}]},
            },
            {
                "id": "B",
                "handler": "tools",
                "tools": {"name": "Worker"},
                "timeout": "90s",
                "transition": {"branches": [{"operator": "default", "when": "", "goto": "end"}]},
            },
        ],
    }


def noted(conversion: asl.Conversion) -> bool:
    """Whether the report names another form of the input."""
    return "L-INPUT" in {each.code for each in conversion.losses}


def test_the_input_of_a_chain_needs_no_name() -> None:
    """Where a document reads nothing else of its input, that is what the chain is given."""
    read = {"input.$": "$.input", "args": {"tone": "warm"}}
    conversion = written({"A": {**TASK, "Parameters": read}})
    assert told(conversion) == set()
    assert noted(conversion)
    worker = {"name": "Worker", "args": {"tone": "warm"}}
    (task,) = conversion.document["tasks"]
    assert {"id": "A", "handler": "tools", "tools": worker}.items() <= task.items()
    assert "prompt_template" not in task
    other = written({"A": {**TASK, "Parameters": {**read, "kind.$": "$.kind"}}})
    assert not noted(other)
    assert not noted(written({"A": {**TASK}}))


def test_a_result_is_found_under_the_name_of_its_task() -> None:
    """Data is followed to whoever has made it."""
    conversion = written(
        {
            "A": {**TASK, "ResultPath": "$.a", "Next": "B"},
            "B": {**TASK, "ResultPath": "$.b", "Next": "C"},
            "C": {**TASK, "InputPath": "$.a", "Next": "D"},
            "D": {
                **TASK,
                "Parameters": {"task": "say", "text.$": "States.Format('of {}', $.word)"},
            },
        }
    )
    made = tasks(conversion)
    assert made["C"]["input_var"] == "A"
    assert made["D"]["prompt_template"] == "of {{.C.word}}"
    assert made["D"]["tools"]["args"] == {"task": "say"}
    assert made["B"]["prompt_template"] == '{{toJson (set (deepCopy .input) "a" .A)}}'
    assert told(conversion) == {"CX-PARAMS", "CX-GOFMT"}


def test_a_choice_about_several_values_is_a_label() -> None:
    """The engine's own tool returns the text that its template fills in."""
    conversion = written(
        {
            "A": {**TASK, "ResultPath": "$.a", "Next": "Is it?"},
            "Is it?": {
                "Type": "Choice",
                "Choices": [
                    {
                        "And": [
                            {"Variable": "$.a.kind", "StringEquals": "x"},
                            {"Not": {"Variable": "$.sure", "BooleanEquals": False}},
                        ],
                        "Next": "Well done",
                    }
                ],
                "Default": "A",
            },
            "Well done": {"Type": "Pass"},
        }
    )
    assert tasks(conversion)["Is it?"] == {
        "id": "Is it?",
        "handler": "tools",
        "prompt_template": '{{if and (eq .A.kind "x") (not (eq .input.sure false))}}Well_done'
        "{{else}}A{{end}}",
        "tools": {"name": "echo"},
        "output_template": "{{.}}",
        "transition": {
            "branches": [
                {"operator": "equals", "when": "Well_done", "goto": "Well done"},
                {"operator": "default", "when": "", "goto": "A"},
            ]
        },
    }
    assert told(conversion) == {"CX-OUTPUT", "CX-PARAMS"}


def test_a_choice_about_one_text_compares_it_in_branches() -> None:
    rule = {"Variable": "$.verdict", "StringEquals": "yes", "Next": "B"}
    states = {
        "A": {**TASK, "Next": "C"},
        "C": {"Type": "Choice", "Choices": [rule], "Default": "D"},
        "B": {**TASK},
        "D": {"Type": "Succeed"},
    }
    conversion = written(states)
    assert conversion.ok
    made = tasks(conversion)
    assert made["C"]["prompt_template"] == "{{.A.verdict}}"
    assert made["C"]["transition"]["branches"] == [
        {"operator": "equals", "when": "yes", "goto": "B"},
        {"operator": "default", "when": "", "goto": "D"},
    ]
    assert made["B"]["input_var"] == "A"


def test_a_tool_decides_by_its_output_template_if_nothing_else_of_its_answer_is_read() -> None:
    rule = {"Variable": "$.verdict", "StringEquals": "yes", "Next": "B"}
    states = {
        "A": {**TASK, "Next": "C"},
        "C": {"Type": "Choice", "Choices": [rule], "Default": "D"},
        "B": {**TASK, "Parameters": {"task": "go"}},
        "D": {"Type": "Fail", "Cause": "no"},
    }
    conversion = written(states)
    assert conversion.ok
    made = tasks(conversion)
    assert [*made] == ["A", "B", "D"]
    assert made["A"]["output_template"] == "{{.verdict}}"
    assert made["A"]["transition"]["branches"][0] == {
        "operator": "equals",
        "when": "yes",
        "goto": "B",
    }


def test_an_approval_decides_by_its_record() -> None:
    rule = {"Variable": "$.approval", "StringEquals": "hold", "Next": "B"}
    gate = {"Type": "Approval", "Prompt": "Go?", "Options": ["ship", "hold"], "Choices": [rule]}
    task = {**TASK, "Parameters": {"task": "go"}}
    made = tasks(written({"A": {**gate, "Next": "C"}, "B": task, "C": task}))
    assert made["A"]["output_template"] == "{{.approval}}"
    assert [each["goto"] for each in made["A"]["transition"]["branches"]] == ["B", "C"]


@pytest.mark.parametrize(
    ("rule", "shown"),
    [
        ({"NumericGreaterThan": 5}, '{{if and (kindIs "float64" .x) (gt .x 5.0)}}B'),
        ({"NumericEquals": 7}, "{{if eq .x 7.0}}B"),
        ({"BooleanEquals": True}, "{{if eq .x true}}B"),
        ({"IsString": True}, '{{if kindIs "string" .x}}B'),
        ({"IsPresent": True}, '{{if and (kindIs "map" .) (hasKey . "x")}}B'),
        ({"StringMatches": "a*"}, '{{if and (kindIs "string" .x) (hasPrefix "a" .x)}}B'),
        ({"StringEquals": "7"}, '{{if eq .x "7"}}B'),
        ({"StringEquals": "seven"}, "{{.x}}"),
    ],
)
def test_condition_of_a_template(rule: dict[str, Any], shown: str) -> None:
    states = {
        "A": {**TASK, "Next": "C"},
        "C": {"Type": "Choice", "Choices": [{"Variable": "$.x", **rule, "Next": "B"}]},
        "B": {"Type": "Fail", "Cause": "no"},
    }
    template = tasks(written(states))["A"]["output_template"]
    assert template.startswith(shown)


def test_truth_of_a_value_is_the_condition_itself() -> None:
    states = {
        "A": {**TASK, "Arguments": {"task": "go"}, "Next": "C"},
        "C": {
            "Type": "Choice",
            "Choices": [{"Condition": "{% $states.input.flag %}", "Next": "B"}],
            "Default": "D",
        },
        "B": {**TASK, "Arguments": {"task": "go"}},
        "D": {"Type": "Fail", "Cause": "no"},
    }
    made = tasks(written(states, QueryLanguage="JSONata"))
    assert made["A"]["output_template"] == (
        '{{if and (kindIs "map" .) .flag}}B{{else}}D{{end}}'  # an answer may be any value
    )


def test_a_resource_is_called_by_its_name_instead_of_its_arn() -> None:
    arn = "arn:aws:lambda:eu-west-1:1:function:fetch"
    integration = "arn:aws:states:::lambda:invoke"
    states = {"A": {"Type": "Task", "Resource": arn, "Next": "B"}}
    made = tasks(written({**states, "B": {"Type": "Task", "Resource": integration}}))
    assert [each["tools"]["name"] for each in made.values()] == ["fetch", "lambda:invoke"]


def test_errors_lead_one_way() -> None:
    """One number of attempts, one task behind a failure."""
    conversion = written(
        {
            "A": {
                **TASK,
                "Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 0, "MaxAttempts": 2}],
                "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": None, "Next": "B"}],
            },
            "B": {"Type": "Fail", "Error": "Sad", "Cause": "{{so}}"},
        }
    )
    made = tasks(conversion)
    assert made["A"]["retry_on_failure"] == 2
    assert made["A"]["transition"]["on_failure"] == "B"
    assert made["B"] == {
        "id": "B",
        "handler": "raise_error",
        "prompt_template": 'Sad: {{"{"}}{so}}',
    }
    assert conversion.ok


def test_queries_are_read_as_well() -> None:
    """In JSONata: members, texts put together, objects that are merged, conditions."""
    conversion = written(
        {
            "A": {
                **TASK,
                "Arguments": "{% 'about ' & $states.input.topic %}",
                "Output": "{% $merge([$states.input, {'text': $states.result}]) %}",
                "Assign": {"kept": "{% $states.result %}"},
                "Next": "B",
            },
            "B": {
                "Type": "Choice",
                "Choices": [
                    {"Condition": "{% $states.input.text in ['a', 'b'] %}", "Next": "C"},
                ],
                "Default": "D",
            },
            "C": {**TASK, "Arguments": "{% $kept %}"},
            "D": {"Type": "Succeed", "Output": "{% $states.input.text %}"},
        },
        QueryLanguage="JSONata",
    )
    made = tasks(conversion)
    assert made["A"]["prompt_template"] == "about {{.input.topic}}"
    assert made["B"]["prompt_template"] == "{{.A}}"
    assert [each["when"] for each in made["B"]["transition"]["branches"]] == ["a", "b", ""]
    assert made["C"]["input_var"] == "A"
    assert made["D"] == {
        "id": "D",
        "handler": "noop",
        "input_var": "A",
        "transition": {"branches": [{"operator": "default", "when": "", "goto": "end"}]},
    }
    assert told(conversion) == {"CX-GOFMT", "L-REQUIRED"}


def losses() -> dict[str, tuple[dict[str, Any], set[str]]]:
    task = {**TASK}
    inner = {"StartAt": "X", "States": {"X": {**TASK, "End": True}}}
    catch = {"ErrorEquals": ["Odd"], "Next": "B"}
    rule = {"Variable": "$.x", "Next": "A"}
    return {
        "wait": ({"W": {"Type": "Wait", "Seconds": 5}}, {"CX-WAIT"}),
        "checkpoint": ({"W": {"Type": "Checkpoint", "Name": "c"}}, {"CX-CHECKPOINT"}),
        "parallel": ({"P": {"Type": "Parallel", "Branches": [inner]}}, {"CX-PARALLEL"}),
        "map": ({"M": {"Type": "Map", "ItemProcessor": inner}}, {"CX-MAP"}),
        "debate": (
            {"D": {"Type": "Debate", "Topic": "x", "Agents": ["a", "b"], "Rounds": 1}},
            {"CX-DEBATE"},
        ),
        "approval": (
            {"P": {"Type": "Approval", "Prompt": "Go?", "Next": "A"}, "A": task},
            {"CX-APPROVAL", "CX-PARAMS"},
        ),
        "block": ({"A": {**task, "Budget": {"MaxCost": "$1"}}}, {"CX-META"}),
        "retry": (
            {"A": {**task, "Retry": [{"ErrorEquals": ["Odd"], "IntervalSeconds": 0}]}},
            {"CX-RETRY"},
        ),
        "catch": (
            {"A": {**task, "Catch": [catch], "Next": "B"}, "B": {**task, "Parameters": {}}},
            {"CX-CATCH", "CX-PARAMS"},
        ),
        "parameters": ({"A": {**task, "Parameters": {"a": 1}}}, {"CX-PARAMS"}),
        "no parameters": ({"A": {**task, "Parameters": {}}}, {"CX-PARAMS"}),
        "selector": ({"A": {**task, "ResultSelector": {"a.$": "$.a[*]"}}}, {"CX-SELECTOR"}),
        "input path": ({"A": {**task, "InputPath": "$.x"}}, {"CX-PARAMS"}),
        "inexpressible input": ({"A": {**task, "InputPath": "$.x[*]"}}, {"CX-INPUTPATH"}),
        "output path": ({"A": {**task, "OutputPath": "$.x[*]"}}, {"CX-OUTPUT"}),
        "result path": ({"A": {**task, "ResultPath": "$.x"}}, {"CX-OUTPUT"}),
        "pass": ({"P": {"Type": "Pass", "Parameters": {"a.$": "States.UUID()"}}}, {"CX-PASS"}),
        "output": ({"P": {"Type": "Pass", "Result": {"a": 1}}}, {"CX-OUTPUT"}),
        "no data": (
            {
                "C": {
                    "Type": "Choice",
                    "Choices": [
                        {
                            "Variable.$": "States.CurrentCost()",
                            "NumericGreaterThan": 4,
                            "Next": "A",
                        }
                    ],
                    "Default": "A",
                },
                "A": task,
            },
            {"CX-OPERATOR"},
        ),
        "patterns": (
            {"C": {"Type": "Choice", "Choices": [{**rule, "StringMatches": "a*b*c"}]}, "A": task},
            {"CX-OPERATOR"},
        ),
        "include": (
            {"I": {"Type": "Workflow", "WorkflowId": "other"}},
            {"L-INCLUDE"},
        ),
    }


@pytest.mark.parametrize("kind", losses())
def test_every_loss_is_reported(kind: str) -> None:
    """With the code that the language has for it, and nothing else."""
    states, expected = losses()[kind]
    assert told(written(states)) == expected


def test_retry_delay_is_reported_as_information() -> None:
    """A chain repeats a task immediately, which changes neither path nor output."""
    task = {**TASK, "Retry": [{"ErrorEquals": ["States.ALL"]}]}
    assert "CX-DELAY" in {each.code for each in written({"A": task}).losses.of(Severity.INFO)}


def test_a_loss_has_a_place() -> None:
    """It is the field that has no form there, not the state that reads what it made."""
    selector = {"a.$": "$.x[*]"}
    conversion = written(
        {"A": {**TASK, "ResultSelector": selector, "Next": "B"}, "B": {"Type": "Succeed"}}
    )
    (lost,) = (each for each in conversion.losses if each.severity.value == "error")
    assert (lost.code, lost.pointer) == ("CX-SELECTOR", "/States/A/ResultSelector")


def test_names_that_chains_keep_for_themselves_are_changed() -> None:
    """`input` is the input of the run, and `end` its end."""
    conversion = written({"input": {**TASK, "Next": "end"}, "end": {**TASK}})
    assert [*tasks(conversion)] == ["input_2", "end_2"]
    assert {each.code for each in conversion.losses} == {"L-RESOURCE", "L-NAME"}


def test_a_changed_document_is_written_anew() -> None:
    """What was kept of the chain is not what the document says any more."""
    chain = {"id": "c", "tasks": [{"id": "a", "handler": "noop"}, {"id": "b", "handler": "noop"}]}
    document = dict(asl.load(chain).value)
    assert asl.convert(document, "contenox").document == chain
    document["States"] = {"a": {"Type": "Pass", "End": True}}
    changed = asl.convert(document, "contenox")
    assert "L-CHANGED" in {each.code for each in changed.losses}
    assert [each["id"] for each in changed.document["tasks"]] == ["a"]


def test_the_command_writes_in_the_words_of_either(tmp_path: Any) -> None:
    """Tools are hooks in the documentation."""
    path = tmp_path / "a.asl.json"
    path.write_text(
        '{"StartAt": "A", "States": {"A": {"Type": "Task", "Agent": "x", "End": true}}}'
    )
    for profile, word in (("seed", "hook"), ("union", "tools")):
        words = ["convert", str(path), "--to", "contenox", "--chain", profile]
        run = CliRunner().invoke(cli, words)
        assert run.exit_code == 0, run.output
        (task,) = asl.load(run.stdout).value["Metadata"]["Contenox"]["chain"]["tasks"]
        assert task["handler"] == word
        assert task[word] == {"name": "x"}


def test_a_choice_that_went_there_is_a_choice_again() -> None:
    """Conditions of a template are rules, whatever they compare; nothing grows on the way."""
    rules = [
        {"Variable": "$.a", "StringEquals": "x", "Next": "B"},
        {"And": [{"Variable": "$.n", "NumericGreaterThan": 3}], "Next": "B"},
        {"Not": {"Variable": "$.a", "StringMatches": "y*"}, "Next": "C"},
        {"Variable": "$.a", "IsNull": True, "Next": "C"},
    ]
    states = {
        "A": {"Type": "Choice", "Choices": rules, "Default": "B"},
        "B": {**TASK, "Parameters": {"input.$": "$.a"}},
        "C": {**TASK, "Parameters": {"input.$": "$.n"}},
    }
    home = asl.convert(written(states).text, "amazon")
    choice = home.document["States"]["A"]
    assert [each["Next"] for each in choice["Choices"]] == ["B", "B", "C", "C"]
    assert choice["Choices"][0] == {
        "Condition": "{% $states.input.input.a = 'x' %}",
        "Next": "B",
    }
    assert choice["Default"] == "B"
    again = asl.convert(asl.convert(home.text, "contenox").text, "amazon")
    assert again.document["States"]["A"].keys() == choice.keys()
    assert len(again.document["States"]["A"]["Choices"]) == 4


@pytest.mark.parametrize(("input", "last"), [("x", "b"), ("", "end")])
def test_template_that_selects_a_branch_is_a_condition_at_amazon(input: str, last: str) -> None:
    deciding = {"id": "a", "handler": "parse_transition"}
    branches = [{"operator": "equals", "when": "b", "goto": "b"}, {"operator": "default"}]
    deciding |= {"prompt_template": "/{{if len .input}}b{{else}}c{{end}}"}
    chain = {"id": "c", "tasks": [{**deciding, "transition": {"branches": branches}}]}
    chain["tasks"].append({"id": "b", "handler": "noop"})
    made = asl.convert(chain, "amazon").document
    assert asl.run(made, {"input": input}).visited[-1] == last


def test_an_error_that_a_chain_has_raised_keeps_its_message() -> None:
    """It has a name elsewhere, which is not put into the message again."""
    chain = {"id": "c", "tasks": [{"id": "a", "handler": "raise_error", "prompt_template": "no"}]}
    home = asl.convert(asl.convert(chain, "amazon").text, "contenox")
    assert home.document["tasks"][0]["prompt_template"] == "no"
    assert told(home) == set()


def test_conditions_of_a_template_are_rules_of_plain_texts() -> None:
    """What is converted can be checked and run as it is, not only as the text that is written."""
    which = {
        "id": "which",
        "handler": "parse_transition",
        "prompt_template": '/{{if eq .input "x"}}hit{{else}}miss{{end}}',
        "transition": {"branches": [{"operator": "equals", "when": "hit", "goto": "hit"}]},
    }
    made = asl.convert({"id": "c", "tasks": [which, {"id": "hit", "handler": "noop"}]}, "amazon")
    assert asl.check(made.document).ok
    assert (
        asl.run(made.document, {"input": "x"}).visited
        == asl.run(asl.load(made.text), {"input": "x"}).visited
    )


def test_what_an_agent_is_made_of_is_reported_for_its_tool() -> None:
    workflow = {
        "assistants": [
            {"id": "historian", "model": "gpt-4.1", "temperature": 0, "system_prompt": "Dates."}
        ],
        "states": [
            {
                "id": "look",
                "assistant_id": "historian",
                "task": "When?",
                "next": {"state_id": "end"},
            }
        ],
    }
    made = asl.convert(asl.load(workflow, dialect="codemie"), "contenox")
    (lost,) = (each for each in made.losses if each.code == "L-ACTOR")
    assert lost.severity is asl.Severity.WARNING
    assert "the prompt, the model 'gpt-4.1', the settings" in lost.message
