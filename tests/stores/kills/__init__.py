"""Processes that die at every instant, and what must hold of the executions that they leave.

`lives` runs an execution in a real process that is killed, `trial` brings it to its end through
many such lives, `laws` says what must hold after each of them, `broken` plants faults that the laws
must find, `scenes` holds the documents.
"""
