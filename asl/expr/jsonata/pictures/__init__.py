"""Picture strings: how integers, decimals and moments are written and read."""

LONGEST = 1000
"""How many characters a picture may have; none that means something comes near."""
