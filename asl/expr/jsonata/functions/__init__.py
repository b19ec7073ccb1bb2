"""The built-in functions by subject; `table` has all of them by name.

Arguments are checked against the signature before a call, so a function gets the declared types
only, and `UNDEFINED`.
"""
