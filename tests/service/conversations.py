"""Recorded conversations with Step Functions, played against a client.

A case is a list of calls and waits. Values of requests and answers may refer to earlier answers or
describe a form: `$ref`, `$text`, `$like`, `$date`. A call is judged twice: loosely (every recorded
member is equal, the error code is equal) and exactly (no further member, message and status too).
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["FILE", "Case", "Outcome", "Refusal", "play", "read_cases"]

Json = Any
FILE = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "aws-api" / "open.jsonl"
LATER = {"encryptionConfiguration", "redriveCount", "redriveStatus", "redriveStatusReason"}
"""Members that the service began to send after some recordings."""
NAMES = {"region": "us-east-1", "account": "123456789012"}


class Refusal(Exception):
    """A refused call."""

    def __init__(self, code: str, message: str, status: int) -> None:
        super().__init__(code, message)
        self.code, self.message, self.status = code, message, status


class Outcome(NamedTuple):
    """How a case ended."""

    loose: bool
    exact: bool
    why: str


class Case(NamedTuple):
    """A recorded case."""

    id: str
    calls: list[dict[str, Json]]
    needs: Mapping[str, Any]
    is_verified: bool
    is_playable: bool


def read_cases() -> Iterator[Case]:
    """Yield the recorded cases."""
    for line in FILE.read_text(encoding="utf-8").splitlines():
        found = json.loads(line)
        yield Case(
            found["id"],
            found["calls"],
            found.get("needs") or {},
            not found.get("unverified"),
            not (found.get("why_not") or found.get("needs_service")),
        )


Call = Callable[[str, dict[str, Json]], Json]
"""Sends a request: operation and parameters to the answer; raises Refusal."""


def play(case: Case, call: Call, pause: Callable[[], object]) -> Outcome:
    """Play a case.

    Args:
        case: The case.
        call: Sends a request.
        pause: Called between two looks of a wait.
    """
    return _Play(case, call, pause).run()


class _Play:
    def __init__(self, case: Case, call: Call, pause: Callable[[], object]) -> None:
        self.case, self.call, self.pause = case, call, pause
        token = f"{abs(hash(case.id)):x}"[:7]
        self.names = {**NAMES, "u1": f"a{token}", "u2": f"b{token}"}
        self.names |= {name: _stand_in(name, each) for name, each in case.needs.items()}
        self.answers: dict[str, Json] = {}
        self.exact = True
        self.why = ""

    def run(self) -> Outcome:
        for index, each in enumerate(self.case.calls):
            works = self.wait(each) if "wait" in each else self.send(each)
            if not works:
                return Outcome(False, False, f"call {index}: {self.why}")
        return Outcome(True, self.exact, self.why)

    def wait(self, step: dict[str, Json]) -> bool:
        until = step["until"]
        for _ in range(500):
            found = [*_at(self.call(step["wait"], self.filled(step["params"])), until["path"])]
            if "any_of" in until and any(each in self.filled(until["any_of"]) for each in found):
                return True
            if "has" in until and self.filled(until["has"]) in found:
                return True
            if "lacks" in until and self.filled(until["lacks"]) not in found:
                return True
            self.pause()
        self.why = f"{step['wait']} never came to {until}: {found}"
        return False

    def send(self, step: dict[str, Json]) -> bool:
        try:
            answer = self.sent(step)
        except Refusal as refusal:
            return self.refused(step.get("error"), refusal)
        if "error" in step:
            self.why = f"{step['op']} was taken: {answer}"
            return False
        self.answers[step.get("as", "")] = answer
        if "only" in step:
            only = step["only"]
            kept = self.filled(only["in"])
            listed = [each for each in answer[only["list"]] if each[only["by"]] in kept]
            answer = {**answer, only["list"]: listed}
        return "expect" not in step or self.matches(step["expect"], answer, step["op"])

    def sent(self, step: dict[str, Json]) -> Json:
        params = self.filled(step["params"])
        answer = self.call(step["op"], params)
        while step.get("paginate") and answer.get("nextToken"):
            page = self.call(step["op"], {**params, "nextToken": answer.pop("nextToken")})
            for name, value in page.items():
                answer[name] = answer[name] + value if isinstance(value, list) else value
        return answer

    def refused(self, error: dict[str, Json] | None, refusal: Refusal) -> bool:
        if error is None or error["code"] != refusal.code:
            self.why = f"{refusal.code}: {refusal.message}; expected {error}"
            return False
        same = self.equal(error["message"], refusal.message, "message")
        if not same or error.get("http") not in (None, refusal.status):
            self.exact = False
            self.why = f"{refusal.message!r} is not {self.filled_text(error['message'])!r}"
        return True

    # Values

    def filled(self, value: Json) -> Json:
        if isinstance(value, list):
            return [self.filled(each) for each in value]
        if not isinstance(value, dict):
            return value
        if "$ref" in value:
            return self.reference(value["$ref"])
        if "$text" in value:
            return self.filled_text(value)
        return {key: self.filled(each) for key, each in value.items()}

    def filled_text(self, value: Json, quoted: bool = False) -> str:
        text = value if isinstance(value, str) else value.get("$text", value.get("$like"))
        quote = re.escape if quoted else str
        return re.sub(r"\$\{([^}]+)\}", lambda found: quote(self.named(found[1])), text)

    def named(self, name: str) -> str:
        name, _, change = name.partition("|")
        if re.fullmatch(r"u\d+", name):
            return self.names.setdefault(name, f"{name}{self.names['u1'][1:]}")
        value = self.names[name] if name in self.names else self.reference(name)
        if change.startswith("seg-"):
            return str(value).split(":")[-int(change[4:])]
        if change == "after-slash":
            return str(value).rpartition("/")[2]
        return str(value)[: -int(change[4:])] if change.startswith("cut-") else str(value)

    def reference(self, path: str) -> Json:
        (found,) = _at(self.answers, path)
        return found

    def matches(self, expected: Json, found: Json, where: str) -> bool:
        if isinstance(expected, dict) and "$date" in expected:
            return self.check(isinstance(found, int | float), where, expected, found)
        if isinstance(expected, dict) and ("$ref" in expected or "$text" in expected):
            return self.check(self.filled(expected) == found, where, self.filled(expected), found)
        if isinstance(expected, dict) and "$like" in expected:
            pattern = self.filled_text(expected, quoted=True)
            same = re.fullmatch(pattern, str(found), re.DOTALL) is not None
            return self.check(same, where, pattern, found)
        if isinstance(expected, dict | list) and isinstance(found, str):
            try:
                found = json.loads(found)
            except ValueError:
                return self.check(False, where, expected, found)
        if isinstance(expected, dict):
            return self.members(expected, found, where)
        if isinstance(expected, list):
            if not isinstance(found, list) or len(found) != len(expected):
                return self.check(False, where, expected, found)
            pairs = enumerate(zip(expected, found, strict=True))
            return all(self.matches(*pair, f"{where}[{index}]") for index, pair in pairs)
        return self.check(
            expected == found and type(expected) is type(found), where, expected, found
        )

    def members(self, expected: dict[str, Json], found: Json, where: str) -> bool:
        if not isinstance(found, dict):
            return self.check(False, where, expected, found)
        more = found.keys() - expected.keys() - LATER
        if more:
            self.exact, self.why = False, f"{where} has {sorted(more)} more"
        for name, value in expected.items():
            if name not in found:
                return self.check(False, f"{where}.{name}", value, None)
            if name == "variableReferences":
                value = {key: sorted(each) for key, each in value.items()}
                same = {key: sorted(each) for key, each in found[name].items()} == value
                if not self.check(same, where, value, found[name]):
                    return False
            elif not self.matches(value, found[name], f"{where}.{name}"):
                return False
        return True

    def equal(self, expected: Json, found: str, where: str) -> bool:
        if isinstance(expected, dict) and "$like" in expected:
            return re.fullmatch(self.filled_text(expected, quoted=True), found) is not None
        return self.filled_text(expected) == found

    def check(self, same: bool, where: str, expected: Json, found: Json) -> bool:
        if not same:
            self.why = f"{where}: expected {expected!r:.500}, got {found!r:.500}"
        return same


def _at(value: Json, path: str) -> Iterator[Json]:
    """Yield the values at a path such as `r1.events[].id`."""
    found = [value]
    for step in path.split("."):
        name, listed = step.removesuffix("[]"), step.endswith("[]")
        found = [each[name] for each in found if isinstance(each, dict) and name in each]
        if listed:
            found = [each for every in found for each in every]
    yield from found


def _stand_in(name: str, need: Mapping[str, Json]) -> str:
    account, region = NAMES["account"], NAMES["region"]
    match need["kind"]:
        case "role":
            return f"arn:aws:iam::{account}:role/{name}"
        case "log-group":
            return f"arn:aws:logs:{region}:{account}:log-group:{name}:*"
        case "lambda-function":
            return f"arn:aws:lambda:{region}:{account}:function:{name}"
        case "sqs-queue":
            return f"https://sqs.{region}.amazonaws.com/{account}/{name}"
        case _:
            return name
