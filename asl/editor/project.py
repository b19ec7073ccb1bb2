"""What the server knows of the project around a document."""

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple, TypeAlias

from asl.core.profile import DEFAULT, Profile
from asl.core.values import Json

__all__ = ["FindProject", "ProjectNames"]


class ProjectNames(NamedTuple):
    """The settings of a project and the names that its files bind.

    `agents` and `resources` are None in a project without agents files: then any name may be bound.
    """

    profile: Profile = DEFAULT
    variables: Mapping[str, Json] = {}
    agents: Collection[str] | None = None
    resources: Collection[str] | None = None
    workflows: Collection[str] = ()


FindProject: TypeAlias = Callable[[str], ProjectNames]
"""Returns the project of a folder; raises AslError for one that cannot be read."""
