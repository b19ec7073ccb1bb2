"""The rows of the dialects that come with this package and take more than a module.

A row knows the documents of its dialect by their looks; what it does with them is loaded then.
"""
