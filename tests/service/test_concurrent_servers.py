"""Two servers on one store: what they register at the same time has an order."""

import asyncio
import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from asl.executions import Store
from asl.service.errors import ServiceError
from asl.service.operations import perform
from asl.service.service import StatesService
from tests.service.test_operations import ROLE, SCOPE


def passes(value: int) -> str:
    state = {"Type": "Pass", "Result": value, "End": True}
    return json.dumps({"StartAt": "P", "States": {"P": state}})


def together(path: Path, rounds: int, request: Callable[[int, int], tuple[str, Any]]) -> list[Any]:
    """Send a request from each of two servers in each round; return the answers by round."""
    barrier = Barrier(2, timeout=60)

    def serve(server: int) -> list[Any]:
        answers: list[Any] = []
        with Store(path, synchronous="OFF") as store:
            service = StatesService(store)
            for number in range(rounds):
                operation, members = request(server, number)
                barrier.wait()
                try:
                    answers.append(asyncio.run(perform(service, operation, members, SCOPE)))
                except ServiceError as refusal:
                    answers.append(refusal.code)
        return answers

    with ThreadPoolExecutor(2) as pool:
        return [*zip(*pool.map(serve, range(2)), strict=True)]


def test_one_of_two_state_machines_of_the_same_name_is_created(tmp_path: Path) -> None:
    def request(server: int, number: int) -> tuple[str, Any]:
        definition = passes(server)
        return "CreateStateMachine", {
            "name": f"m{number}",
            "definition": definition,
            "roleArn": ROLE,
        }

    path = tmp_path / "runs.db"
    answers = together(path, 20, request)
    with Store(path) as store:
        service = StatesService(store)
        for answer in answers:
            assert "StateMachineAlreadyExists" in answer
            (created,) = (each for each in answer if isinstance(each, dict))
            arn = {"stateMachineArn": created["stateMachineArn"]}
            found = asyncio.run(perform(service, "DescribeStateMachine", arn, SCOPE))
            assert found["definition"] == passes(answer.index(created))


@pytest.mark.parametrize("operation", ["TagResource", "UpdateStateMachine"])
def test_no_change_of_two_servers_is_lost(operation: str, tmp_path: Path) -> None:
    """All tags are there, and each update published a version of its own."""
    path, rounds = tmp_path / "runs.db", 20
    arn = f"{SCOPE.prefix}:stateMachine:m"

    def request(server: int, number: int) -> tuple[str, Any]:
        if operation == "TagResource":
            tags = [{"key": f"{server}-{number}", "value": ""}]
            return operation, {"resourceArn": arn, "tags": tags}
        members = {"definition": passes(1 + server + 2 * number), "publish": True}
        return operation, {"stateMachineArn": arn, **members}

    with Store(path) as store:
        service = StatesService(store)
        create = {"name": "m", "definition": passes(0), "roleArn": ROLE}
        asyncio.run(perform(service, "CreateStateMachine", create, SCOPE))
        answers = together(path, rounds, request)
        listed = asyncio.run(perform(service, "ListTagsForResource", {"resourceArn": arn}, SCOPE))
        if operation == "TagResource":
            assert listed["tags"] is not None
            assert len(listed["tags"]) == 2 * rounds
        else:
            versions = {each["stateMachineVersionArn"] for answer in answers for each in answer}
            assert versions == {f"{arn}:{number}" for number in range(1, 2 * rounds + 1)}
