"""Picture strings: formats of integers, decimals and datetimes."""

LONGEST = 1000
"""Characters of a picture; meaningful ones are much shorter."""
