"""Functions that take and return pydantic models."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

import asl
from asl.agents.function import function_agent
from asl.agents.tool import Tool

from .workflows import caught, task

pytestmark = pytest.mark.quick

if TYPE_CHECKING:
    from nowhere import Unknown


class Change(BaseModel):
    """What is to be reviewed."""

    title: str
    files: list[str] = []
    due: date | None = None


class Verdict(BaseModel):
    """What came of it."""

    model_config = ConfigDict(populate_by_name=True)

    approved: bool
    asked_by: str = Field(alias="askedBy", default="nobody")
    due: date | None = None


def plain(parameters: Change) -> Verdict:
    return Verdict(approved=len(parameters.files) < 3, due=parameters.due)


async def awaited(parameters: Change) -> Verdict:
    return plain(parameters)


def with_call(parameters: Change, call: asl.Call) -> Verdict:
    return Verdict(approved=call.attempt == 1, due=parameters.due)


class Reviewer:
    title: str

    def __call__(self, parameters: Change) -> Verdict:
        return plain(parameters)


class AsyncReviewer:
    async def __call__(self, parameters: Change) -> Verdict:
        return plain(parameters)

    def method(self, parameters: Change) -> Verdict:
        return plain(parameters)


@pytest.mark.parametrize(
    "function",
    [plain, awaited, with_call, Reviewer(), AsyncReviewer(), AsyncReviewer().method,
     f"{__name__}:plain"],
)  # fmt: skip
def test_a_model_comes_in_and_another_goes_out(function: Any) -> None:
    """Dates are read and written, defaults filled in, names written by their aliases."""
    given = {"title": "Engine", "due": "2030-01-02"}
    result = asl.run(task(), given, agents={"A": function})
    assert result.output == {"approved": True, "askedBy": "nobody", "due": "2030-01-02"}


@pytest.mark.parametrize("function", [plain, awaited, with_call])
def test_parameters_that_are_no_such_model_fail_the_task(function: Any) -> None:
    """Every field that is wrong is named."""
    result = asl.run(caught("States.TaskFailed"), {"files": ["a", 1]}, agents={"A": function})
    assert result.output == {
        "Error": "States.TaskFailed",
        "Cause": f"{function.__name__} takes Change, and these parameters are not one: "
        "title: Field required; files.1: Input should be a valid string",
    }


def test_one_side_may_be_plain_json() -> None:
    """A function may take a model and return JSON, or the other way round."""

    def title(parameters: Change) -> str:
        return parameters.title

    def approve(parameters: dict[str, Any]) -> Verdict:
        return Verdict(approved="title" in parameters)

    assert asl.run(task(), {"title": "Engine"}, agents={"A": title}).output == "Engine"
    output = asl.run(task(), {"title": "Engine"}, agents={"A": approve}).output
    assert output == {"approved": True, "askedBy": "nobody", "due": None}


def test_annotations_that_name_nothing_are_ignored() -> None:
    """What exists for a type checker only says nothing, and a model's fields are no parameters."""

    def agent(parameters: Unknown) -> Any:
        return parameters["title"]

    assert asl.run(task(), {"title": "Engine"}, agents={"A": agent}).output == "Engine"
    assert function_agent(len).answer([1, 2], None) == 2


def test_an_error_of_the_function_is_no_error_of_its_parameters() -> None:
    """A model that the function itself makes wrongly is the failure of the function."""

    def agent(parameters: Change) -> Verdict:
        return Verdict.model_validate({"approved": parameters.title})

    result = asl.run(task(), {"title": "Engine"}, agents={"A": agent})
    assert result.error == "States.TaskFailed"
    assert result.cause is not None
    assert result.cause.startswith("ValidationError: 1 validation error for Verdict")


def test_a_tool_is_described_by_its_model() -> None:
    """What a model is told of a tool are the fields of the tool's own model."""
    assert Tool("review", "Reviews.", plain).input == Change.model_json_schema()
    assert Tool("review", "Reviews.", lambda parameters: 1).input == {"type": "object"}
    given = {"type": "object", "required": ["title"]}
    assert Tool("review", "Reviews.", plain, input=given).input == given


@dataclass
class Note:
    """A dataclass of the standard library."""

    title: str


def perhaps(parameters: Change | None) -> Verdict | None:
    return None if parameters is None else plain(parameters)


def each(parameters: list[Change]) -> list[Verdict]:
    return [plain(change) for change in parameters]


def noted(parameters: Note) -> dict[str, Note]:
    return {parameters.title: parameters}


def limited(limit: int, parameters: Change) -> Verdict:
    return Verdict(approved=len(parameters.files) < limit)


def unknown_beside(parameters: Change, call: Unknown) -> Verdict:
    return plain(parameters)


VERDICT = {"approved": True, "askedBy": "nobody", "due": None}


@pytest.mark.parametrize(
    ("function", "given", "answer"),
    [
        (perhaps, {"title": "t"}, VERDICT),
        (perhaps, None, None),
        (each, [{"title": "t"}], [VERDICT]),
        (noted, {"title": "t"}, {"t": {"title": "t"}}),
        (partial(limited, 3), {"title": "t"}, VERDICT),
        (unknown_beside, {"title": "t"}, VERDICT),
    ],
)
def test_models_are_read_and_written_wherever_an_annotation_mentions_them(
    function: Any, given: Any, answer: Any
) -> None:
    """In unions, lists and objects, of partial functions, beside what nobody finds."""
    assert asl.run(task(), given, agents={"A": function}).output == answer
