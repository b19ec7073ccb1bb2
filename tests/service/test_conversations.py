"""Recorded conversations with the service, played through boto3 against our endpoint."""

from collections.abc import Iterator
from datetime import datetime
from time import sleep
from typing import Any

import pytest

import asl
from asl.executions import Store
from tests.service.conversations import FILE, NAMES, Case, Refusal, play, read_cases

boto3 = pytest.importorskip("boto3")
pytest.importorskip("uvicorn")
pytestmark = pytest.mark.skipif(not FILE.exists(), reason="the recordings are not at hand")
CASES = [each for each in read_cases() if each.is_playable] if FILE.exists() else []
VERIFIED = [each for each in CASES if each.is_verified]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    from botocore.config import Config

    from asl.service.http import AwsEndpoint, aws_application
    from asl.service.server import serving
    from asl.service.service import StatesService

    with (
        Store("memory:", tokens=asl.TaskTokens()) as store,
        serving(aws_application(AwsEndpoint(StatesService(store)))) as url,
    ):
        yield boto3.client(
            "stepfunctions",
            endpoint_url=url,
            region_name=NAMES["region"],
            aws_access_key_id=NAMES["account"],
            aws_secret_access_key="secret",
            config=Config(
                parameter_validation=False, inject_host_prefix=False, retries={"max_attempts": 0}
            ),
        )


def sent(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
    from botocore import xform_name
    from botocore.exceptions import ClientError

    try:
        answer = getattr(client, xform_name(operation))(**parameters)
    except ClientError as refusal:
        error, status = refusal.response["Error"], refusal.response["ResponseMetadata"]
        raise Refusal(error["Code"], error["Message"], status["HTTPStatusCode"]) from None
    del answer["ResponseMetadata"]
    return plain(answer)


def plain(value: Any) -> Any:
    """Return an answer with times as numbers."""
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value.timestamp() if isinstance(value, datetime) else value


@pytest.mark.parametrize("case", VERIFIED, ids=lambda case: case.id.rpartition("::")[2])
def test_the_service_answers_as_recorded(case: Case, client: Any) -> None:
    """With every recorded member and no other, AWS's codes and AWS's messages."""
    outcome = play(
        case, lambda operation, parameters: sent(client, operation, parameters), lambda: sleep(0.01)
    )
    assert outcome.exact, outcome.why
