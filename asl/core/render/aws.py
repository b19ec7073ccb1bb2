"""Reports as AWS's ValidateStateMachineDefinition answers."""

from typing import Any

from asl.core.diagnostics import Diagnostic, Report, Severity
from asl.core.render.reports import Reports, dumped, every_report
from asl.core.values import Json

__all__ = ["aws_answer", "render_aws"]


def render_aws(reports: Reports) -> str:
    """For programs that read the answers of AWS's ValidateStateMachineDefinition: one like it.

    `{"result": "OK" or "FAIL", "diagnostics": [{"severity", "code", "message", "location"}]}`, for
    reports under the `aws` profile. Our own message stands where AWS's words are not known.
    """
    return dumped(aws_answer(reports))


def aws_answer(reports: Reports) -> dict[str, Any]:
    """The answer of `render_aws` as a value."""
    each = every_report(reports)
    found = [answer for report in each for answer in _answers(report)]
    distinct = [one for index, one in enumerate(found) if one not in found[:index]]
    result = "OK" if all(report.ok for report in each) else "FAIL"
    return {"result": result, "diagnostics": distinct}


def _answers(report: Report) -> list[Json]:
    """What AWS says of a document: a missing end last, and beside it of no unreachable state."""
    found = [each for each in report if each.aws]
    endless = [each for each in found if each.aws and each.aws.code == "MISSING_END_STATE"]
    others = [
        each for each in found if each not in endless and not (endless and each.code == "V-TOP-11")
    ]
    return [_answer(each) for each in (*others, *endless)]


def _answer(each: Diagnostic) -> Json:
    aws = each.aws
    assert aws is not None
    answer = {
        "severity": "ERROR" if each.severity is Severity.ERROR else "WARNING",
        "code": aws.code,
        "message": aws.message or each.message,
    }
    return answer if aws.location is None else {**answer, "location": aws.location}
