"""Signed links: what they are bound to, that they decide once, and never by GET."""

from __future__ import annotations

import re
import threading
from typing import Any

import pytest
from starlette.testclient import TestClient

import asl
from asl.server.access.links import LinkSigner, link_notices
from asl.server.access.secret import StoreSecret
from asl.server.access.users import User, Users
from tests.server.access.people import (
    ASK,
    BOB,
    PEOPLE,
    VIC,
    Clock,
    actions,
    asking,
    csrf_of,
    log_in,
    served,
)

URL = "https://flow.example"


def paused(store: asl.Store, document: Any = ASK, name: str = "one", **more: Any) -> dict[str, Any]:
    """Start an execution that waits, and return its request."""
    store.run(document, {"n": 1}, name=name, **more)
    (request,) = store.pending(name)
    return request


def link_of(
    store: asl.Store, request: Any, user: str | None = "ann", project: str = "default"
) -> str:
    url = LinkSigner(StoreSecret(store), URL).url_of(project, request, user, store.clock.now())
    return url.removeprefix(URL)


def status(store: asl.Store, name: str = "one") -> str:
    return store.resume(name).status


def test_link_shows_the_request_and_decides_nothing(client: TestClient, store: asl.Store) -> None:
    link = link_of(store, paused(store))
    for query in ("", "?option=approve", "?option=reject&approval=reject"):
        answer = client.get(link + query)
        assert answer.status_code == 200
        assert "Ship it?" in answer.text
    assert re.findall(r'name="option" value="([^"]+)"', answer.text) == ["approve", "reject"]
    assert len(store.pending()) == 1
    assert client.head(link).status_code == 200
    assert client.put(link).status_code == 405


def test_link_decides_as_the_user_to_whom_it_was_sent(client: TestClient, store: asl.Store) -> None:
    link = link_of(store, paused(store))
    answer = client.post(link, data={"option": "reject", "comment": "not yet"})
    assert answer.status_code == 200
    result = store.resume("one")
    assert result.output == {
        "approval": "reject",
        "approver": "ann",
        "timestamp": result.output["timestamp"],
        "comment": "not yet",
    }
    (decided,) = [each for each in result.events if each.type == "ApprovalDecided"]
    assert (decided.details["approver"], decided.details["authentication"]) == ("ann", "link")
    assert actions(store) == [("ann", "link", "request.answer")]


@pytest.mark.parametrize("option", ["approve", "reject"])
def test_link_is_used_once(client: TestClient, store: asl.Store, option: str) -> None:
    link = link_of(store, paused(store))
    assert client.post(link, data={"option": "approve"}).status_code == 200
    for answer in (client.post(link, data={"option": option}), client.get(link)):
        assert answer.status_code == 410
        assert "this link was used already" in answer.text
    assert [action for _, _, action in actions(store)] == ["request.answer", "link.refused"]


def test_link_is_used_once_while_more_approvals_are_needed(
    client: TestClient, store: asl.Store
) -> None:
    request = paused(store, asking(Policy={"RequiredApprovals": 2}))
    mine, bobs = link_of(store, request), link_of(store, request, "bob")
    assert "More approvals are needed" in client.post(mine, data={"option": "approve"}).text
    assert client.post(mine, data={"option": "reject"}).status_code == 410
    assert client.post(bobs, data={"option": "approve"}).status_code == 200
    record = store.resume("one").output
    assert [each["approver"] for each in record["approvals"]] == ["ann", "bob"]
    assert all("authentication" not in each for each in [record, *record["approvals"]])


def test_two_links_used_at_once_decide_once(store: asl.Store, tmp_path: Any) -> None:
    with asl.open_store(tmp_path / "runs.db") as shared, served(shared) as client:
        request = paused(shared)
        links = [link_of(shared, request), link_of(shared, request, "bob")]
        options = ["approve", "reject"]
        found: list[int] = []
        barrier = threading.Barrier(2)

        def use(link: str, option: str) -> None:
            barrier.wait()
            found.append(client.post(link, data={"option": option}).status_code)

        threads = [
            threading.Thread(target=use, args=each) for each in zip(links, options, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) in ([200, 409], [200, 410])
        assert shared.resume("one").status == "SUCCEEDED"


def test_other_link_after_the_decision(client: TestClient, store: asl.Store) -> None:
    request = paused(store)
    first, second = link_of(store, request), link_of(store, request, "bob")
    client.post(first, data={"option": "approve"})
    answer = client.post(second, data={"option": "reject"})
    assert answer.status_code == 410
    assert "was decided already" in answer.text


def test_link_ends(client: TestClient, store: asl.Store, clock: Clock) -> None:
    link = link_of(store, paused(store))
    clock.passed = 7 * 86400
    answer = client.get(link)
    assert answer.status_code == 410
    assert "this link ended at 2024-01-08T" in answer.text


def test_link_ends_with_its_request(client: TestClient, store: asl.Store, clock: Clock) -> None:
    link = link_of(store, paused(store, asking(Timeout="1h")))
    clock.passed = 3601
    assert client.post(link, data={"option": "approve"}).status_code == 410


def test_link_after_a_redrive(client: TestClient, store: asl.Store, clock: Clock) -> None:
    fails = {"Type": "Fail", "Error": "Late"}
    document = asking(Timeout="1h", Default="No")
    document["States"]["Ask"] |= {"OnTimeout": "Fail"}
    document["States"]["No"] = fails
    link = link_of(store, paused(store, document))
    clock.passed = 3601
    assert store.resume("one").status == "FAILED"
    store.redrive("one")
    (request,) = store.pending("one")
    assert request["promptText"] == "Ship it?"
    clock.passed = 100
    assert client.post(link, data={"option": "approve"}).status_code == 410
    assert len(store.pending("one")) == 1


def test_link_of_a_request_that_has_changed(client: TestClient, store: asl.Store) -> None:
    request = paused(store)
    for change in ({"promptText": "Ship less?"}, {"options": ["approve"]}, {"createdAt": "x"}):
        answer = client.post(link_of(store, request | change), data={"option": "approve"})
        assert answer.status_code == 410
        assert "has changed since this link was sent" in answer.text
    assert len(store.pending()) == 1


def test_forged_links(client: TestClient, store: asl.Store) -> None:
    link = link_of(store, paused(store))
    body, _, signature = link.rpartition(".")
    wrong = "A" if signature[0] != "A" else "B"
    for each in (f"{body}.{wrong}{signature[1:]}", "/links/x", "/links/a.b", "/links/%00", body):
        assert client.post(each, data={"option": "approve"}).status_code == 410
    assert len(store.pending()) == 1


def test_cookie_of_a_session_is_no_link(client: TestClient, store: asl.Store) -> None:
    """Each purpose has a key of its own."""
    log_in(client)
    assert client.get(f"/links/{client.cookies['asl_session']}").status_code == 410


def test_guessing_links_is_throttled(client: TestClient, store: asl.Store) -> None:
    found = [client.get(f"/links/{index}.x").status_code for index in range(12)]
    assert found == [410] * 10 + [429] * 2


@pytest.mark.parametrize(
    ("user", "code", "says"),
    [
        (None, 410, "has no access any more"),
        (User(roles=frozenset({"viewer"})), 403, "does not have the role"),
        (User(roles=frozenset({"approver"}), projects=frozenset({"x"})), 403, "no access to the"),
    ],
)
def test_link_of_a_user_who_lost_the_rights(
    store: asl.Store, user: User | None, code: int, says: str
) -> None:
    link = link_of(store, paused(store))
    people = {key: each for key, each in PEOPLE.items() if key != "ann"}
    with served(store, users=Users(people | ({"ann": user} if user else {}))) as client:
        answer = client.post(link, data={"option": "approve"})
        assert answer.status_code == code
        assert says in answer.text
    assert len(store.pending()) == 1


def test_link_obeys_the_policy(client: TestClient, store: asl.Store) -> None:
    request = paused(store, asking(Policy={"Approvers": {"Roles": ["manager"]}}))
    answer = client.post(link_of(store, request, "bob"), data={"option": "approve"})
    assert answer.status_code == 403
    assert "may not decide this" in answer.text
    assert actions(store) == [("bob", "link", "request.answer.refused")]
    assert client.post(link_of(store, request), data={"option": "approve"}).status_code == 200


def test_requestor_is_excluded_from_links_as_well(client: TestClient, store: asl.Store) -> None:
    request = paused(store, asking(Policy={"ExcludeRequestor": True}), requestor="ann")
    answer = client.post(link_of(store, request), data={"option": "approve"})
    assert answer.status_code == 403


def test_answer_that_breaks_a_rule_does_not_use_the_link(
    client: TestClient, store: asl.Store
) -> None:
    link = link_of(store, paused(store, asking(Policy={"RequireReason": True})))
    answer = client.post(link, data={"option": "approve"})
    assert answer.status_code == 409
    assert "a reason is required" in answer.text
    assert client.post(link, data={"option": "nothing", "comment": "c"}).status_code == 409
    assert client.post(link, data={"option": "approve", "comment": "c"}).status_code == 200


def test_link_without_user_needs_a_login(client: TestClient, store: asl.Store) -> None:
    link = link_of(store, paused(store), None)
    answer = client.get(link + "?option=approve")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/login?next=%2Flinks%2F")
    assert client.post(link, data={"option": "approve"}).status_code == 303
    log_in(client, VIC)
    assert client.get(link).status_code == 403
    log_in(client, BOB)
    assert "<dd>bob</dd>" in client.get(link).text
    assert client.post(link, data={"option": "approve"}).status_code == 403
    form = {"option": "approve", "csrf": csrf_of(client)}
    assert client.post(link, data=form, headers={"Origin": "https://e"}).status_code == 403
    assert client.post(link, data=form).status_code == 200
    assert store.resume("one").output["approver"] == "bob"


def test_fields_of_a_form_cannot_name_another_user(client: TestClient, store: asl.Store) -> None:
    link = link_of(store, paused(store), "bob")
    forged = {"option": "approve", "approver": "ann", "by": "ann", "roles": "manager", "user": "x"}
    assert client.post(link, data=forged).status_code == 200
    assert store.resume("one").output["approver"] == "bob"


HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(1)>\u202e\x1b[0m\"'&"


def test_names_and_values_are_no_markup(client: TestClient, store: asl.Store) -> None:
    document = asking(
        Prompt=HOSTILE,
        Options=[HOSTILE, "no"],
        Editable={"Fields": ["$.draft"]},
        Policy={"RequireReason": True},
    )
    store.run(document, {"draft": HOSTILE}, name="one")
    (request,) = store.pending("one")
    link = link_of(store, request)
    texts = [client.get(link, params={"option": HOSTILE}).text]
    texts.append(client.post(link, data={"option": HOSTILE, "comment": ""}).text)
    texts.append(client.post(link, data={"option": "y" + HOSTILE, "comment": HOSTILE}).text)
    for text in texts:
        assert "<script" not in text
        assert "<img" not in text
        assert "\u202e" not in text.partition("<form")[0]
    policy = client.get(link).headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "frame-ancestors 'none'" in policy


# Notices


class Channel:
    """A channel that remembers."""

    def __init__(self) -> None:
        self.details: list[dict[str, Any]] = []

    def __call__(self, kind: str, request: Any, details: dict[str, Any]) -> None:
        self.details.append(details)


def test_notices_have_links_of_their_recipients(
    store: asl.Store, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    everyone, anns, bobs = Channel(), Channel(), Channel()
    channels = {"anns": [anns], "bobs": [bobs]}
    monkeypatch.setattr(
        "asl.server.access.links.bind_channels",
        lambda given: [each for name in given for each in channels.get(name, [name])],
    )
    users = Users(
        PEOPLE
        | {
            "ann": User(roles=PEOPLE["ann"].roles, notify=("anns",)),
            "bob": User(roles=PEOPLE["bob"].roles, notify=("bobs",)),
        }
    )
    signer = LinkSigner(StoreSecret(store), URL)
    notify = link_notices([everyone], users, signer, "default", store.clock.now)
    paused(store, asking(Policy={"Approvers": {"Roles": ["manager"]}}), notify=notify)
    (general,), (mine,) = everyone.details, anns.details
    assert bobs.details == []
    assert "actions" not in general
    assert client.get(general["link"].removeprefix(URL)).status_code == 303
    assert [each["option"] for each in mine["actions"]] == ["approve", "reject"]
    shown = client.get(mine["actions"][1]["link"].removeprefix(URL)).text
    assert 'value="reject" class="chosen"' in shown
    assert (
        client.post(mine["link"].removeprefix(URL), data={"option": "approve"}).status_code == 200
    )
    assert status(store) == "SUCCEEDED"
