"""The OpenAPI document: valid, and a client generated from it works."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi")

from asl.service.server import serving
from tests.server.service import client

USE = """
import json, sys, time
from asl_client import Client
from asl_client.api.documents import documents_publish
from asl_client.api.executions import executions_describe, executions_start
from asl_client.api.requests import requests_answer, requests_list_page
from asl_client.models import AnswerRequest, NewExecution, PublishRequest

api = Client(base_url=sys.argv[1] + "/api/v1", raise_on_unexpected_status=True)
published = documents_publish.sync(client=api, body=PublishRequest(text=sys.argv[2], name="Ship"))
assert published.version == 1
started = executions_start.sync(client=api, body=NewExecution(document="Ship", name="one"))
while not (page := requests_list_page.sync(client=api)).requests:
    time.sleep(0.01)
done = requests_answer.sync(page.requests[0].id, client=api, body=AnswerRequest(approval="ship"))
assert done.record["approval"] == "ship"
while (found := executions_describe.sync(started.id, client=api)).status != "SUCCEEDED":
    time.sleep(0.01)
print(json.dumps(found.output))
"""


def test_it_is_valid() -> None:
    """By the specification of OpenAPI; every operation has a name, a tag and a sentence."""
    with client() as api:
        document = api.get("/api/v1/openapi.json").json()
    validator = pytest.importorskip("openapi_spec_validator")
    validator.validate(document)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation["tags"], path
            assert operation["description"].endswith((".", "first.")), (method, path)


def test_a_generated_client_runs_a_workflow(tmp_path: Path) -> None:
    """It publishes, starts, answers and reads."""
    pytest.importorskip("openapi_python_client")
    import asl
    import asl.server
    from tests.server.service import SHIP

    with asl.Store("memory:", agents={"Writer": lambda data: "done"}) as store:
        application = asl.server.app(store, local=True)
        with client(asl.Store("memory:")) as api:
            text = json.dumps(api.get("/api/v1/openapi.json").json())
        (tmp_path / "openapi.json").write_text(text, encoding="utf-8")
        generate = [
            *(sys.executable, "-m", "openapi_python_client", "generate", "--meta", "none"),
            *("--path", "openapi.json", "--output-path", "asl_client"),
        ]
        subprocess.run(generate, cwd=tmp_path, check=True, capture_output=True, timeout=120)
        with serving(application) as url:
            done = subprocess.run(
                [sys.executable, "-c", USE, url, SHIP],
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=60,
            )
    assert (done.returncode, done.stdout) == (0, '"done"\n'), done.stderr
