"""People decide on the command line."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import asl as front_door
from asl.cli.main import cli
from asl.effects.clock import VirtualClock
from asl.executions import Store
from asl.stores.workers import Workers
from tests.sql import execute

ASK = {
    "StartAt": "Ask",
    "States": {
        "Ask": {
            "Type": "Approval",
            "Prompt": "Publish {{ $.title }}?",
            "Options": ["publish", "drop"],
            "Editable": {"Fields": ["$.title"], "ResultPath": "$.edited"},
            "ResultPath": "$.review",
            "End": True,
        }
    },
}
TWO = {"StartAt": "M", "States": {"M": {"Type": "Map", "ItemsPath": "$.l", "ItemProcessor": {
    "StartAt": "A", "States": {"A": {"Type": "Approval", "Prompt": "{{ $ }}?", "End": True}}},
    "End": True}}}  # fmt: skip


@pytest.fixture
def asl(tmp_path: Path) -> Any:
    """Call `asl` with a store of its own."""

    def call(*words: str, code: int = 0) -> Any:
        done = CliRunner().invoke(cli, words, env={"ASL_STORE": str(tmp_path / "runs.db")})
        assert done.exit_code == code, done.output
        return done

    call.document = tmp_path / "ask.asl.json"  # type: ignore[attr-defined]
    call.store = str(tmp_path / "runs.db")  # type: ignore[attr-defined]
    return call


def paused(asl: Any, document: Any, data: Any) -> Any:
    asl.document.write_text(json.dumps(document))
    words = ("run", str(asl.document), "--store", asl.store, "--name", "it", "-i", json.dumps(data))
    return asl(*words, code=4)


@pytest.mark.parametrize("more", [(), ("--json",), ("--events",), ("--history", "-"), ("--trace",)])
def test_repeated_run_of_a_paused_execution_prints_its_requests(
    more: tuple[str, ...], asl: Any
) -> None:
    """The same name and input find the paused execution in the store."""
    paused(asl, ASK, {"title": "News"})
    words = ("run", str(asl.document), "--store", asl.store, "--name", "it", *more)
    again = asl(*words, "-i", '{"title": "News"}', code=4)
    assert "asks: Publish News? (publish | drop)" in again.stderr
    assert "asl approve it" in again.stderr


def test_approve_with_an_edit_then_resume(asl: Any) -> None:
    """A run pauses, the inbox lists the request, an edit approves it."""
    assert "asl approve it" in paused(asl, ASK, {"title": "News"}).stderr
    assert "Publish News?" in asl("inbox").stdout
    words = ("approve", "it", "--as", "ann", "--comment", "good", "--edit", "title=Old")
    record = json.loads(asl(*words).stdout)
    assert (record["approval"], record["approver"]) == ("publish", "ann")
    output = json.loads(asl("resume", "it").stdout)
    assert output["edited"] == {"title": "Old"}
    assert output["review"]["comment"] == "good"
    assert "task token is open" in asl("inbox").stderr


def test_as_option_records_the_system_user(asl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the record, the result and the history; without --as it is the approver."""
    monkeypatch.setattr("getpass.getuser", lambda: "kim")
    paused(asl, ASK, {"title": "News"})
    record = json.loads(asl("approve", "it", "--as", "ann").stdout)
    assert (record["approver"], record["system_user"]) == ("ann", "kim")
    assert json.loads(asl("approve", "it", "--as", "ann").stdout) == record
    output = json.loads(asl("resume", "it").stdout)
    assert (output["review"]["approver"], output["review"]["system_user"]) == ("ann", "kim")
    decided = [
        json.loads(line)["details"]
        for line in asl("show", "it", "--events").stdout.splitlines()
        if "ApprovalDecided" in line
    ]
    assert [each["system_user"] for each in decided] == ["kim"]


def test_system_user_is_recorded_for_each_approval(
    asl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "kim")
    ask = {**ASK["States"]["Ask"], "Policy": {"RequiredApprovals": 2}}
    paused(asl, {**ASK, "States": {"Ask": ask}}, {"title": "News"})
    asl("approve", "it", "--as", "ann", code=4)
    record = json.loads(asl("approve", "it").stdout)
    assert [each.get("system_user") for each in record["approvals"]] == ["kim", None]
    assert (record["approver"], "system_user" in record) == ("kim", False)
    assert "has an option of its own" in refused(asl, "--set", "system_user=eve")


def test_digest_refuses_an_answer_to_a_changed_request(asl: Any) -> None:
    """It may be the printed digits, more of them, or the digest of --json."""
    paused(asl, ASK, {"title": "News"})
    shown = asl("inbox").stdout.splitlines()[-1].removeprefix("  digest ")
    whole = json.loads(asl("inbox", "--json").stdout)["digest"]
    assert whole.startswith(shown)
    assert len(shown) == 12
    assert f"digest {shown}" in asl("show", "it").stdout
    other = "0" * 12 if shown != "0" * 12 else "1" * 12
    assert "has changed since it was shown" in refused(asl, "--digest", other)
    end = "0" if whole[-1] != "0" else "1"
    assert "has changed since it was shown" in refused(asl, "--digest", whole[:-1] + end)
    assert "is not 12 hexadecimal digits or more" in refused(asl, "--digest", "not a digest")
    assert json.loads(asl("approve", "it", "--digest", shown.upper()).stdout)["approval"]


def test_approve_accepts_the_digest_of_inbox_json(asl: Any) -> None:
    """The digest of what --json prints is the one that it names."""
    paused(asl, ASK, {"title": "News"})
    request = json.loads(asl("inbox", "--json").stdout)
    assert front_door.request_digest(request) == request["digest"]
    asl("approve", "it", "--digest", request["digest"])


def test_invalid_answer_exits_with_2(asl: Any) -> None:
    """The execution stays paused."""
    paused(asl, ASK, {"title": "News"})
    assert "'publish', 'drop'" in asl("approve", "it", "--option", "maybe", code=2).stderr
    assert "is an option: --option drop" in asl("approve", "it", "drop", code=2).stderr
    asl("resume", "it", code=4)


def test_several_open_requests_need_request_option(asl: Any) -> None:
    """The message lists them."""
    paused(asl, TWO, {"l": [1, 2]})
    listed = asl("approve", "it", code=2).stderr
    ids = [json.loads(line)["requestId"] for line in asl("inbox", "--json").stdout.splitlines()]
    assert len(ids) == 2
    assert all(each in listed for each in ids)
    for each in ids:
        asl("approve", "it", "--request", each, "--option", "reject")
    assert [each["approval"] for each in json.loads(asl("resume", "it").stdout)] == ["reject"] * 2


def test_inbox_takes_an_execution(asl: Any) -> None:
    """An unknown name is an error."""
    paused(asl, TWO, {"l": ["a", "b"]})
    words = (
        "run",
        str(asl.document),
        "--store",
        asl.store,
        "--name",
        "other",
        "-i",
        '{"l": ["c"]}',
    )
    asl(*words, code=4)
    assert asl("inbox", "other").stdout.startswith("other  c?")
    assert "c?" not in asl("inbox", "it").stdout
    assert "there is no execution 'nobody'" in asl("inbox", "nobody", code=2).output


def test_output_lists_at_most_ten_requests(asl: Any) -> None:
    """The inbox lists all."""
    said = paused(asl, TWO, {"l": list(range(30))}).stderr
    assert said.count("asl: asks:") == 10
    assert f"asl: and 20 more: 'asl inbox --store {asl.store}' lists all" in said
    assert "waits for 20 more: 'asl inbox' lists all" in asl("show", "it").stdout
    assert len(asl("inbox", "--json").stdout.splitlines()) == 30


def test_paused_run_without_a_store_names_store_option(asl: Any) -> None:
    """Such an execution cannot be answered."""
    asl.document.write_text(json.dumps(ASK))
    done = asl("run", str(asl.document), "-i", '{"title": "x"}', code=4)
    assert "--store FILE" in done.stderr


BATCH = {"StartAt": "B", "States": {"B": {"Type": "Approval", "Prompt": "Pay?", "ItemsPath": "$.l",
    "BatchMode": {"MinApproved": 0.5}, "ResultPath": "$", "End": True}}}  # fmt: skip


def test_approved_and_rejected_take_item_numbers(asl: Any) -> None:
    """The inbox prints the numbers."""
    paused(asl, BATCH, {"l": ["rent", "yacht", {"n": 1}]})
    listed = asl("inbox").stdout
    assert '    0  "rent"' in listed
    assert '    2  {"n":1}' in listed
    assert "none on 1, 2" in refused(asl, "--approved", "0")
    assert "0,2,3" in refused(asl, "--approved", "a")
    assert "--option" in refused(asl, "--approved", "0", "--option", "approve")
    words = ("approve", "it", "--approved", "0,2", "--rejected", "1")
    record = json.loads(asl(*words).stdout)
    assert record["approved"] == ["rent", {"n": 1}]
    assert record["rejected"] == ["yacht"]
    assert record["approval"] == "approve"


def refused(asl: Any, *words: str) -> str:
    text: str = asl("approve", "it", *words, code=2).stderr
    return text


def test_option_decides_all_items_of_a_batch(asl: Any) -> None:
    """All items may be rejected too."""
    paused(asl, BATCH, {"l": [1, 2]})
    record = json.loads(asl("approve", "it", "--rejected", "0,1", "--approved", "").stdout)
    assert (record["approval"], record["rejected"]) == ("reject", [1, 2])


def test_set_adds_fields_to_the_record(asl: Any) -> None:
    """A field with an option of its own is refused."""
    paused(asl, ASK, {"title": "News"})
    assert "option of its own" in refused(asl, "--set", "comment=x")
    for key in ("approver", "decision", "edited_content"):
        assert "option of its own" in refused(asl, "--as", "ann", "--set", f"{key}=eve")
    assert "'amount' is given twice" in refused(asl, "--set", "amount=1", "--set", "amount=2")
    record = json.loads(asl("approve", "it", "--set", "amount=20", "--set", "when=noon").stdout)
    assert (record["amount"], record["when"]) == (20, "noon")


def test_repeated_answer_is_accepted_once(asl: Any) -> None:
    """With the request id, the end of it, or without; a different answer is refused."""
    paused(asl, ASK, {"title": "News"})
    (line,) = asl("inbox", "--json").stdout.splitlines()
    words = ("approve", "it", "--as", "ann")
    first = asl(*words).stdout
    for id in ("/Ask@0.0", json.loads(line)["requestId"]):
        assert asl(*words, "--request", id).stdout == first
    assert asl(*words).stdout == first
    refusal = asl(*words, "--option", "drop", code=2).stderr
    assert "answered already: 'publish' by 'ann'" in refusal
    asl("resume", "it")
    assert "has no open request" in refused(asl)


def test_show_lists_answered_requests_until_resumed(asl: Any) -> None:
    """Until somebody goes on with it."""
    paused(asl, ASK, {"title": "News"})
    assert "waits for Publish News?" in asl("show", "it").stdout
    asl("approve", "it")
    assert "decided   Publish News?: 'asl resume it' continues it" in asl("show", "it").stdout
    asl("resume", "it")
    assert "decided" not in asl("show", "it").stdout


def test_request_option_takes_the_end_of_an_id(asl: Any) -> None:
    """The end must be unique."""
    paused(asl, TWO, {"l": [1, 2]})
    refusal = refused(asl, "--request", "/A@0.0")
    assert "several requests of it end in '/A@0.0'" in refusal
    assert "[0]/A@0.0  1?" in refusal, "those that there are are listed"
    asl("approve", "it", "--request", "[1]/A@0.0")
    assert "2?" not in asl("inbox").stdout


def test_inbox_prints_the_policy_of_a_request(asl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--requestor` names the user who is excluded."""
    monkeypatch.setattr("getpass.getuser", lambda: "kim")
    policy = {"Approvers": {"Users": ["ann", "cy"], "Roles": ["lead"]}, "RequiredApprovals": 2,
              "ExcludeRequestor": True, "RequireReason": True}  # fmt: skip
    ask = {**ASK["States"]["Ask"], "Policy": policy}
    asl.document.write_text(json.dumps({**ASK, "States": {"Ask": ask}}))
    words = ("run", str(asl.document), "--store", asl.store, "--name", "it", "-i", '{"title": "x"}')
    assert "excludes no user: name the" not in asl(*words, "--requestor", "ann", code=4).stderr
    assert "'ann' asked for the decision" in refused(asl, "--as", "ann", "--comment", "x")
    asl("approve", "it", "--as", "cy", "--comment", "x", code=4)
    assert asl("inbox").stdout.splitlines()[1:3] == [
        '  editable: title = "x"',
        "  by ann or cy or the role lead; not by ann, the requestor; 1 of 2 approvals: cy (by "
        "kim); a reason is required (--comment)",
    ]


def test_unknown_request_has_a_suggestion(asl: Any) -> None:
    """A near one is named."""
    paused(asl, ASK, {"title": "News"})
    (line,) = asl("inbox", "--json").stdout.splitlines()
    request = json.loads(line)["requestId"]
    assert f"did you mean '{request}'" in refused(asl, "--request", request + "x")


def test_required_approvals_keep_an_execution_paused(asl: Any) -> None:
    """Until there are enough of them the execution waits."""
    ask = {**ASK["States"]["Ask"], "Policy": {"RequiredApprovals": 2,
           "Approvers": {"Users": ["ann"], "Roles": ["lead"]}, "RequireReason": True}}  # fmt: skip
    paused(asl, {**ASK, "States": {"Ask": ask}}, {"title": "News"})
    assert "reason" in refused(asl, "--as", "ann")
    assert "may not decide" in refused(asl, "--as", "bo", "--comment", "x")
    first = asl("approve", "it", "--as", "ann", "--comment", "x", code=4)
    assert "it waits: it has 1 of 2 approvals" in first.stderr
    words = ("approve", "it", "--as", "bo", "--role", "lead", "--comment", "y")
    assert len(json.loads(asl(*words).stdout)["approvals"]) == 2


def test_expired_request_is_due(asl: Any) -> None:
    """The inbox prints the command, and an answer is too late."""
    ask = {**ASK["States"]["Ask"], "Timeout": "1h", "Default": "No"}
    del ask["End"]
    document = {"StartAt": "Ask", "States": {"Ask": ask, "No": {"Type": "Succeed"}}}
    with Store(asl.store, clock=VirtualClock()) as store:  # long ago
        store.run(document, {"title": "x"}, name="it")
    assert "asl resume it" in asl("inbox").stdout
    late = refused(asl, "--as", "ann")
    assert "too late: 'asl resume it' continues" in late
    assert "due       'asl resume it' continues it" in asl("show", "it").stdout
    assert json.loads(asl("resume", "it").stdout)["review"]["timedOut"] is True


def test_notify_sends_to_every_channel(asl: Any, tmp_path: Path) -> None:
    """An unknown channel is refused before the run."""
    asl.document.write_text(json.dumps(ASK))
    words = ("run", str(asl.document), "--store", asl.store, "--name", "it", "-i", '{"title":"x"}')
    assert "unknown channel" in asl(*words, "--notify", "pigeon", code=2).stderr
    log = tmp_path / "told.jsonl"
    done = asl(*words, "--notify", "console", "--notify", f"jsonl:{log}", code=4)
    assert "A decision is needed\n  Publish x?" in done.stderr
    asl("resume", "it", "--notify", f"jsonl:{log}", code=4)
    (line,) = log.read_text().splitlines()
    assert json.loads(line)["kind"] == "request"


def test_exclude_requestor_without_a_requestor_is_a_warning(asl: Any) -> None:
    """A rule never looks enforced when it is not."""
    ask = {**ASK["States"]["Ask"], "Policy": {"ExcludeRequestor": True}}
    said = paused(asl, {**ASK, "States": {"Ask": ask}}, {"title": "x"}).stderr
    assert "'ExcludeRequestor' excludes no user: name the requestor with --requestor USER" in said


def test_failed_notification_is_printed(asl: Any, tmp_path: Path) -> None:
    """The execution is paused nevertheless."""
    asl.document.write_text(json.dumps(TWO))
    channel = f"jsonl:{tmp_path}/none/told.jsonl"
    words = ("run", str(asl.document), "--store", asl.store, "--name", "it", "--notify", channel)
    said = asl(*words, "-i", '{"l": [1, 2]}', code=4).stderr
    assert said.count("asl: a notification could not be sent: FileNotFoundError") == 1
    assert "it is paused" in said


def test_request_of_a_child_is_answered_by_either_name(asl: Any, tmp_path: Path) -> None:
    """It is answered and gone on with by the name of either."""
    child = tmp_path / "review.asl.json"
    child.write_text(json.dumps(ASK))
    parent = {"Type": "Workflow", "WorkflowId": "review", "End": True}
    asl.document.write_text(json.dumps({"StartAt": "W", "States": {"W": parent}}))
    words = ("run", str(asl.document), "--store", asl.store, "--name", "it", "-i", '{"title":"x"}')
    asl(*words, "--workflow", f"review={child}", code=4)
    refused = asl("resume", "it", code=2).stderr
    assert "missing now: workflows 'review'" in refused
    assert f"'asl resume it --workflow review={child}'" in refused
    again = ("--workflow", f"review={child}")
    assert "asl approve it" in asl("resume", "it", *again, code=4).stderr
    shown = asl("show", "it").stdout
    (line,) = [each for each in shown.splitlines() if each.startswith("runs ")]
    _, name, status, workflow = line.split()
    assert (status, workflow) == ("PAUSED", "review")
    assert name not in asl("ls").stdout
    (request,) = map(json.loads, asl("inbox", "--json").stdout.splitlines())
    assert f":{name}:/" in request["requestId"]
    asl("approve", "it", "--request", request["requestId"], "--as", "ann")
    assert json.loads(asl("resume", name, *again).stdout)["review"]["approver"] == "ann"
    assert "review" in asl("show", name).stdout


def test_resume_due_resumes_answered_and_expired_executions(asl: Any) -> None:
    """Executions with open requests stay paused."""
    ask = {**ASK["States"]["Ask"], "Timeout": "1h", "Default": "No"}
    del ask["End"]
    expiring = {"StartAt": "Ask", "States": {"Ask": ask, "No": {"Type": "Succeed"}}}
    with Store(asl.store, clock=VirtualClock()) as store:  # long ago
        store.run(expiring, {"title": "x"}, name="expired")
        store.run(ASK, {"title": "x"}, name="answered")
        store.run(ASK, {"title": "x"}, name="waiting")
    asl("approve", "answered")
    told = asl("resume", "--due").stdout.splitlines()
    assert sorted(told) == ["answered  SUCCEEDED", "expired  SUCCEEDED"]
    assert asl("resume", "--due").stdout == ""
    assert "--due" in asl("resume", code=2).stderr
    assert "--due" in asl("resume", "waiting", "--due", code=2).stderr


def test_resume_due_continues_after_a_failure(asl: Any) -> None:
    """The failure is printed and sets the exit code."""
    with Store(asl.store) as store:
        for name in ("a", "b", "c"):
            (request,) = store.run(ASK, {"title": name}, name=name).pending
            store.answer(request["requestId"], "drop")
        execute(store, "UPDATE execution SET input = CAST('=00000000{}' AS BLOB) WHERE name = 'b'")
    done = asl("resume", "--due", code=2)
    assert done.stdout.splitlines() == ["a  SUCCEEDED", "c  SUCCEEDED"]
    assert "asl: b: " in done.stderr
    assert "a stored value was changed" in done.stderr


@pytest.mark.parametrize("name", ["it", "a:b", "x/y:/z"])
def test_request_ids_of_distributed_maps_and_unusual_names(asl: Any, name: str) -> None:
    """A request belongs to its execution, whatever its id looks like."""
    config = {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"}
    processor = {**TWO["States"]["M"]["ItemProcessor"], "ProcessorConfig": config}
    document = {**TWO, "States": {"M": {**TWO["States"]["M"], "ItemProcessor": processor}}}
    asl.document.write_text(json.dumps(document))
    words = ("run", str(asl.document), "--store", asl.store, "--name", name)
    asl(*words, "-i", '{"l": [1, 2]}', code=4)
    assert asl("inbox").stdout.startswith(f"{name}  ")
    for line in asl("inbox", "--json").stdout.splitlines():
        asl("approve", name, "--request", json.loads(line)["requestId"])
    assert len(json.loads(asl("resume", name).stdout)) == 2


def test_printed_commands_repeat_store_option(
    asl: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They run unchanged."""
    monkeypatch.chdir(tmp_path)
    document = tmp_path / "ask.asl.json"
    document.write_text(json.dumps(ASK), encoding="utf-8")
    given = ("--input", '{"title": "T"}')
    told = asl("run", str(document), *given, "--store", "own.db", "--name", "r-1", code=4).stderr
    assert "'asl approve r-1 --store own.db' decides" in told
    told = asl("approve", "r-1", "--store", "own.db").stderr
    assert "'asl resume r-1 --store own.db' continues r-1" in told


def test_structured_prompt_is_printed_as_json(asl: Any, tmp_path: Path) -> None:
    """As JSON, wherever a request is named."""
    state = {"Type": "Approval", "Prompt": {"pay": 5}, "End": True}
    file, store = tmp_path / "pay.asl.json", str(tmp_path / "pay.db")
    file.write_text(json.dumps({"StartAt": "A", "States": {"A": state}}))
    done = asl("run", str(file), "--store", store, "--name", "pay", code=4)
    assert 'asks: {"pay":5} (approve | reject)' in done.stderr
    for command in (("inbox",), ("show", "pay")):
        assert '{"pay":5}' in asl(*command, "--store", store).stdout


def test_request_without_fixed_options_needs_option(asl: Any) -> None:
    """There is no default decision."""
    ask = {"Type": "Approval", "Prompt": "Why?", "Options": ["*"], "ResultPath": "$", "End": True}
    paused(asl, {"StartAt": "Ask", "States": {"Ask": ask}}, {})
    assert "no fixed options" in asl("approve", "it", code=2).stderr
    asl("approve", "it", "--option", "because")
    assert json.loads(asl("resume", "it").stdout)["approval"] == "because"


def test_approve_takes_a_request_id(asl: Any) -> None:
    """In the form that the inbox prints."""
    paused(asl, ASK, {"title": "News"})
    id = json.loads(asl("inbox", "--json").stdout.splitlines()[0])["requestId"]
    assert json.loads(asl("approve", id, "--option", "drop").stdout)["approval"] == "drop"


def test_worker_continues_an_answered_execution(asl: Any) -> None:
    """Where one is at work on the store, nobody has to resume it."""
    paused(asl, ASK, {"title": "News"})
    with Store(asl.store) as store:
        Workers(store.session).register("one", {}, 0)
        assert "the request is answered; a worker continues" in asl("approve", "it").stderr
