"""The service: REST, live streams and pages over stores of executions."""

from asl.server.application import ServerApplication, app

__all__ = ["ServerApplication", "app"]
