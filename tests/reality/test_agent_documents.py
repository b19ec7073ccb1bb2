"""Published agent workflows: those this version executes run, each of the others says why not.

The documents lie beside the repository; without them these tests are skipped. The table below must
name every document of the folder.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import asl
from asl.conformance.case import Case
from asl.conformance.drafts import draft_cases
from asl.conformance.local import LocalImplementation
from asl.conformance.runner import run_case
from asl.engine.memory import ProcessMemory

DOCUMENTS = Path(__file__).resolve().parents[3] / "shared" / "corpus" / "agent-asl"

pytestmark = pytest.mark.skipif(not DOCUMENTS.exists(), reason="the documents are not here")


@dataclass(frozen=True, slots=True)
class Run:
    """One execution of a document: what goes in, who answers, and what comes out.

    `agents` maps a name to what it returns, or to an `asl.StateError` that it raises; `output` is a
    part of the output, or the error and cause of a failed execution.
    """

    input: Any
    agents: Mapping[str, Any]
    route: str
    output: Any
    profile: str = "default"
    prices: Mapping[str, Decimal] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """What a template is given that runs by itself."""
    templates: Mapping[str, Any] = field(default_factory=dict)
    """What lies in the folder `templates`: a document, or the name of another published one."""
    people: Mapping[str, Any] = field(default_factory=dict)
    """What people answer, by the name of the Approval."""
    did: str = ""
    """Every event of its blocks and of people in order, each as type:state."""
    workflows: Mapping[str, Any] = field(default_factory=dict)
    """What it starts by name."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The rules by which a document is refused, its agent blocks aside."""

    codes: frozenset[str]


def refused(*codes: str) -> Refused:
    return Refused(frozenset(codes))


DANGLING = refused("V-ST-03")

ANALYSIS = {"response": "because", "trace": [], "strategy": "react", "_tokens": 30, "_cost": 0.25}
ANSWER = {**ANALYSIS, "iterations": 2, "success": True, "response": "42", "strategy": "reflection"}
SAID = [{"response": "It scales."}, {"response": "It costs."}, {"response": "Both."}]
VERDICT = {"decision": "yes", "recommendation": "go", "conditions": ["tests"], "consensus": True}
OPUS = {"claude-opus-4-5": Decimal("0.5")}


def risk(score: int, verified: bool, state: str, decision: dict[str, str]) -> Run:
    """A run of the content review with a risk score, and the decision that comes of it."""
    handler = {"HighRiskReview": "HighRiskHandler", "MediumRiskReview": "MediumRiskHandler"}
    agents: dict[str, Any] = {"ContentAnalyzer": {"riskScore": score}}
    if state in handler:
        agents[handler[state]] = decision
    return Run(
        {"content": "…", "contentType": "post", "contentId": "c1", "userVerified": verified},
        agents,
        f"AnalyzeContent RouteByRisk {state} FinalizeDecision",
        {"contentId": "c1", "analysisScore": score, **decision},
    )


def cost(
    agents: Mapping[str, Any], route: str, output: Any, profile: str = "lenient", did: str = ""
) -> Run:
    """A run of the cost tutorial, whose last state reads what a Pass has dropped."""
    return Run({"document": "long"}, agents, route, output, profile, did=did)


def notifying(channel: str, state: str, message: dict[str, Any]) -> Run:
    """A run of the notification template; the channel decides by being compared itself."""
    agent = state.removeprefix("Send") + "Agent"
    return Run(
        {},
        {"TemplateAgent": message, agent: {"echo": True}},
        f"PrepareMessage RouteChannel {state} NotificationSent",
        {"sent": True, "channel": channel, "recipient": "ann"},
        parameters={"channel": channel, "recipient": "ann"},
    )


def reviewed(answer: Any, route: str, output: Any) -> Run:
    """A run of the application of the three templates; a person is asked if there is an answer."""
    asked = answer is not None
    return Run(
        {"document": {"id": "d"}, "submittedBy": "ann", "requireApproval": asked},
        {
            "ValidationAgent": {"validatedData": {}},
            "PDFExtractor": {"timestamp": "then"},
            "ContentTransformer": {"data": [1], "timestamp": "now"},
            "TemplateAgent": {"subject": "s", "body": "b", "blocks": []},
            "EmailAgent": {},
            "SlackAgent": {},
        },
        "ValidateInput CheckValidation ProcessDocument RequireApproval "
        + ("WaitForApproval HandleApproval " if asked else "")
        + route,
        output,
        "lenient",
        templates={
            "validation": "tutorial-12-building-skills.b01",
            "notification": "tutorial-12-building-skills.b02",
            "document-processing": "tutorial-12-building-skills.b03",
        },
        people={"WaitForApproval": answer},
        did=asks("WaitForApproval") if asked else "",
    )


def complaint(found: bool, route: str, output: Any, did: str) -> Run:
    """A run of the support desk where the checker of the tone finds its fault, or none."""
    return Run(
        {"customerId": "c", "message": "m"},
        {
            "ContextLoader": {"customerId": "c", "message": "m"},
            "IntentClassifier": {"category": "complaint"},
            "ComplaintAgent": {"message": "sorry", "severity": "low"},
            "empathetic_tone": found,
            "InteractionLogger": {"id": 1},
        },
        f"LoadCustomerContext ClassifyIntent RouteByIntent {route}",
        output,
        "lenient",
        did=f"MemoryRead:LoadCustomerContext {did}",
    )


def strategy(kind: str, agents: Mapping[str, Any], route: str, output: Any) -> Run:
    """A run of the strategy tutorial after a problem has been classified as *kind*."""
    classified = {**ANALYSIS, "iterations": 1, "parsed": {"type": kind}}
    return Run(
        {"problem": "6 x 7"},
        {"ProblemClassifier": classified, **agents},
        f"ClassifyProblem ChooseStrategy {route} FormatResult",
        {"problem": "6 x 7", "classification": {"type": kind}, **output},
        "lenient",
    )


def decided(
    input: Any,
    agents: Mapping[str, Any],
    people: Mapping[str, Any],
    route: str,
    output: Any,
    did: str,
) -> Run:
    """A run in which people decide; paths that lead nowhere are null."""
    return Run(input, agents, route, output, "lenient", people=people, did=did)


def asks(*states: str) -> str:
    """Return what is told where people are asked at once and answer."""
    return " ".join(f"ApprovalRequested:{state} ApprovalDecided:{state}" for state in states)


CONTENT = {
    "ContentGenerator": {"title": "T", "content": "C", "reasoning": {"steps": []}},
    "ContentModerator": {"flagged": True, "blocked": False, "flags": ["f"]},
    "harmful_content": False,
    "Publisher": {"published": True},
    "SEOOptimizer": {"seo": 1},
    "MetadataGenerator": {"tags": []},
    "ImageGenerator": {"images": []},
    "ContentAssembler": {"preview": "p", "metadata": {}},
    "Scheduler": {"at": "noon"},
    "Notifier": {"sent": True},
}
PROCESSING = {
    "Validator": {"valid": True},
    "Processor": {"rows": 3},
    "AlternativeProcessor": {"rows": 2},
    "Saver": {"saved": True},
    "ErrorHandler": {"handled": True},
    "Notifier": {"sent": True},
}
EXHAUSTED = {
    "error": "ProcessingFailed",
    "cause": "Workflow failed after exhausting all recovery options",
}
MEMORY = {
    "AssistantAgent": {"message": "Hi", "newInteraction": {"q": "?"}},
    "HistoryUpdaterAgent": {
        "historyCount": 4,
        "userProfile": {"name": "u"},
        "preferences": {},
        "updatedHistory": [1],
    },
}
REMEMBERED = "MemoryRead:LoadUserContext ContextBuilt:ProcessRequest MemoryWritten:SaveToMemory"
COSTS = {
    "CacheChecker": {"hit": False},
    "DocumentAnalyzerAgent": {"analysis": "deep", "model": "m", "_tokens": 900, "_cost": 1.5},
    "CostAwareSummarizerAgent": {"summary": "short", "_tokens": 100, "_cost": 0.5},
    "CacheSaver": {"stored": True},
}
REPORT = {
    "Researcher": {"response": "found", "toolsUsed": ["web_search"], "_tokens": 1, "_cost": 0.5},
    "Analyst": {"response": "seen", "toolsUsed": [], "_tokens": 2, "_cost": 0.25},
    "FileReader": {"response": "read", "toolsUsed": ["read_file"]},
    "ReportWriter": {"response": "written", "_tokens": 4, "_cost": 0.25},
}
PASS = {"Type": "Pass", "End": True}
CHILD = {"Type": "Task", "Agent": "Child", "End": True}
ETL = {
    name: {"StartAt": name, "States": {name: {**PASS, "Result": [name]}}}
    for name in ("extract", "transform", "load")
}
PIPELINE = {
    "validation": "spec-10-composition.b03",
    "extraction": {
        "Parameters": {"extractImages": {"Type": "boolean"}, "extractTables": {"Type": "boolean"}},
        "StartAt": "Extract",
        "States": {"Extract": {**PASS, "Parameters": {"text": "fine"}}},
    },
    "analysis": "spec-10-composition.b15",
    "notification": {
        "Parameters": {"channel": {"Type": "string"}, "recipients": {"Type": "array"}},
        "StartAt": "Send",
        "States": {
            "Send": {
                **PASS,
                "Parameters": {
                    "sent": "{{recipients}}",
                    "by": "{{channel}}",
                    "analyses.$": "$.analyses",
                },
            }
        },
    },
}
BREAKDOWN = "AskClarifyingQuestions InitialBreakdown ProcessTasks"

TABLE: dict[str, Refused | list[Run]] = {
    "doc-getting-started.b01": [
        Run(
            {"inputText": "fine"},
            {"SentimentAnalyzer": {"mood": "good"}},
            "AnalyzeSentiment FormatResponse",
            {"analysis": {"mood": "good"}, "originalText": "fine"},
        )
    ],
    "doc-getting-started.b03": [
        Run({}, {"Agent1": 1, "Agent2": [2], "Agent3": {"x": 3}}, "Step1 Step2 Step3", {"x": 3}),
        Run(
            {},
            {"Agent1": 1, "Agent2": asl.StateError("Agent.Broken", "it broke"), "Agent3": 3},
            "Step1 Step2",
            {"error": "Agent.Broken", "cause": "it broke"},
        ),
    ],
    "example-code-review": [decided(
        {"prNumber": 1},
        {
            "CodeLoader": {"files": []},
            "SecurityReviewer": {"issues": 1},
            "PerformanceReviewer": {},
            "StyleReviewer": {},
            "TestReviewer": {},
            "ReviewAggregator": {"severity": "critical", "summary": "bad", "criticalIssues": []},
            "ReviewFinalizer": {"done": True},
        },
        {"RequireSeniorReview": {"approval": "request_changes", "changes": ["c"]}},
        "LoadCode ParallelReview AggregateReviews DetermineApprovalPath RequireSeniorReview "
        "RequestChanges FinalizeReview",
        {"done": True},
        asks("RequireSeniorReview"),
    )],
    "example-content-pipeline": [decided(
        {"topic": "t"},
        CONTENT,
        {
            "HumanReview": {"approval": "edit", "edited_content": {"content": "D"}},
            "FinalApproval": {"approval": "schedule", "scheduledTime": "noon"},
        },
        "ParseRequest GenerateContent ModerateContent CheckModerationResult HumanReview "
        "UseEditedContent OptimizeContent AssembleContent FinalApproval SchedulePublish "
        "NotifySuccess",
        {"sent": True},
        asks("HumanReview", "FinalApproval"),
    ),
        Run(
            {"topic": "t"},
            {**CONTENT, "ContentModerator": {"flagged": False, "note": "ask the competitor_names"}},
            "ParseRequest GenerateContent ModerateContent CheckModerationResult OptimizeContent "
            "AssembleContent FinalApproval SchedulePublish NotifySuccess",
            {"sent": True},
            "lenient",
            people={"FinalApproval": {"approval": "schedule", "scheduledTime": "noon"}},
            did=f"GuardrailWarning:ModerateContent {asks('FinalApproval')}",
        ),
        Run(
            {"topic": "t"},
            {**CONTENT, "harmful_content": True},
            "ParseRequest GenerateContent ModerateContent",
            {"error": "Agent.GuardrailViolation"},
            "lenient",
            did="GuardrailViolation:ModerateContent",
        ),
    ],
    "example-customer-support": [decided(
        {"customerId": "c", "message": "m"},
        {
            "ContextLoader": {"customerId": "c", "message": "m"},
            "IntentClassifier": {"category": "refund"},
            "RefundAgent": {"autoApprove": False, "amount": 200, "reason": "broken"},
            "RefundProcessor": {"message": "ok"},
            "InteractionLogger": {"id": 1},
        },
        {"RefundApproval": {"approval": "partial", "partialAmount": 20}},
        "LoadCustomerContext ClassifyIntent RouteByIntent RefundRequest CheckRefundApproval "
        "RefundApproval ProcessRefundDecision ProcessPartialRefund SaveInteraction FormatResponse",
        {"message": "ok"},
        f"MemoryRead:LoadCustomerContext {asks('RefundApproval')} MemoryWritten:SaveInteraction",
    ),
        complaint(
            False,
            "ComplaintHandling CheckSeverity SaveInteraction FormatResponse",
            {"message": "sorry"},
            "MemoryWritten:SaveInteraction",
        ),
        complaint(
            True,
            "ComplaintHandling",
            {"error": "Agent.GuardrailViolation"},
            "GuardrailViolation:ComplaintHandling",
        ),
    ],
    "example-research-assistant": [decided(
        {"query": "q"},
        {
            "QueryParser": {"type": "factual"},
            "FactChecker": {"summary": "s"},
            "Verifier": {
                "confidence": 0.5,
                "concerns": ["c"],
                "reasoning": {"steps": [{"step": 1}], "conclusion": "c"},
            },
            "Synthesizer": {"text": "a"},
        },
        {"HumanReview": "accept"},
        "ParseQuery DetermineStrategy QuickFactCheck VerifyFindings CheckConfidence HumanReview "
        "SynthesizeAnswer FormatResponse",
        {"question": "q", "confidence": 0.5},
        asks("HumanReview"),
    )],
    "example-task-breakdown": [decided(
        {"goal": "g"},
        {
            "ClarifierAgent": {"hasQuestions": True, "questions": ["q"]},
            "BreakdownAgent": [{"id": 1}],
            "ValidatorAgent": {"isAtomic": True},
            "ResultCollector": {"hasPendingTasks": False},
            "FinalizerAgent": {"plan": 1},
        },
        {"WaitForAnswers": "submit"},
        "GetProjectGoal AskClarifyingQuestions CheckIfNeedsClarification WaitForAnswers "
        "InitialBreakdown ProcessTaskBatch CollectResults CheckForMoreWork FinalizeBreakdown "
        "FormatOutput",
        {},
        asks("WaitForAnswers"),
    )],
    "guide-best-practices.b05": [
        Run(
            {"email": "a@b.c"},
            {"EmailValidator": {"valid": True}, "DuplicateChecker": {"duplicate": False}},
            "ValidateEmail CheckDuplicates",
            {"duplicate": False},
        )
    ],
    "guide-migrating-from-hardcoded.b01": [
        Run(
            {"goal": "move"},
            {
                "ClarifierAgent": "where to?",
                "BreakdownAgent": [{"task": "pack"}, {"task": "drive"}],
                "ValidatorAgent": {"isAtomic": True},
            },
            BREAKDOWN,
            [
                {"task": "pack", "validation": {"isAtomic": True}},
                {"task": "drive", "validation": {"isAtomic": True}},
            ],
        ),
        Run(
            {"goal": "move"},
            {
                "ClarifierAgent": "where to?",
                "BreakdownAgent": [{"task": "pack"}],
                "ValidatorAgent": {"isAtomic": False},
            },
            BREAKDOWN,
            [[{"task": "pack"}]],
        ),
    ],
    "readme.b01": [Run({"userName": "Ada"}, {"GreeterAgent": "Hello"}, "Greet", "Hello")],
    "spec-01-introduction.b01": DANGLING,
    "spec-01-introduction.b05": [
        Run(
            {"request": "do"},
            {"Parser": {"verb": "do"}, "Validator": {"ok": True}, "Executor": {"done": 1}},
            "ParseRequest Validate Execute",
            {"done": 1},
        )
    ],
    "spec-01-introduction.b07": [
        Run(
            {"q": "why"},
            {"WebSearcher": ["page"], "Synthesizer": "because"},
            "Search Synthesize",
            "because",
        )
    ],
    "spec-01-introduction.b08": DANGLING,
    "spec-06-human-in-the-loop.b19": [decided(
        {"topic": "t"},
        CONTENT,
        {"HumanReview": {"approval": "edit", "edited_content": {"content": "D"}}},
        "GenerateContent ModerateContent CheckModeration HumanReview PublishEdited",
        {"published": True},
        asks("HumanReview"),
    ), decided(
        {"topic": "t"},
        CONTENT,
        {"HumanReview": "approve"},
        "GenerateContent ModerateContent CheckModeration HumanReview Publish",
        {"published": True},
        f"{asks('HumanReview')} FeedbackRequested:Publish",
    )],
    "spec-07-cost-budget.b17": [
        Run(
            {"query": "why is the sky blue?"},  # 20 bytes are 5 tokens
            {"QuickResearcher": ["air"], "DeepResearcher": [], "Synthesizer": "scattering"},
            "CheckInput RouteByComplexity StandardResearch Synthesize",
            "scattering",
            prices=OPUS,
        ),
        Run(
            {"query": "why " * 20},
            {"QuickResearcher": [], "DeepResearcher": ["air"], "Synthesizer": "scattering"},
            # The key of the cache reads what a Pass has dropped.
            "CheckInput RouteByComplexity ExpensiveResearch",
            {"error": "States.ParameterPathFailure"},
            prices=OPUS,
        ),
        Run(
            {"query": "why " * 20},
            {"DeepResearcher": {"_cost": 7.75}, "Synthesizer": "scattering"},
            "CheckInput RouteByComplexity ExpensiveResearch Synthesize",
            "scattering",
            "lenient",
            prices=OPUS,
            did="BudgetAlert:ExpensiveResearch",
        ),
    ],
    "spec-08-error-handling.b17": [
        Run(
            {},
            PROCESSING,
            "ValidateInput ProcessData SaveResults Success",
            {"saved": True},
        ),
        Run(
            {},
            {**PROCESSING, "Validator": asl.StateError("ValidationError", "no rows")},
            "ValidateInput InvalidInput",
            {"error": "InvalidInput", "cause": "no rows"},
        ),
        Run(
            {},
            {**PROCESSING, "Processor": asl.StateError("Agent.ModelError", "overloaded")},
            "ValidateInput ProcessData TryAlternativeModel SaveResults Success",
            {"saved": True},
        ),
        Run(
            {},
            {**PROCESSING, "Processor": asl.StateError("States.RateLimitExceeded")},
            "ValidateInput ProcessData HandleProcessingError NotifyError Failed",
            EXHAUSTED,
            "lenient",
        ),
        Run(
            {},
            {
                **PROCESSING,
                "Processor": asl.StateError("Agent.ModelError"),
                "AlternativeProcessor": asl.StateError("Agent.ModelError"),
            },
            "ValidateInput ProcessData TryAlternativeModel HandleProcessingError NotifyError "
            "Failed",
            EXHAUSTED,
            "lenient",
        ),
        Run(
            {},
            {**PROCESSING, "Processor": asl.StateError("Other")},
            "ValidateInput ProcessData HandleProcessingError",
            {"error": "States.ParameterPathFailure"},
        ),
    ],
    "spec-09-streaming-progress.b18": [
        Run(
            {"file": "a.pdf"},
            {
                "DocumentParser": "text",
                "SectionExtractor": {"sections": ["one", "two", "three", "four"]},
                "SectionAnalyzer": {"good": True},
                "Summarizer": "all good",
            },
            "ParseDocument ExtractSections AnalyzeSections GenerateSummary",
            "all good",
            did="EventEmitted:ParseDocument MilestoneReached:ParseDocument "
            "EventEmitted:ParseDocument EventEmitted:ParseDocument ProgressUpdated: "
            "ProgressUpdated: ProgressUpdated:AnalyzeSections "
            + "".join(
                f"ProgressUpdated:{item} ProgressUpdated:AnalyzeSections " for item in range(4)
            )
            + "ProgressUpdated: StreamChunk:GenerateSummary StreamWarning:GenerateSummary "
            "MilestoneReached:GenerateSummary EventEmitted:GenerateSummary ProgressUpdated:",
        )
    ],
    "spec-10-composition.b03": [
        Run(
            {"a": 1},
            {"Validator": {"echo": True}},
            "Validate",
            {"input": {"a": 1}, "schema": "order", "strict": True},
            parameters={"schema": "order"},
        ),
        Run(
            {"a": 1},
            {"Validator": asl.StateError("ValidationError", "no b")},
            "Validate ValidationFailed",
            {"error": "ValidationError", "cause": "Input failed validation"},
            parameters={"schema": "order", "strict": False},
        ),
    ],
    "spec-10-composition.b08": [
        Run({}, {}, "Extract Transform Load", ["load"], templates=ETL),
    ],
    "spec-10-composition.b09": [
        Run(
            {"x": 1},
            {"Child": {"sequence": [{"raise": {"Error": "E"}}, {"echo": True}]}},
            "ExecuteWithRetry",
            {"x": 1},
            parameters={"workflow": "child"},
            workflows={"child": {"StartAt": "C", "States": {"C": CHILD}}},
        )
    ],
    "spec-10-composition.b14": [
        Run(
            {"config": {"notifyEmails": ["a@b.c"]}, "text": "fine"},
            {"Validator": {"config": {"notifyEmails": ["a@b.c"]}}, "Analyzer": {"echo": True}},
            "ValidateInput ExtractContent AnalyzeInParallel Notify",
            {"sent": ["a@b.c"], "by": "email", "analyses": [
                {"content": "fine", "analysisType": "sentiment", "depth": "standard"},
                {"content": "fine", "analysisType": "entities", "depth": "standard"},
            ]},
            templates=PIPELINE,
        ),
        Run(
            {},
            {"Validator": asl.StateError("ValidationError")},
            "ValidateInput",
            {"error": "ValidationError", "cause": "Input failed validation"},
            templates=PIPELINE,
        ),
    ],
    "spec-10-composition.b15": [
        Run(
            {"extracted": {"text": "fine"}},
            {"Analyzer": {"echo": True}},
            "RunAnalysis",
            {"content": "fine", "analysisType": "topics", "depth": "standard"},
            parameters={"type": "topics"},
        ),
    ],
    "specification.b30": [decided(
        {"sourceCode": "x"},
        {"CodeAnalyzer": {"severity": "critical"}},
        {"RequireApproval": "approve"},
        "AnalyzeCode CheckSeverity RequireApproval Complete",
        {"approval": "approve"},
        asks("RequireApproval"),
    )],
    "tutorial-01-hello-world.b01": [
        Run({"userName": "Ada"}, {"GreeterAgent": {"hi": 1}}, "SayHello", {"hi": 1})
    ],
    "tutorial-01-hello-world.b02": [
        Run(
            {"userName": "Ada"},
            {"GreeterAgent": {"greeting": "Hello Ada", "timestamp": "now"}},
            "SayHello FormatOutput",
            {"message": "Hello Ada", "processedAt": "now"},
        )
    ],
    "tutorial-03-conditional-logic.b01": [
        risk(80, True, "HighRiskReview", {"decision": "no", "reason": "risky"}),
        risk(79, True, "MediumRiskReview", {"decision": "maybe", "reason": "hm"}),
        risk(50, False, "MediumRiskReview", {"decision": "maybe", "reason": "hm"}),
        risk(49, True, "AutoApprove", {"decision": "approved"}),
        risk(0, False, "ManualReview", {"decision": "pending", "reason": "Requires manual review"}),
    ],
    "tutorial-05-recursive-workflows.b01": [
        Run(
            {"tasks": ["a", "b", "c", "d", "e"]},
            {"TaskAnalyzer": {"size": 1}, "Summarizer": {"total": 5}},
            "ProcessTasks Summarize",
            {"total": 5},
        ),
        Run({"tasks": []}, {"Summarizer": "nothing"}, "ProcessTasks Summarize", "nothing"),
    ],
    "tutorial-06-memory-and-context.b01": [
        Run(
            {"userId": "u", "userMessage": "hello"},
            {**MEMORY, "ContextLoaderAgent": {"isNewUser": True, "history": []}},
            "LoadUserContext CheckNewUser WelcomeNewUser ProcessRequest UpdateHistory SaveToMemory",
            {"message": "Hi", "userId": "u", "isNewUser": True, "interactionCount": 4},
            did=REMEMBERED,
        ),
        Run(
            {"userId": "u", "userMessage": "hello"},
            {**MEMORY, "ContextLoaderAgent": {"isNewUser": False, "history": [1]}},
            "LoadUserContext CheckNewUser ProcessRequest UpdateHistory SaveToMemory",
            {"isNewUser": False, "interactionCount": 4},
            did=REMEMBERED,
        ),
    ],
    "tutorial-09-multi-agent-debate.b01": [
        Run(
            {"topic": "Architecture", "proposal": "split"},
            {
                "ProponentAgent": SAID[0],
                "OpponentAgent": SAID[1],
                "JudgeAgent": {
                    "table": [
                        {"when": {"$partial": {"round": 4, "history": 3 * SAID}},
                         "then": {"return": VERDICT}},
                        {"when": {"$partial": {"topic": "Architecture", "proposal": "split"}},
                         "then": {"return": SAID[2]}},
                    ]
                },
            },
            f"InitializeDebate {3 * 'DebateRound UpdateHistory CheckDebateComplete '}"
            "FinalDecision FormatResult",
            {"topic": "Architecture", "proposal": "split", "debateRounds": 3, **VERDICT},
            did=" ".join(9 * ["DebateTurn:DebateRound"]),
        )
    ],
    "tutorial-10-cost-management.b01": [
        cost(
            {"CacheChecker": {"hit": True, "data": {"x": 1}, "originalCost": 2.5}},
            "CheckCache CacheDecision UseCachedResult",
            {"analysis": {"x": 1}, "fromCache": True, "costSaved": 2.5},
            "default",
        ),
        cost(
            COSTS,
            "CheckCache CacheDecision DeepAnalysis CheckBudgetForSummary GenerateSummary "
            "CombineResults SaveToCache",
            {"stored": True},
        ),
        cost(
            {
                **COSTS,
                "CacheChecker": {"hit": False, "_cost": 2.75},
                "DocumentAnalyzerAgent": {"analysis": "deep", "model": "m", "_cost": 0.25},
            },
            "CheckCache CacheDecision DeepAnalysis CheckBudgetForSummary GenerateSummary "
            "CombineResults SaveToCache",
            {"stored": True},
            did="BudgetAlert:CheckCache FallbackApplied:DeepAnalysis "
            "FallbackApplied:GenerateSummary FallbackApplied:SaveToCache",
        ),
        cost(
            {**COSTS, "DocumentAnalyzerAgent": {"analysis": "deep", "model": "m", "_cost": 4.5}},
            "CheckCache CacheDecision DeepAnalysis",
            # The state may not spend more than $2.00, so nothing is left to be summarized.
            {"error": "States.BudgetExceeded"},
            "default",
            # Of the workflow's $5.00 more than 50 % and 80 % are gone.
            "BudgetAlert:DeepAnalysis BudgetAlert:DeepAnalysis BudgetExceeded:DeepAnalysis",
        ),
    ],
    "tutorial-12-building-skills.b01": [
        Run(
            {"a": 1},
            {"ValidationAgent": {"validatedData": {"a": 1}}},
            "Validate ValidationSuccess",
            {"valid": True, "data": {"a": 1}},
            parameters={"schema": "order"},
        ),
        Run(
            {"a": 1},
            {"ValidationAgent": asl.StateError("ValidationError", "no b")},
            "Validate ValidationFailed",
            # The template reads `errors` of an error output, which has `Error` and `Cause`.
            {"error": "States.ParameterPathFailure"},
            parameters={"schema": "order"},
        ),
    ],
    "tutorial-12-building-skills.b02": [
        notifying("email", "SendEmail", {"subject": "s", "body": "b"}),
        notifying("slack", "SendSlack", {"body": "b", "blocks": []}),
        notifying("sms", "SendSMS", {"body": "b"}),
        notifying("webhook", "SendWebhook", {}),
    ],
    "tutorial-12-building-skills.b03": [
        Run(
            {"document": "d", "extractOptions": {}},
            {
                "PDFExtractor": {"timestamp": "then"},
                "DefaultTransformer": {"data": [1], "timestamp": "now"},
            },
            "Extract Transform FormatOutput",
            {
                "result": [1],
                "format": "csv",
                "metadata": {"extractedAt": "then", "transformedAt": "now"},
            },
            parameters={"extractorAgent": "PDFExtractor", "outputFormat": "csv"},
        ),
    ],
    "tutorial-12-building-skills.b04": [
        reviewed(None, "NotifyComplete Success", {"success": True, "documentId": "d"}),
        # The document routes on a field that only an answer with it has.
        reviewed("approve", "NotifyRejected", {"channel": "email", "recipient": "ann"}),
        reviewed(
            {"approval": "approve", "decision": "approve"},
            "NotifyApproved Success",
            {"success": True},
        ),
        reviewed(
            {"approval": "revise", "decision": "revise"},
            "NotifyRevision",
            {"sent": True, "channel": "email", "recipient": "ann"},
        ),
    ],
    "tutorial-13-integrating-claude-php-agent.b01": [
        Run(
            {"title": "T", "content": "C"},
            {
                "DocumentAnalyzer": {
                    "success": True,
                    "parsed": {"mood": "good"},
                    "response": "r",
                    "_tokens": 7,
                    "_cost": 0.5,
                }
            },
            "AnalyzeDocument CheckSuccess FormatOutput",
            {"title": "T", "analysis": {"mood": "good"}, "tokensUsed": 7, "cost": 0.5},
        ),
        Run(
            {"title": "T", "content": "C"},
            {"DocumentAnalyzer": {"success": False, "error": "no model"}},
            "AnalyzeDocument CheckSuccess HandleError",
            {"error": "AnalysisFailed", "cause": "no model"},
        ),
    ],
    "tutorial-13-integrating-claude-php-agent.b02": [
        Run(
            {"file": "a"},
            {"Extractor": {"response": "facts"}, "Analyzer": {"echo": True}},
            "Extract Analyze",
            {"prompt": "Analyze this data: facts"},
        )
    ],
    "tutorial-14-tool-enabled-agent-workflows.b02": [
        Run(
            {"topic": "bees", "includeFiles": True, "filePaths": ["a.txt"]},
            REPORT,
            "GatherInformation AnalyzeData CheckForFiles ReadSupportingFiles GenerateReport "
            "FormatOutput",
            {
                "report": "written",
                "toolUsage": {"research": ["web_search"], "analysis": [], "files": ["read_file"]},
                "metrics": {"totalTokens": 7, "totalCost": 1},
            },
        ),
        Run(
            {"topic": "bees", "includeFiles": False},
            REPORT,
            "GatherInformation AnalyzeData CheckForFiles GenerateReport FormatOutput",
            {
                "topic": "bees",
                "toolUsage": {"research": ["web_search"], "analysis": [], "files": None},
            },
            "lenient",
        ),
    ],
    "tutorial-16-loop-strategies-in-workflows.b01": [
        strategy(
            "SIMPLE",
            {"ReflectiveAnswerer": ANSWER},
            "DirectAnswer",
            # MathAdd rounds, as AWS's does, so 0.25 and 0.25 add up to 0 (register C-20).
            {"answer": "42", "metrics": {"totalTokens": 60, "totalCost": 0, "iterations": 3}},
        ),
        strategy(
            "RESEARCH",
            {"ReflectiveAnswerer": ANSWER, "ReactResearcher": ANALYSIS},
            "ResearchWithReact RefineResearch",
            {"strategy": {"type": "RESEARCH", "loopsUsed": ["classification", "react",
                                                            "reflection"]}},
        ),
        strategy(
            "COMPLEX",
            {"ReflectiveAnswerer": {**ANSWER, "success": False}, "PlanExecutor": ANALYSIS},
            "PlanAndExecute ValidateSolution CheckValidation FallbackAnswer",
            {"answer": "42"},
        ),
    ],
}  # fmt: skip


def script(answer: Any) -> Any:
    """Turn what the table says of an agent into a script."""
    if isinstance(answer, asl.StateError):
        named = {"Error": answer.name, "Cause": answer.cause}
        return {"raise": {key: text for key, text in named.items() if text is not None}}
    scripted = answer == {"echo": True} or (
        isinstance(answer, dict) and not answer.keys().isdisjoint({"table", "sequence"})
    )
    return answer if scripted else {"return": answer}


def holds(part: Any, value: Any) -> bool:
    """Whether *value* is *part*, or an object with at least the members of *part*."""
    if isinstance(part, dict) and isinstance(value, dict):
        return all(key in value and holds(each, value[key]) for key, each in part.items())
    return bool(part == value)


def runs() -> Iterator[Any]:
    for name, entry in TABLE.items():
        if isinstance(entry, list):
            for number, run in enumerate(entry):
                yield pytest.param(name, run, id=f"{name}-{number}")


TOLD = {
    "ApprovalDecided", "ApprovalEscalated", "ApprovalRequested", "ApprovalTimedOut",
    "BudgetAlert", "BudgetExceeded", "CacheHit", "ContextBuilt", "DebateDecided", "DebateTurn",
    "EventEmitted", "FallbackApplied", "FeedbackRequested", "GuardrailViolation",
    "GuardrailWarning", "MemoryRead", "MemoryWritten", "MilestoneReached", "ProgressUpdated",
    "StreamChunk", "StreamWarning", "ToolCalled", "ToolRefused",
}  # fmt: skip
"""The events that say what blocks and people did."""


def told(result: asl.Result) -> str:
    """Return what blocks and people did, each as type:state."""
    return " ".join(
        f"{event.type}:{event.path[-1] if event.path else ''}"
        for event in result.events
        if event.type in TOLD
    )


def path_of(name: str) -> Path:
    return DOCUMENTS / f"{name}.asl.json"


def beside_its_templates(name: str, templates: Mapping[str, Any], folder: Path) -> Path:
    """Copy a document into a folder, and the templates that it imports."""
    (folder / "templates").mkdir()
    for template, content in templates.items():
        text = path_of(content).read_text() if isinstance(content, str) else json.dumps(content)
        (folder / "templates" / f"{template}.asl.json").write_text(text)
    copy = folder / "document.asl.json"
    copy.write_text(path_of(name).read_text())
    return copy


def test_every_document_is_in_the_table() -> None:
    """No document of the folder is left out, and none is invented."""
    assert sorted(TABLE) == sorted(
        path.name.removesuffix(".asl.json") for path in DOCUMENTS.glob("*.asl.json")
    )


@pytest.mark.parametrize(("name", "run"), list(runs()))
def test_a_document_runs(name: str, run: Run, tmp_path: Path) -> None:
    """It takes the route that its agents' answers lead to, its blocks do what is written here."""
    path = beside_its_templates(name, run.templates, tmp_path) if run.templates else path_of(name)
    result = asl.run(
        asl.load(path, parameters=run.parameters),
        run.input,
        agents={agent: script(answer) for agent, answer in run.agents.items()},
        profile=run.profile,
        clock="virtual",
        prices=run.prices,
        memory={"redis": ProcessMemory()},
        approvals=lambda request: run.people.get(request["state"]),
        workflows=run.workflows,
    )
    assert " ".join(result.visited) == run.route, (result.error, result.cause)
    assert told(result) == run.did
    if result.ok:
        assert holds(run.output, result.output), result.output
    else:
        assert holds(run.output, result.to_json()), (result.error, result.cause)


SEARCH = {"search_knowledge", "break_down_problem"}
TOOLS: list[tuple[str, int, dict[str, set[str]]]] = [
    (
        "tutorial-14-tool-enabled-agent-workflows.b02",
        0,
        {
            "GatherInformation": {"web_search"},
            "AnalyzeData": {"calculator", "analyze_data"},
            "ReadSupportingFiles": {"read_file"},
            "GenerateReport": set(),
        },
    ),
    ("tutorial-16-loop-strategies-in-workflows.b01", 1, {"ResearchWithReact": SEARCH}),
    (
        "tutorial-16-loop-strategies-in-workflows.b01",
        2,
        {"PlanAndExecute": {*SEARCH, "execute_step", "validate_solution"}},
    ),
    ("spec-01-introduction.b07", 0, {"Search": {"web_search"}}),
    ("specification.b30", 0, {"AnalyzeCode": {"read_file", "grep"}}),
    ("example-customer-support", 0, {"RefundRequest": {"lookup_order", "check_refund_policy"}}),
    ("example-research-assistant", 0, {"QuickFactCheck": {"web_search"}}),
    ("example-task-breakdown", 0, {"InitialBreakdown": {"web_search", "fetch_webpage"}}),
]
"""The tools that the states of a run may use."""
EVERY = sorted({tool for *_, states in TOOLS for tools in states.values() for tool in tools})


@pytest.mark.parametrize(("name", "number", "states"), TOOLS)
def test_agents_use_the_tools_of_their_states(
    name: str, number: int, states: dict[str, set[str]]
) -> None:
    """Agents that try every tool use those that their states allow, and the run ends as ever."""
    entry = TABLE[name]
    assert isinstance(entry, list)
    run = entry[number]

    def eager(answer: Any) -> Any:
        def agent(parameters: Any, call: asl.Call) -> Any:
            for tool in EVERY:
                with suppress(asl.StateError):
                    call.tools.call(tool)
            return answer

        return agent

    result = asl.run(
        path_of(name),
        run.input,
        agents={agent: eager(answer) for agent, answer in run.agents.items()},
        profile=run.profile,
        clock="virtual",
        memory={"redis": ProcessMemory()},
        approvals=lambda request: run.people.get(request["state"]),
        tools={tool: {"return": "done"} for tool in EVERY},
    )
    assert " ".join(result.visited) == run.route, (result.error, result.cause)
    used: dict[str, set[str]] = {state: set() for state in states}
    for event in result.events:
        if event.type == "ToolCalled" and event.path[-1] in used:
            used[str(event.path[-1])].add(event.details["tool"])
    assert used == states


@pytest.mark.parametrize(
    "name", sorted(name for name, entry in TABLE.items() if isinstance(entry, list))
)
def test_a_document_gets_cases_that_it_passes(name: str, tmp_path: Path) -> None:
    """What `asl test init` writes for a document that runs holds on that very document."""
    (run, *_) = TABLE[name] if isinstance(TABLE[name], list) else [Run({}, {}, "", None)]
    if run.templates or run.parameters:
        pytest.skip("it is a template, or imports some")
    document = asl.load(path_of(name))
    cases, _, _ = draft_cases(document, 100)
    assert cases
    for each in cases:
        case = Case(document=document.value, **{"expect": {}, **each})
        verdict = run_case(case, LocalImplementation())
        assert verdict.outcome == "passed", (each["id"], verdict.reasons)


@pytest.mark.parametrize(
    "name", [name for name, entry in TABLE.items() if isinstance(entry, Refused)]
)
def test_a_document_is_refused(name: str) -> None:
    """It is refused before anything runs, by the rules that say why."""
    entry = TABLE[name]
    assert isinstance(entry, Refused)
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.compile(path_of(name), ignore_blocks=True)
    assert {each.code for each in refusal.value.report.errors} == entry.codes


@pytest.mark.parametrize(
    "name",
    ["spec-10-composition.b08", "spec-10-composition.b14", "tutorial-12-building-skills.b04"],
)
def test_a_document_is_refused_without_its_templates(name: str) -> None:
    """Imports that do not exist are errors, each at its own."""
    with pytest.raises(asl.InvalidDocument) as refusal:
        asl.compile(path_of(name))
    imports = json.loads(path_of(name).read_text())["Imports"]
    found = {(each.code, each.pointer) for each in refusal.value.report.errors}
    assert found == {("V-IMP-01", f"/Imports/{each}") for each in imports}


@dataclass(frozen=True, slots=True)
class Watched:
    """What the blocks of a shipped example do in its first run, where every answer costs 0.15."""

    answers: int
    """How many answers report usage."""
    events: tuple[tuple[str, str], ...]
    """Events of its blocks and of people, in order, each with the state."""


WATCHED = {
    "example-code-review": Watched(7, (
        ("ApprovalRequested", "RequireSeniorReview"),
        ("ApprovalDecided", "RequireSeniorReview"),
    )),
    "example-content-pipeline": Watched(8, (
        ("ApprovalDecided", "HumanReview"),
        ("ApprovalDecided", "FinalApproval"),
        ("BudgetAlert", "NotifySuccess"),
    )),
    "example-customer-support": Watched(5, (
        ("MemoryRead", "LoadCustomerContext"),
        ("ApprovalDecided", "RefundApproval"),
        ("MemoryWritten", "SaveInteraction"),
    )),
    "example-research-assistant": Watched(4, (
        ("ApprovalRequested", "HumanReview"),
        ("ApprovalDecided", "HumanReview"),
    )),
    "example-task-breakdown": Watched(4, (("ApprovalDecided", "WaitForAnswers"),)),
}  # fmt: skip


@pytest.mark.parametrize("name", WATCHED)
def test_the_blocks_of_an_example_do_their_part(name: str) -> None:
    """Its budget counts every answer, its memory is read and written, people are asked."""
    entry, watched = TABLE[name], WATCHED[name]
    assert isinstance(entry, list)
    run = entry[0]

    def paid(answer: Any) -> Any:
        usage = {"_cost": 0.15, "_tokens": 10}
        return {"return": {**answer, **usage} if isinstance(answer, dict) else answer}

    result = asl.run(
        path_of(name),
        run.input,
        agents={agent: paid(answer) for agent, answer in run.agents.items()},
        profile=run.profile,
        clock="virtual",
        memory={"redis": ProcessMemory()},
        approvals=lambda request: run.people.get(request["state"]),
    )
    assert " ".join(result.visited) == run.route, (result.error, result.cause)
    assert result.usage["cost"] == pytest.approx(0.15 * watched.answers)
    assert result.usage["tokens"] == 10 * watched.answers
    events = iter((event.type, event.path[-1:]) for event in result.events)
    for type, state in watched.events:
        assert (type, (state,)) in events, (type, state)
    most = asl.plan(path_of(name), profile=run.profile).cost.maximum
    assert most is None or result.usage["cost"] <= most
