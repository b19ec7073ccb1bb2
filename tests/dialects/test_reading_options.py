"""Options of readers that list names: of tools that people are asked about, of states that fail."""

import pytest

import asl


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ("mail", True),
        ("mail, files", True),
        (["mail"], True),
        ('["mail"]', False),
        (5, False),
        ([""], False),
    ],
)
def test_names_of_tools_are_listed_or_refused(given: object, known: bool) -> None:
    """A list that is taken for its letters would ask nobody."""
    chain = {"id": "c", "tasks": [{"id": "run", "handler": "execute_tool_calls"}]}
    if known:
        states = asl.load(chain, dialect="contenox", reading={"approve": given}).value["States"]
        assert '["mail"' in states["run:gate"]["Choices"][0]["Condition"].replace("'", '"')
    else:
        with pytest.raises(asl.AslError, match="approve"):
            asl.load(chain, dialect="contenox", reading={"approve": given})


def test_end_states_that_fail_are_known() -> None:
    machine = {"kind": "StateMachine", "name": "sm", "start_state": "a", "end_states": ["failed"]}
    blueprint = {"steps": [{**machine, "states": {"a": []}}]}
    read = asl.load(blueprint, dialect="flujo", reading={"fail_states": "failed"})
    assert read.value["Metadata"]["Flujo"]["reading"] == {"fail_states": ["failed"]}
    with pytest.raises(asl.AslError, match="did you mean 'failed'"):
        asl.load(blueprint, dialect="flujo", reading={"fail_states": "faild"})
