"""Show reports to people and to programs.

Every renderer takes one report or several and returns the whole text, without an end of line.
"""
