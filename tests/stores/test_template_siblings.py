"""State machines of one template that start one another, in a store."""

import json
from pathlib import Path
from typing import Any

import asl


def _resource(states: dict[str, Any]) -> dict[str, Any]:
    definition = {"StartAt": next(iter(states)), "States": states}
    return {"Type": "AWS::Serverless::StateMachine", "Properties": {"Definition": definition}}


def test_other_state_machines_of_a_template_can_be_started(tmp_path: Path) -> None:
    """A store binds them as `asl.run` does."""
    task = {
        "Type": "Task",
        "Resource": "arn:aws:states:::states:startExecution.sync:2",
        "Parameters": {"StateMachineArn": {"Ref": "Child"}, "Input": {"n": 1}},
        "OutputPath": "$.Output",
        "End": True,
    }
    resources = {
        "Parent": _resource({"Start": task}),
        "Child": _resource({"Done": {"Type": "Pass", "End": True}}),
    }
    template = {"Transform": "AWS::Serverless-2016-10-31", "Resources": resources}
    file = tmp_path / "template.json"
    file.write_text(json.dumps(template))
    document = asl.load(file, resource="Parent")
    assert asl.run(document, profile="aws").output == {"n": 1}
    with asl.open_store(tmp_path / "s.db") as store:
        assert store.run(document, profile="aws").output == {"n": 1}
