"""Whether AWS Step Functions recognizes the resource of a task.

A resource is a Lambda function, an activity, an optimized integration or an action of the AWS SDK.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from asl.checks.service_catalog import RETIRED, SDK_NAMES, optimized_integrations, sdk_services
from asl.core import aws_messages
from asl.core.diagnostics import Suggestions

__all__ = ["ACTIVITY", "PATTERNS", "TOKEN", "ResourceFault", "resource_faults"]

TOKEN: Final = ".waitForTaskToken"
PATTERNS: Final = (".sync:2", ".sync", TOKEN)
"""Suffixes of an action that say how long the task waits."""
ACTIVITY: Final = r"arn:[^:]+:states:[^:]*:[^:]*:activity:[^:]+"

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S+")
_ARN = re.compile(
    r"arn:aws[a-z-]*:(?P<service>[a-z0-9-]+):(?P<region>[^:]*):(?P<account>[^:]*):(?P<rest>.+)"
)
_FUNCTION = re.compile(r"function:[\w.-]+(?::(?:\$LATEST|[\w-]+))?")
_SDK = "aws-sdk"


class ResourceFault(NamedTuple):
    """A reason for which AWS does not accept a resource."""

    message: str
    hint: str | None
    words: str
    """What AWS says of it."""
    integration: bool = False
    """Whether the text has the form of an integration, so that it means nothing elsewhere."""


def resource_faults(
    resource: str, suggestions: Suggestions, express: bool = False
) -> Iterator[ResourceFault]:
    """Yield the reasons for which AWS does not accept a resource.

    Args:
        resource: The `Resource` of a task.
        suggestions: Looks for names that may have been meant.
        express: Whether an express execution runs the task.
    """
    if not _URI.fullmatch(resource):
        message = f"{resource!r} is no resource name such as 'arn:aws:states:::sns:publish'"
        yield ResourceFault(message, None, aws_messages.NO_RESOURCE)
        return
    if not resource.lower().startswith("arn:"):
        return
    arn = _ARN.fullmatch(resource)
    if arn is None or not arn["rest"].strip(":"):
        message = f"{resource!r} is not an ARN: one is 'arn:aws:SERVICE:REGION:ACCOUNT:RESOURCE'"
        yield ResourceFault(message, None, aws_messages.NO_RESOURCE)
    elif arn["service"] == "lambda":
        yield from _of_function(arn)
    elif arn["service"] == "states":
        yield from _of_states(resource, arn["rest"], suggestions, express)
    elif arn["service"] != "swf":  # an example of the specification
        message = f"a task cannot call {arn['service']!r} by the ARN of one of its resources"
        yield ResourceFault(message, _by_integration(arn["service"]), aws_messages.NO_RESOURCE)


def _of_function(arn: re.Match[str]) -> Iterator[ResourceFault]:
    # Without region and account it is an abbreviation, as examples have it.
    if (arn["region"] or arn["account"]) and not _FUNCTION.fullmatch(arn["rest"]):
        yield ResourceFault(
            f"{arn[0]!r} is not the ARN of a Lambda function",
            "one is 'arn:aws:lambda:REGION:ACCOUNT:function:NAME', with ':VERSION' or ':ALIAS'",
            aws_messages.NO_RESOURCE,
        )


def _of_states(
    resource: str, rest: str, suggestions: Suggestions, express: bool
) -> Iterator[ResourceFault]:
    if rest.startswith("activity"):
        if not re.fullmatch(ACTIVITY, resource):
            hint = "one is 'arn:aws:states:REGION:ACCOUNT:activity:NAME'"
            yield ResourceFault(
                f"{resource!r} is not the ARN of an activity", hint, aws_messages.NO_RESOURCE, True
            )
        elif express:
            words = "Express state machine does not support Activity ARN"
            yield ResourceFault("an express workflow has no activities", None, words, True)
        return
    if rest.startswith(("stateMachine:", "execution:", "express:")):
        hint = "use 'arn:aws:states:::states:startExecution.sync:2' and name it in the parameters"
        yield ResourceFault(
            "a task does not name a state machine", hint, _unrecognized(resource), True
        )
        return
    pattern = next((each for each in PATTERNS if rest.endswith(each)), "")
    if express and pattern:
        name = pattern.partition(":")[0]
        blank = " " if name == TOKEN else ""  # AWS, recorded
        words = f"Express state machine does not support '{name}' service integration{blank}"
        yield ResourceFault(f"an express workflow does not support {pattern!r}", None, words, True)
        return
    label = rest.removesuffix(pattern)
    judge = _of_sdk if rest.startswith(f"{_SDK}:") else _of_integration
    for message, advice in judge(label, pattern, suggestions):
        yield ResourceFault(message, advice, _unrecognized(resource), True)


def _unrecognized(resource: str) -> str:
    return (
        f"The resource provided {resource} is not recognized. The value is not a valid resource "
        "ARN, or the resource is not available in this region."
    )


# --------------------------------------------------------------------------------------------
# Optimized integrations


def _of_integration(
    label: str, pattern: str, suggestions: Suggestions
) -> Iterator[tuple[str, str | None]]:
    """Yield `(message, hint)` for `service:action` that is no optimized integration."""
    service, _, name = label.partition(":")
    known = optimized_integrations().get(service, {})
    if name in known:
        offered = known[name].patterns
        if pattern and pattern not in offered:
            message = f"AWS does not offer {pattern!r} for {label!r}"
            yield message, _instead(label, offered)
        return
    message = f"there is no optimized integration {label + pattern!r}"
    labels = [
        f"{other}:{action}{suffix}"
        for other, actions in optimized_integrations().items()
        for action, each in actions.items()
        for suffix in ("", *each.patterns)
    ]
    hint = _nearest(label + pattern, labels, suggestions) or _sdk_form(service, name)
    yield message, hint or _listed(service, known)


def _instead(label: str, offered: Collection[str]) -> str:
    if label == "lambda:invoke":
        return "a plain call waits for the answer of the function anyway"
    if not offered:
        return f"write {label!r} and wait for the job in a loop of states"
    return f"it has {' and '.join(map(repr, offered))}"


def _listed(service: str, known: Collection[str]) -> str:
    if known:
        return f"{service!r} has {', '.join(map(repr, known))}"
    return f"there are {', '.join(optimized_integrations())}, and 'aws-sdk:SERVICE:ACTION'"


def _sdk_form(service: str, name: str) -> str | None:
    """Return a hint at the same action of the AWS SDK."""
    own = SDK_NAMES.get(service) or _sdk_service(service)
    if own is None:
        return None
    action = _same(name, sdk_services()[own].actions.split(" "))
    return f"write 'arn:aws:states:::{_SDK}:{own}:{action}'" if action else None


def _by_integration(service: str) -> str | None:
    known = optimized_integrations().get(service)
    if not known:
        return "call an action of the service: 'arn:aws:states:::aws-sdk:SERVICE:ACTION'"
    return (
        f"call an action of the service, such as 'arn:aws:states:::{service}:{next(iter(known))}'"
    )


# --------------------------------------------------------------------------------------------
# The AWS SDK


def _of_sdk(label: str, pattern: str, suggestions: Suggestions) -> Iterator[tuple[str, str | None]]:
    """Yield `(message, hint)` for `aws-sdk:service:action` that does not exist."""
    service, _, name = label.removeprefix(f"{_SDK}:").partition(":")
    services = sdk_services()
    if service in RETIRED:
        return
    if service not in services:
        yield f"the AWS SDK has no service {service!r}", _service_hint(service, suggestions)
        return
    actions = services[service].actions.split(" ")
    if name not in actions:
        message = f"the service {service!r} of the AWS SDK has no action {name!r}"
        hint = _nearest(name, actions, suggestions) or _integration_form(service, name)
        yield message, hint
    elif pattern and pattern != TOKEN:
        integrated = _integration_form(service, name, pattern)
        hint = integrated or f"write {label!r} and wait for the job in a loop of states"
        yield f"AWS does not offer {pattern!r} for actions of the AWS SDK", hint


def _service_hint(service: str, suggestions: Suggestions) -> str | None:
    own = SDK_NAMES.get(service) or _sdk_service(service)
    return f"write '{_SDK}:{own}:...'" if own else suggestions.near(service, sdk_services())


def _sdk_service(service: str) -> str | None:
    """Return the name in the AWS SDK of a service that is spelled as elsewhere."""
    plain = service.replace("-", "").lower()
    for own, listed in sdk_services().items():
        if plain in (own, listed.model.replace("-", "")):
            return own
    return None


def _integration_form(service: str, name: str, pattern: str = "") -> str | None:
    """Return a hint at the optimized integration of an action."""
    own = next((each for each, of_sdk in SDK_NAMES.items() if of_sdk == service), service)
    found = optimized_integrations().get(own, {}).get(name)
    if found is None or (pattern and pattern not in found.patterns):
        return None
    return f"write 'arn:aws:states:::{own}:{name}{pattern}'"


# --------------------------------------------------------------------------------------------
# Names


def _same(word: str, names: Iterable[str]) -> str | None:
    """Return the name that differs from a word in the case of its letters only."""
    wanted = word.lower()
    return next((name for name in names if name.lower() == wanted), None)


def _nearest(word: str, names: Collection[str], suggestions: Suggestions) -> str | None:
    """Return a hint at the name that is probably meant."""
    same = _same(word, names)
    return f"write {same!r}" if same else suggestions.near(word, names)
