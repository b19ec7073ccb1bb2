"""The JSON Schemas of dialects: sound, described, and right about documents."""

import json
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from random import Random
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator

import asl
from asl.cli.main import cli
from asl.core.document import read
from asl.dialects.codemie.reader import config_of
from asl.dialects.codemie.schema import SCHEMA as CODEMIE
from asl.dialects.contenox.schema import SCHEMA as CONTENOX
from asl.dialects.flujo.schema import SCHEMA as FLUJO
from asl.dialects.schema import DialectSchema
from tests.bundled import bundled

SCHEMAS = {"codemie": CODEMIE, "contenox": CONTENOX, "flujo": FLUJO}
READ = {
    *("$schema", "$id", "$defs", "$ref", "title", "description", "type", "enum", "const"),
    *("minimum", "maximum", "minLength", "pattern", "required", "properties", "items"),
    *("additionalProperties", "allOf", "anyOf", "not", "if", "then", "else"),
    *("x-rule", "x-message", "x-hint", "x-advice", "x-at-key", "x-state"),
}
"""The keywords that the reader's check knows, and annotations."""
VALUES: tuple[Any, ...] = (None, "", -1, 1.5, True, [], {}, "text", ["a"], {"a": 1}, [{}], [None])
EACH, SPOILT = 4, 6
"""One document of so many is tried, in so many changed forms."""

every_dialect = pytest.mark.parametrize("name", SCHEMAS)


def walk(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield a schema and those inside it."""
    if not isinstance(schema, dict):
        return
    yield schema
    for keyword in ("properties", "$defs"):
        for each in schema.get(keyword, {}).values():
            yield from walk(each)
    for keyword in ("allOf", "anyOf"):
        for each in schema.get(keyword, ()):
            yield from walk(each)
    for keyword in ("items", "additionalProperties", "not", "if", "then", "else"):
        yield from walk(schema.get(keyword))


@every_dialect
def test_schema_is_valid_and_has_known_keywords(name: str) -> None:
    schema = SCHEMAS[name].value
    Draft202012Validator.check_schema(schema)
    assert schema["$id"] == f"urn:asl:schema:dialects:{name}"
    assert {keyword for each in walk(schema) for keyword in each} <= READ
    named = {each["$ref"].removeprefix("#/$defs/") for each in walk(schema) if "$ref" in each}
    assert named <= schema["$defs"].keys() <= named | {"transform"}


@every_dialect
def test_root_keys_are_described(name: str) -> None:
    """An editor shows what the main keys mean."""
    described = [key for key, each in SCHEMAS[name].value["properties"].items() if each is not True]
    assert all("description" in SCHEMAS[name].value["properties"][key] for key in described[:4])


@cache
def documents(name: str) -> list[Any]:
    """Return the values of the documents of a dialect in the conformance cases."""
    found = []
    for case in bundled(f"dialects/{name}"):
        what = case.document if case.document is not None else str(case.document_text).encode()
        try:
            document = read(what)
            if name == "codemie":
                document, config = config_of(document)
                found.append(config.value)
            else:
                found.append(document.value)
        except (asl.InvalidDocument, asl.AslError, AttributeError):
            continue  # no document of the dialect
    return found


def spoil(value: Any, random: Random) -> Any:
    """Return a value with one change at a random place."""
    value = deepcopy(value)
    places: list[tuple[Any, Any]] = []
    todo = [value]
    while todo:
        each = todo.pop()
        keys = [*each] if isinstance(each, dict) else range(len(each))
        places += [(each, key) for key in keys]
        todo += [each[key] for key in keys if isinstance(each[key], dict | list)]
    if places:
        holder, key = random.choice(places)
        match random.randrange(3):
            case 0:
                holder[key] = deepcopy(random.choice(VALUES))
            case 1:
                del holder[key]
            case 2 if isinstance(holder, dict):
                holder[f"{key}x"] = holder.pop(key)
    return value


def accepts(schema: DialectSchema, value: Any) -> bool:
    return not schema.check(value)


@every_dialect
def test_reader_and_json_schema_agree(name: str) -> None:
    """A document has findings about its structure if a validator of JSON Schema refuses it."""
    schema, random = SCHEMAS[name], Random(name)
    validator = Draft202012Validator(schema.value)
    verdicts = {True: 0, False: 0}
    for document in documents(name)[::EACH]:
        for value in (document, *(spoil(document, random) for _ in range(SPOILT))):
            accepted = accepts(schema, value)
            verdicts[accepted] += 1
            assert validator.is_valid(value) == accepted, json.dumps(value)
    assert min(verdicts.values()) > 20


@every_dialect
def test_schema_is_printed(name: str) -> None:
    for words in (["schema", name], ["schema", name, "--bundle"]):
        assert json.loads(CliRunner().invoke(cli, words).stdout) == SCHEMAS[name].value
    assert name in CliRunner().invoke(cli, ["schema", "--list"]).stdout.split()


@pytest.mark.parametrize(
    ("value", "code", "pointer", "message", "hint"),
    [
        ({"kind": "lop", "name": "a"}, "FL-KIND", "/kind", "must be one of", "did you mean 'loop'"),
        ({"kind": "tree_search"}, "FL-TREE", "/kind", "cannot be run", "let an agent"),
        ({"uses": "a:b"}, "FL-NAME", "", "needs a name", "found by it"),
        ({"name": "a", "retry": 1}, "FL-UNKNOWN-KEY", "/retry", "is unknown", "remove it"),
        ({"name": "a", "next": "b"}, "FL-NEAR-MISS", "/next", "no effect", "follow each other"),
        ({"name": "a", "kind": "loop"}, "FL-SHAPE", "", "'loop' is missing", "add 'loop'"),
        ({"name": "a", "kind": "StateMachine", "states": {"x": []}}, "FL-START", "",
         "needs a start_state", "begins with"),
        ({"name": "a", "kind": "StateMachine", "start_state": "x", "states": {}}, "FL-STATES",
         "/states", "must not be empty", "each with its steps"),
        ({"name": "a", "config": {"max_retries": 1001}}, "FL-SHAPE", "/config/max_retries",
         "must be from 0 to 1000, not 1001", "write from 0 to 1000"),
    ],
)  # fmt: skip
def test_finding_names_rule_place_and_advice(
    value: Any, code: str, pointer: str, message: str, hint: str
) -> None:
    (found,) = FLUJO.check({"steps": [value]})
    assert (found.code, found.pointer) == (code, f"/steps/0{pointer}")
    assert message in found.message
    assert hint in (found.hint or "")
