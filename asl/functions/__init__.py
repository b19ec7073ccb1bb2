"""Lambda functions of a project, run by processes of this machine.

`LocalFunctions` binds the functions of a template to their local code. Each function has processes
of its own, which poll AWS's Runtime API (`runtime_api`): Python functions by `bootstrap.py`, Node
functions by `bootstrap.mjs`, those of other runtimes by a command of the user.
"""

from asl.functions.local_functions import LocalFunctions

__all__ = ["LocalFunctions"]
