"""Mock files with many faults."""

import json
from pathlib import Path

import pytest

from asl.agents.mock_file import MAX_FAULTS, InvalidMocks, load_mocks


def test_reported_faults_of_a_mock_file_are_bounded(tmp_path: Path) -> None:
    case = {f"S{number}": f"R{number}x" for number in range(600)}
    responses = {f"R{number}": {"0": {"Return": 1}} for number in range(600)}
    machines = {"M": {"TestCases": {"Happy": case}}}
    file = tmp_path / "mocks.json"
    file.write_text(json.dumps({"StateMachines": machines, "MockedResponses": responses}))
    with pytest.raises(InvalidMocks) as caught:
        load_mocks(file, "Happy")
    assert len(str(caught.value).splitlines()) == MAX_FAULTS
