"""The built-in functions, by what they work on; `table` knows them all by name.

Arguments have been checked against the signature, so a function only meets the types that it
declares, and `UNDEFINED`.
"""
