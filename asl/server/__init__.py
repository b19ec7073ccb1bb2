"""The service: REST, live streams and pages over stores of executions."""

from asl.server.app import Application, app

__all__ = ["Application", "app"]
