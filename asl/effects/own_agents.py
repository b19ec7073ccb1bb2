"""What serves the resources of AWS that a run offers: activities, executions, task tokens."""

from __future__ import annotations

import re
from typing import Final

from asl.effects.callbacks import Answer, Polled
from asl.effects.nested import Start
from asl.effects.service import ServiceAgent
from asl.effects.services import Services
from asl.engine.agent import Agent
from asl.states.calls import Target

__all__ = ["own_agent"]

OWN: Final = re.compile(r"arn:[^:]*:states:[^:]*:[^:]*:(?:aws-sdk:sfn|states):(\w+)")
STARTS: Final = ("startExecution", "startSyncExecution")
ANSWERS: Final = ("sendTaskSuccess", "sendTaskFailure", "sendTaskHeartbeat")


def own_agent(services: Services, target: Target) -> Agent | None:
    """Return what serves a resource that nobody else is bound to, None without such a thing."""
    if target.is_activity:
        return None if services.tokens is None else ServiceAgent(Polled(target.name))
    own = OWN.fullmatch(target.base)
    if own is None:
        return None
    if own[1] in STARTS and services.workflows is not None:
        return ServiceAgent(Start(services, target))
    if own[1] in ANSWERS:
        return ServiceAgent(Answer(own[1]))
    return None
