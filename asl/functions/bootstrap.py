"""The runtime of Python functions: reads events from the Runtime API and calls the handler.

    python bootstrap.py CODE [FOLDER...]

It runs as a script and imports the standard library only, so that any Python from 3.8 can run it.
Modules are looked for in CODE, then in the folders of layers. Errors have the form of Lambda's own
runtime for Python.
"""

from __future__ import annotations

import decimal
import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from types import SimpleNamespace
from typing import Any

PREFIX = "/2018-06-01/runtime/"
CLIENT = (
    *("installation_id", "app_title", "app_version_name", "app_version_code", "app_package_name"),
)
SHOWN = (
    *("aws_request_id", "log_group_name", "log_stream_name", "function_name"),
    *("memory_limit_in_mb", "function_version", "invoked_function_arn", "client_context"),
    "identity",
)


class RuntimeFault(Exception):
    """An error that the runtime reports by its own name."""

    def __init__(self, name: str, message: str, trace: list[str] | None = None) -> None:
        super().__init__(message)
        self.name = name
        self.trace = trace or []


class _Context:
    """The second argument of a handler."""

    def __init__(self, headers: Any) -> None:
        self.aws_request_id = headers["Lambda-Runtime-Aws-Request-Id"]
        self.invoked_function_arn = headers["Lambda-Runtime-Invoked-Function-Arn"]
        self.function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
        self.function_version = os.environ["AWS_LAMBDA_FUNCTION_VERSION"]
        self.memory_limit_in_mb = os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
        self.log_group_name = os.environ["AWS_LAMBDA_LOG_GROUP_NAME"]
        self.log_stream_name = os.environ["AWS_LAMBDA_LOG_STREAM_NAME"]
        self.identity = SimpleNamespace(cognito_identity_id=None, cognito_identity_pool_id=None)
        self.client_context = _client_context(headers.get("Lambda-Runtime-Client-Context"))
        self._deadline = int(headers["Lambda-Runtime-Deadline-Ms"])

    def get_remaining_time_in_millis(self) -> int:
        """Return the milliseconds that are left before the function times out."""
        return max(0, self._deadline - int(time.time() * 1000))

    def log(self, message: object) -> None:
        """Write a message to the log."""
        print(message)

    def __repr__(self) -> str:
        shown = ",".join("{}={}".format(name, getattr(self, name)) for name in SHOWN)  # noqa: UP032
        return f"LambdaContext([{shown}])"


def _client_context(text: str | None) -> Any:
    value = None if text is None else json.loads(text)
    if not isinstance(value, dict):
        return None
    client = value.get("client")
    if isinstance(client, dict):
        client = SimpleNamespace(**{name: client.get(name) for name in CLIENT})
    return SimpleNamespace(custom=value.get("custom"), env=value.get("env"), client=client)


class Api:
    """The Runtime API."""

    def __init__(self) -> None:
        self.connection = HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])

    def next(self) -> tuple[Any, bytes]:
        """Return headers and body of the next event."""
        self.connection.request("GET", f"{PREFIX}invocation/next")
        response = self.connection.getresponse()
        return response.headers, response.read()

    def send(self, request_id: str, kind: str, text: str) -> None:
        """Send the answer to an event."""
        body = text.encode()
        self.connection.request("POST", f"{PREFIX}invocation/{request_id}/{kind}", body)
        self.connection.getresponse().read()


def load_handler(name: str) -> Callable[[Any, _Context], Any]:
    """Import a handler by its name, such as `folder/module.function`; raises RuntimeFault."""
    module_name, dot, attribute = name.rpartition(".")
    if not dot:
        reason = "not enough values to unpack (expected 2, got 1)"
        raise RuntimeFault("Runtime.MalformedHandlerName", f"Bad handler '{name}': {reason}")
    try:
        module = importlib.import_module(module_name.replace("/", "."))
    except ImportError as error:
        text = f"Unable to import module '{module_name}': {error}"
        raise RuntimeFault("Runtime.ImportModuleError", text) from None
    except SyntaxError as error:
        trace = [f'  File "{error.filename}" Line {error.lineno}\n    {error.text}']
        text = f"Syntax error in module '{module_name}': {error}"
        raise RuntimeFault("Runtime.UserCodeSyntaxError", text, trace) from None
    if not hasattr(module, attribute):
        text = f"Handler '{attribute}' missing on module '{module_name}'"
        raise RuntimeFault("Runtime.HandlerNotFound", text)
    handler: Callable[[Any, _Context], Any] = getattr(module, attribute)
    return handler


def describe(error: Exception, request_id: str) -> dict[str, Any]:
    """Return an exception in the form of Lambda."""
    if isinstance(error, RuntimeFault):
        name, trace = error.name, error.trace
    else:
        name = type(error).__name__
        frames = traceback.extract_tb(error.__traceback__)
        while frames and frames[0].filename == __file__:
            del frames[0]
        # Tuples have no columns, which Lambda does not mark either.
        trace = traceback.format_list([(f.filename, f.lineno or 0, f.name, f.line) for f in frames])
    return {
        "errorMessage": _message(error),
        "errorType": name,
        "requestId": request_id,
        "stackTrace": trace,
    }


def _message(error: Exception) -> str:
    try:
        return str(error)
    except Exception as other:  # the handler's own __str__ fails
        return f"<no message: {type(other).__name__}>"


def write(value: Any) -> str:
    """Return a result as JSON text; raises RuntimeFault if it has none."""
    try:
        text = json.dumps(value, default=_number, allow_nan=False, ensure_ascii=False)
        text.encode()  # half of a surrogate pair fails here
    except (TypeError, ValueError, RecursionError) as error:
        text = f"Unable to marshal response: {error}"
        raise RuntimeFault("Runtime.MarshalError", text) from None
    return text


def _number(value: object) -> Any:
    if isinstance(value, decimal.Decimal) and value.is_finite():
        return int(value) if value == value.to_integral_value() else float(value)
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def report(api: Api, error: Exception, request_id: str) -> None:
    """Log an error and send it as the answer."""
    fields = describe(error, request_id)
    lines = "".join(fields["stackTrace"])
    sys.stdout.flush()
    message = f"[ERROR] {fields['errorType']}: {fields['errorMessage']}\n"
    sys.stderr.write(message + (f"Traceback (most recent call last):\n{lines}" if lines else ""))
    sys.stderr.flush()
    text = json.dumps(fields, ensure_ascii=False)
    api.send(request_id, "error", text.encode(errors="replace").decode())


def main() -> None:
    """Answer events until the connection ends."""
    own = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [*sys.argv[1:], *(each for each in sys.path if each != own)]
    del sys.argv[1:]
    api = Api()
    handler: Callable[[Any, _Context], Any] | None = None
    fault: Exception | None = None
    try:
        handler = load_handler(os.environ["_HANDLER"])
    except Exception as error:  # foreign code: it fails each event
        fault = error
    while True:
        headers, event = api.next()
        request_id = headers["Lambda-Runtime-Aws-Request-Id"]
        if handler is None:
            assert fault is not None
            report(api, fault, request_id)
            sys.exit(1)  # so that the next event imports the code again
        try:
            text = write(handler(json.loads(event), _Context(headers)))
        except Exception as error:  # foreign code: it fails the event
            report(api, error, request_id)
        else:
            sys.stdout.flush()
            api.send(request_id, "response", text)


if __name__ == "__main__":
    try:
        main()
    except (OSError, HTTPException):
        sys.exit(1)  # the interpreter has ended
