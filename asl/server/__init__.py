"""The service: REST, live streams and pages over stores of executions."""

from asl.server.access.authentication import Authenticator
from asl.server.access.oidc_settings import OidcSettings
from asl.server.access.principal import Principal
from asl.server.application import ServerApplication, app

__all__ = ["Authenticator", "OidcSettings", "Principal", "ServerApplication", "app"]
