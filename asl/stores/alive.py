"""What counts of a log: the positions and answers behind which no position stands."""

from asl.core.values import Json

__all__ = ["Alive"]


class Alive:
    """Goes through the entries of a log, in order; its methods have the names of the entries."""

    def __init__(self, positions: dict[str, Json], answers: dict[str, Json]) -> None:
        self.positions = positions
        self.answers = answers
        self._below: dict[str, dict[str, None]] = {}
        """What is kept right below each path, answers and machines."""

    def answer(self, key: str, answer: Json) -> None:
        """Keep an answer."""
        self._hang(key)
        self.answers[key] = answer

    def position(self, path: str, position: Json, kept: str | None) -> None:
        """Keep where a machine stands."""
        self._drop(path, kept)
        self._hang(path)
        self.positions[path] = position

    def void(self, key: str) -> None:
        """Forget an answer."""
        self.answers.pop(key, None)

    def _hang(self, key: str) -> None:
        while key[:1] == "/":  # what belongs to no machine is never past
            path = key.rpartition("/")[0]
            siblings = self._below.setdefault(path, {})
            if key in siblings:
                return
            siblings[key] = None
            key = path

    def _drop(self, path: str, kept: str | None) -> None:
        for key in self._below.pop(path, ()):
            if kept is not None and key.startswith(kept):
                self._hang(key)
            else:
                self._drop(key, None)
                self.positions.pop(key, None)
                self.answers.pop(key, None)
