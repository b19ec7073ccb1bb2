"""The pages: what they show, to whom, and what their forms do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

import asl
from asl.server import app
from asl.server.access.users import User, Users, hash_of
from asl.server.views import execution_key, request_key
from asl.stores.audit import list_entries
from tests.server.pages import ASK, HOSTILE, ORIGIN, PICK, Page, get, paused, post

HELLO = {"StartAt": "Hi", "States": {"Hi": {"Type": "Pass", "End": True}}}
BROKEN: dict[str, Any] = {
    "QueryLanguage": "JSONata",
    "StartAt": "Sum",
    "States": {"Sum": {"Type": "Pass", "Output": "{% $states.input.a.b + 1 %}", "End": True}},
}
FAILING: dict[str, Any] = {
    "StartAt": "Call",
    "States": {"Call": {"Type": "Task", "Agent": "Weak", "End": True}},
}


@pytest.fixture
def store() -> Iterator[asl.Store]:
    with asl.open_store("memory:", clock="virtual") as opened:
        yield opened


@pytest.fixture
def api(store: asl.Store) -> TestClient:
    return client(store)


def client(store: asl.Store | dict[str, asl.Store], **options: Any) -> TestClient:
    return TestClient(
        app(store, **{"local": True, **options}),
        base_url="http://localhost:8083",
        client=("127.0.0.1", 5),
    )


def as_user(store: asl.Store, *roles: str) -> TestClient:
    users = Users({"ann": User(hash_of("secret"), frozenset(roles))})
    found = client(store, users=users, local=False)
    found.headers["authorization"] = "Bearer secret"
    return found


# Layout


def test_root_leads_to_the_executions(store: asl.Store, api: TestClient) -> None:
    store.run(HELLO, name="first")
    answer = api.get("/")
    assert str(answer.url) == "http://localhost:8083/ui/executions"
    assert "first" in answer.text


@pytest.mark.parametrize(
    "path", ["executions", "executions/first", "inbox", "documents", "costs", "compare", "audit"]
)
def test_a_page_holds_no_style_or_script(store: asl.Store, api: TestClient, path: str) -> None:
    """The policy allows files of this server alone, and pages need nothing else."""
    store.run(HELLO, name="first")
    answer = api.get(f"/ui/{path}")
    assert answer.status_code == 200
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'")
    assert "unsafe" not in policy
    for each in Page(answer.text).elements:
        assert not {"style", "onclick", "onload"} & each.attributes.keys()
        assert each.tag != "style"
        assert each.tag != "script" or each.attributes["src"].startswith("/ui/static/")
        for name in ("src", "href", "action"):
            assert "//" not in each.attributes.get(name, "")


def test_static_files_never_change(api: TestClient) -> None:
    answer = api.get("/ui/static/htmx-4.0.1.min.js")
    assert "immutable" in answer.headers["cache-control"]
    assert api.get("/ui/static/../application.py").status_code == 404
    assert api.get("/ui/static/base.html").status_code == 404


def test_unknown_page_is_an_error_page(api: TestClient) -> None:
    answer = api.get("/ui/executions/nothing")
    assert answer.status_code == 404
    page = Page(answer.text)
    assert page.text("h1") == "Not Found 404"
    assert "nothing" in page.text("p", class_="what")


def test_page_without_credentials_offers_to_log_in(store: asl.Store) -> None:
    answer = TestClient(app(store)).get("/ui/executions")
    assert answer.status_code == 401
    assert 'href="/ui/login' in answer.text


def test_a_mounted_service_links_below_its_path(store: asl.Store) -> None:
    store.run(HELLO, name="first")
    outer = Starlette(routes=[Mount("/flows", app(store, local=True))])
    api = TestClient(outer, base_url="http://localhost:8083", client=("127.0.0.1", 5))
    page = Page(api.get("/flows/").text)
    assert [*page.all("a", href="/flows/ui/executions/first")]
    assert all(
        each.attributes["href"].startswith(("/flows/", "#"))
        for each in page.elements
        if "href" in each.attributes
    )


def test_projects_are_separate(store: asl.Store) -> None:
    store.run(HELLO, name="first")
    with asl.open_store("memory:") as second:
        api = client({"one": store, "two": second})
        page = Page(api.get("/projects/one/ui/executions").text)
        assert [*page.all("a", href="/projects/one/ui/executions/first")]
        assert [*page.all("a", href="/")]
        assert "first" not in api.get("/projects/two/ui/executions").text
        assert api.get("/projects/two/ui/executions/first").status_code == 404


# Executions


def test_executions_are_filtered(store: asl.Store, api: TestClient) -> None:
    store.run(HELLO, name="good")
    store.run(FAILING, name="bad", agents={"Weak": {"raise": {"Error": "Boom", "Cause": "why"}}})
    page = get(api, "executions?status=FAILED")
    assert [*page.all("a", href="/ui/executions/bad")]
    assert not [*page.all("a", href="/ui/executions/good")]
    assert "Boom" in page.text("div", class_="error clip")
    assert [*get(api, "executions?q=WHY").all("a", href="/ui/executions/bad")]
    assert not [*get(api, "executions?workflow=other").all("a", href="/ui/executions/bad")]
    assert api.get("/ui/executions?status=ODD").status_code == 400
    assert api.get("/ui/executions?before=-1").status_code == 400


def test_an_execution_shows_its_states_and_data(store: asl.Store, api: TestClient) -> None:
    store.run(FAILING, {"a": 1}, name="x", agents={"Weak": {"return": {"b": 2, "_cost": 0.25}}})
    page = get(api, "executions/x")
    (node,) = page.all("g", data_pointer="/States/Call")
    assert node.attributes["data-status"] == "SUCCEEDED"
    assert page.text("tr", data_pointer="/States/Call") == "Call Task Succeeded 1 1 0 ms 0.25 0"
    assert page.text("pre", aria_label="Input") == '{ "a": 1 }'
    state = get(api, "executions/x?state=/States/Call")
    assert '"_cost": 0.25' in state.text("pre", aria_label="Output")
    assert len([*page.all("a", role="row")]) == 6


def test_an_error_shows_its_place_in_the_document(store: asl.Store, api: TestClient) -> None:
    store.run(BROKEN, {}, name="x")
    page = get(api, "executions/x")
    assert "States.QueryEvaluationError" in page.text("p", class_="what")
    assert '"Output": "{% $states.input.a.b + 1 %}"' in page.text("span", class_="line marked")
    caret = next(page.all("span", class_="line caret"))
    marked = "".join(next(page.all("span", class_="line marked")).text)
    line = "".join(caret.text).rstrip("\n")
    number = (
        marked.index(" ") if marked[0] == " " else len(marked) - len(marked.lstrip("0123456789"))
    )
    assert marked[number:][len(line) - 1] == '"'


def test_events_come_in_chunks(store: asl.Store, api: TestClient) -> None:
    document = {
        "StartAt": "Each",
        "States": {
            "Each": {
                "Type": "Map",
                "ItemsPath": "$.items",
                "ItemProcessor": {"StartAt": "A", "States": {"A": {"Type": "Pass", "End": True}}},
                "End": True,
            }
        },
    }
    store.run(document, {"items": [*range(100)]}, name="x")
    page = get(api, "executions/x")
    assert len([*page.all("a", role="row")]) == 100
    chunks = [each.attributes["hx-get"] for each in page.all("div", class_="chunk unloaded")]
    assert chunks[0] == "/ui/executions/x/events?from=100"
    part = api.get(chunks[-1], headers={"hx-request": "true"})
    rows = [*Page(part.text).all("a", role="row")]
    assert "ExecutionSucceeded" in "".join(rows[-1].text)
    assert "<html" not in part.text
    event = get(api, "executions/x/events/1")
    assert event.text("h3").startswith("ExecutionStarted")
    assert api.get("/ui/executions/x/events/99999").status_code == 404


def test_hostile_texts_are_shown_literally(store: asl.Store, api: TestClient) -> None:
    name = HOSTILE[:80]
    document = {
        "Comment": HOSTILE,
        "StartAt": name,
        "States": {
            name: {
                "Type": "Approval",
                "Prompt": HOSTILE,
                "Options": [HOSTILE, "no"],
                "Editable": {"Fields": ["$.text"]},
                "End": True,
            }
        },
    }
    request = paused(store, document, {"text": HOSTILE, HOSTILE: HOSTILE}, "</title><i>")
    key = execution_key(store.get("</title><i>"))
    assert key.startswith("~")
    pointer = quote("/States/" + name.replace("~", "~0").replace("/", "~1"))
    for path in (
        "executions",
        f"executions/{key}",
        f"executions/{key}?state={pointer}",
        f"executions/{key}/events",
        f"executions/{key}/events/2",
        "inbox",
        f"inbox/{request_key(request['requestId'])}",
        f"compare?one={key}&other={key}",
    ):
        answer = api.get(f"/ui/{path}")
        assert answer.status_code == 200, path
        page = Page(answer.text)
        assert not [each for each in page.elements if each.tag in ("b", "i")], path
        assert not [each for each in page.elements if "onclick" in each.attributes], path
        assert "\u202e" not in page.shown, path


# Actions


def test_a_failed_execution_is_redriven_with_a_reason(store: asl.Store, api: TestClient) -> None:
    store.run(FAILING, name="x", agents={"Weak": {"raise": {"Error": "Boom"}}})
    answer = post(api, "executions/x/redrive", data={"reason": "fixed"})
    assert answer.headers["location"] == "/ui/executions/x?done=redriven"
    assert store.get("x").redrives == 1
    entry = list_entries(store.session)[0]
    assert (entry.action, entry.target) == ("execution.redrive", "x")
    assert entry.details["reason"] == "fixed"
    assert "fixed" in api.get("/ui/audit").text


def test_an_execution_is_stopped_forked_and_deleted(store: asl.Store, api: TestClient) -> None:
    paused(store, ASK, {"amount": 1}, "x")
    assert post(api, "executions/x/stop", data={"reason": "no"}).status_code == 303
    assert store.get("x").status == "ABORTED"
    answer = post(
        api, "executions/x/fork", data={"at": "Ask", "name": "y", "input": '{"amount": 2}'}
    )
    assert answer.headers["location"] == "/ui/executions/y?done=forked"
    refused = post(api, "executions/x/fork", data={"at": "Ask", "input": "{"})
    assert refused.status_code == 400
    assert "is not JSON" in refused.text
    assert post(api, "executions/x/delete", data={"reason": "old"}).status_code == 303
    assert api.get("/ui/executions/x").status_code == 404


def test_forms_of_other_sites_are_refused(store: asl.Store, api: TestClient) -> None:
    paused(store, ASK, {"amount": 1}, "x")
    headers = {"origin": "http://evil.example", "sec-fetch-site": "cross-site"}
    answer = api.post("/ui/executions/x/stop", data={"reason": "x"}, headers=headers)
    assert answer.status_code == 403
    assert store.get("x").status == "PAUSED"


def test_a_viewer_sees_no_actions_and_cannot_act(store: asl.Store) -> None:
    request = paused(store, ASK, {"amount": 1}, "x")
    viewer = as_user(store, "viewer")
    page = get(viewer, "executions/x")
    assert not [*page.all("form", method="post")]
    assert post(viewer, "executions/x/stop", {}).status_code == 403
    key = request_key(request["requestId"])
    assert "does not have the role" in viewer.get(f"/ui/inbox/{key}").text
    assert post(viewer, f"inbox/{key}", data={"approval": "pay"}).status_code == 403
    assert viewer.get("/ui/audit").status_code == 403


# Inbox


def test_a_request_is_answered_without_scripts(store: asl.Store, api: TestClient) -> None:
    request = paused(store, ASK, {"amount": 90}, "x")
    key = request_key(request["requestId"])
    page = get(api, f"inbox/{key}")
    assert page.text("h1", id="request-title") == "Pay?"
    form = {"digest": page.value("digest"), "edit:amount": "80", "approval": "pay"}
    refused = post(api, f"inbox/{key}", data=form)
    assert refused.status_code == 409
    assert "a reason is required" in refused.text
    assert Page(refused.text).value("edit:amount") == "80"
    answer = post(api, f"inbox/{key}", data={**form, "comment": "fine"})
    assert answer.headers["location"] == "/ui/inbox?done=answered"
    output = store.resume("x").output
    assert output["agreed"] == {"amount": 80}
    assert output["decision"]["comment"] == "fine"
    assert "Answered" in api.get(f"/ui/inbox/{key}").text
    assert post(api, f"inbox/{key}", data={**form, "approval": "drop"}).status_code == 409


def test_a_changed_request_is_not_answered(store: asl.Store, api: TestClient) -> None:
    request = paused(store, ASK, {"amount": 90}, "x")
    form = {"digest": "0" * 64, "approval": "pay", "comment": "fine"}
    answer = post(api, f"inbox/{request_key(request['requestId'])}", data=form)
    assert answer.status_code == 409
    assert "review it again" in answer.text


def test_items_of_a_batch_are_decided(store: asl.Store, api: TestClient) -> None:
    request = paused(store, PICK, {"items": ["a", "b", "c"]}, "x")
    key = request_key(request["requestId"])
    form = {"item:0": "approve", "item:1": "reject", "as_marked": "1"}
    assert "every item needs a decision" in post(api, f"inbox/{key}", data=form).text
    assert post(api, f"inbox/{key}", data={**form, "item:2": "approve"}).status_code == 303
    assert store.resume("x").output["approved"] == ["a", "c"]


def test_several_requests_are_answered_alike(store: asl.Store, api: TestClient) -> None:
    keys = [
        request_key(paused(store, PICK, {"items": [1]}, name)["requestId"]) for name in ("x", "y")
    ]
    form = {"request": keys, "approval": "approve"}
    assert post(api, "inbox", data=form).headers["location"] == "/ui/inbox?done=2"
    assert store.resume("x").output["approval"] == "approve"
    refused = post(api, "inbox", data={"request": keys, "approval": "reject"})
    assert refused.status_code == 409
    assert "2 of 2 answers were refused" in Page(refused.text).text("h1")


def test_the_inbox_shows_what_waits_for_the_user(store: asl.Store) -> None:
    for name, role in (("x", "manager"), ("y", "lawyer")):
        document = json.loads(json.dumps(ASK))
        document["States"]["Ask"]["Policy"] = {"Approvers": {"Roles": [role]}}
        paused(store, document, {"amount": 1}, name)
    manager = as_user(store, "approver", "manager")
    own = get(manager, "inbox")
    assert len([*own.all("a", data_request="")]) == 1
    everything = get(manager, "inbox?show=all")
    assert len([*everything.all("a", data_request="")]) == 2


# Documents


def test_a_document_is_published_and_started(store: asl.Store, api: TestClient) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Name of the reader"},
            "count": {"type": "integer", "minimum": 1},
            "urgent": {"type": "boolean"},
            "size": {"enum": ["small", "large"]},
            "tags": {"type": "array"},
        },
        "required": ["name", "count"],
    }
    text = json.dumps({**HELLO, "Metadata": {"InputSchema": schema}}, indent=1)
    files = {"file": ("hello.asl.json", text)}
    answer = post(api, "documents", data={"name": ""}, files=files)
    assert answer.headers["location"] == "/ui/documents/hello"
    page = get(api, "documents/hello")
    assert [*page.all("input", name="in:count", type="number")]
    form = {"in:name": "Bo", "in:count": "0", "in:size": '"large"', "in:tags": "[1]"}
    refused = post(api, "documents/hello/start", data=form)
    assert refused.status_code == 400
    assert "does not fit the schema" in refused.text
    assert Page(refused.text).value("in:name") == "Bo"
    form |= {"in:count": "3", "execution": "run-1"}
    answer = post(api, "documents/hello/start", data=form)
    key = answer.headers["location"].split("/")[-1].partition("?")[0]
    stored = store.executions()[0]
    assert stored.name.endswith("run-1")
    assert key
    expected = {"name": "Bo", "count": 3, "urgent": False, "size": "large", "tags": [1]}
    assert store.input(stored.name) == expected


def test_a_document_with_errors_shows_their_lines(api: TestClient) -> None:
    text = '{\n  "StartAt": "Hi",\n  "States": {\n    "Hi": { "Type": "Pass", "Nxt": "Hi" }\n  }\n}'
    answer = post(api, "documents", data={"name": "x", "text": text})
    assert answer.status_code == 422
    page = Page(answer.text)
    assert page.text("span", id="line-4").startswith("4")
    assert "V-" in "".join(
        "".join(each.text) for each in page.all("span", class_="line finding error")
    )
    answer = post(api, "documents", data={"name": "x", "text": "{ nothing"})
    assert answer.status_code == 422
    assert "READ-" in answer.text


def test_a_start_form_comes_from_an_example(store: asl.Store, api: TestClient) -> None:
    document = {**HELLO, "Metadata": {"InputExample": {"topic": "bees", "deep": {"a": [1]}}}}
    post(api, "documents", data={"name": "hello", "text": json.dumps(document)})
    assert get(api, "documents/hello").value("in:topic") == "bees"
    form = {"in:topic": "moss", "in:deep": '{"a": [2]}'}
    assert post(api, "documents/hello/start", data=form).status_code == 303
    assert store.input(store.executions()[0].name) == {"topic": "moss", "deep": {"a": [2]}}
    answer = post(api, "documents/hello/start", data={"input": "{"})
    assert answer.status_code == 400
    assert "is not JSON" in answer.text
    assert post(api, "documents/hello/delete", data={"reason": "old"}).status_code == 303
    assert api.get("/ui/documents/hello").status_code == 404
    assert list_entries(store.session)[0].details["reason"] == "old"


# Costs and comparisons


def test_costs_are_added_up(store: asl.Store) -> None:
    api = client(store, pools={"team": "2.00"})
    pooled = {**FAILING, "Budget": {"Pool": "team"}}
    agents = {"Weak": {"return": {"_cost": 0.5, "_tokens": 100, "model": "m1"}}}
    for name in ("x", "y"):
        store.run(pooled, name=name, agents=agents, pools={"team": "2.00"})
    page = get(api, "costs")
    assert page.text("dd", class_="figure") == "1.00"
    text = "".join(next(page.all("main")).text)
    assert "m1" in text
    assert "Pool team" in text
    assert "50 %" in text


def test_two_executions_are_compared(store: asl.Store, api: TestClient) -> None:
    store.run(FAILING, {"a": 1}, name="x", agents={"Weak": {"return": {"b": 1}}})
    store.run(FAILING, {"a": 1}, name="y", agents={"Weak": {"return": {"b": 2}}})
    store.run(FAILING, {"a": 1}, name="z", agents={"Weak": {"raise": {"Error": "Boom"}}})
    page = get(api, "compare?one=x&other=y")
    assert "same steps" in page.text("section", aria_label="First different step")
    assert "TaskSucceeded" in page.text("section", aria_label="First different event")
    assert '- "b": 1' in page.text("section", aria_label="Output")
    page = get(api, "compare?one=x&other=z")
    assert "TaskFailed" in page.text("section", aria_label="First different step")
    assert "y" in page.text("main") if [*page.all("main")] else True
    assert [*get(api, "compare?one=x").all("a", href="/ui/compare?one=x&other=y")]


def test_forms_of_a_session_need_its_token(store: asl.Store) -> None:
    users = Users({"ann": User(hash_of("secret"), frozenset({"operator", "approver"}))})
    api = client(store, users=users, local=False)
    paused(store, ASK, {"amount": 1}, "x")
    logged = api.post(
        "/login", data={"token": "secret", "user": "ann"}, headers=ORIGIN, follow_redirects=False
    )
    assert logged.status_code == 303, logged.text
    stop = "/ui/executions/x/stop"
    for form in ({"reason": "x"}, {"reason": "x", "csrf": "forged"}):
        assert api.post(stop, data=form, headers=ORIGIN).status_code == 403
    assert store.get("x").status == "PAUSED"
    assert post(api, "executions/x/stop", {"reason": "x"}).status_code == 303
    assert store.get("x").status == "ABORTED"
