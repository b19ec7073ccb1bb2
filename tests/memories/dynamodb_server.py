"""A server that speaks as DynamoDB does, at the port that is its argument.

It answers one request after the other: its conditional puts look and write in two steps, which
DynamoDB does in one.
"""

import sys

from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

if __name__ == "__main__":
    application = DomainDispatcherApplication(create_backend_app)
    run_simple("127.0.0.1", int(sys.argv[1]), application)
