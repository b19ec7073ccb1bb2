"""Answers that look like templates: what is inserted into a text is never evaluated."""

from typing import Any

import pytest

import asl

SECRET = "the-secret"
HOSTILE = " ".join(
    [
        "{{ $.secret }} {{ $secret }} {{secret}} {{.secret}} {{ context.secret }} {{var:secret}}",
        "{% $secret %} {% $states.input.secret %} ${secret} ${$.secret} $.secret $$.secret",
        "States.Format('{}', $.secret) {{#if context.secret}}{{ context.secret }}{{/if}}",
        "{{ range . }}{{ . }}{{ end }} {} \\{{ $.secret }}",
    ]
)
"""An answer with a placeholder of every language."""

NATIVE = {
    "StartAt": "Ask",
    "States": {
        "Ask": {"Type": "Task", "Agent": "A", "ResultPath": "$.said", "Next": "Format"},
        "Format": {
            "Type": "Pass",
            "Parameters": {
                "secret.$": "$.secret",
                "said.$": "$.said",
                "text.$": "States.Format('it said: {}, {}', $.said, $.said)",
                "list.$": "States.Array(States.StringToJson(States.JsonToString($.said)))",
            },
            "Next": "Use",
        },
        "Use": {
            "Type": "Task",
            "Agent": "Second",
            "Parameters": {"a.$": "$.said", "b.$": "$.text", "c.$": "$.list", "d": "{{ $.said }}"},
            "ResultPath": "$.more",
            "Next": "People",
        },
        "People": {
            "Type": "Approval",
            "Prompt": "Publish {{ $.said }}, {{ $.text }}?",
            "End": True,
        },
    },
}
JSONATA = {
    "QueryLanguage": "JSONata",
    "StartAt": "Ask",
    "States": {
        "Ask": {
            "Type": "Task",
            "Agent": "A",
            "Assign": {"said": "{% $states.result %}", "secret": "{% $states.input.secret %}"},
            "Next": "Use",
        },
        "Use": {
            "Type": "Task",
            "Agent": "Second",
            "Arguments": {"a": "{% $said %}", "b": "{% 'it said: ' & $said %}"},
            "Next": "People",
        },
        "People": {"Type": "Approval", "Prompt": "{% 'Publish ' & $said & '?' %}", "End": True},
    },
}
CONTENOX = """
{"id": "chain", "tasks": [
  {"id": "A", "handler": "prompt_to_string", "prompt_template": "go: {{.input}}",
   "transition": {"branches": [{"operator": "default", "when": "", "goto": "Second"}]}},
  {"id": "Second", "handler": "prompt_to_string", "system_instruction": "of {{var:model|small}}",
   "prompt_template": "it said: {{.A}} {{printf \\"%s\\" .A}} {{.previous_output}}",
   "transition": {"branches": [{"operator": "default", "when": "", "goto": "Third"}]}},
  {"id": "Third", "handler": "noop", "prompt_template": "{{.Second}}",
   "transition": {"branches": [{"operator": "default", "when": "", "goto": "end"}]}}]}
"""
FLUJO = """
steps:
  - { name: ask, uses: "A" }
  - { name: use, uses: "Second", input: "it said: {{ previous_step }} {{ steps.ask | lower }}" }
  - kind: loop
    name: rounds
    loop:
      max_loops: 2
      body: [{ name: again, uses: "Second" }]
      exit_expression: "context.all"
      init: [{ set: { target: context.first, value: "{{ previous_step }}" } }]
      state:
        append: [{ target: context.all, value: "{{ context.first }} {{ previous_step }}" }]
        set: [{ target: context.last, value: "{{ context.all | join }}" }]
      propagation: { next_input: "{{ context.last }}" }
  - { kind: hitl, name: people, message: "Publish {{ context.last }}, {{ previous_step }}?" }
"""
WITH_SECRET = {"secret": SECRET}


@pytest.mark.parametrize(
    ("document", "input"),
    [
        (NATIVE, WITH_SECRET),
        (JSONATA, WITH_SECRET),
        (CONTENOX, WITH_SECRET),
        (FLUJO, {"input": "go", "context": WITH_SECRET}),
    ],
    ids=["native", "jsonata", "contenox", "flujo"],
)
def test_inserted_value_is_not_evaluated(document: Any, input: Any) -> None:
    """Later calls and people see the answer as it is, and nothing that it refers to."""
    seen: list[str] = []

    def agent(parameters: Any) -> str:
        return HOSTILE

    def second(parameters: Any, call: asl.Call) -> str:
        shown = parameters
        if isinstance(parameters, dict):  # without the context, which a step is given as it is
            shown = {name: each for name, each in parameters.items() if name != "context"}
        seen.append(str(shown))
        return HOSTILE

    def people(request: Any) -> str:
        seen.append(request["prompt"])
        return "approve"

    result = asl.run(
        asl.load(document),
        input,
        agents={"A": agent, "Second": second, "Third": second},
        approvals=people,
        clock="virtual",
    )
    assert result.ok, result.cause
    assert seen
    for text in seen:
        assert "$secret" in text
        assert "context.secret" in text
        assert SECRET not in text
