"""`| pattern | update, delete |`: a function that returns a changed copy."""

from asl.expr.jsonata.faults import fault
from asl.expr.jsonata.scopes import QueryRun, Scope
from asl.expr.jsonata.signatures import Signature, parse_parameters
from asl.expr.jsonata.undefined import UNDEFINED, Value
from asl.expr.jsonata.values import Closure, Function, are_strings, listed

_SIGNATURE = Signature(parse_parameters("<(oa):o>"))


class Transform(Function):
    """Copies its argument, then changes the objects that the pattern finds in the copy."""

    __slots__ = ("clone", "delete", "pattern", "scope", "update")

    def __init__(
        self, pattern: Closure, update: Closure, delete: Closure | None, clone: Value, scope: Scope
    ) -> None:
        super().__init__("", 1)
        self.pattern = pattern
        self.update = update
        self.delete = delete
        self.clone = clone
        self.scope = scope

    def apply(self, arguments: list[Value], item: Value, scope: Scope) -> Value:
        """Return the changed copy; raises T2011, T2012 and T2013."""
        (value,) = _SIGNATURE.validate(arguments, item)
        if value is UNDEFINED:
            return UNDEFINED
        if not isinstance(self.clone, Function):
            raise fault("T2013")
        copy = self.clone.apply([value], None, scope)
        ours = _objects(copy, scope.run)
        found = self.pattern(copy, self.scope)
        for each in [] if found is UNDEFINED else listed(found):
            scope.run.spend(6)
            self._change(each, id(each) in ours)
        return copy

    def _change(self, found: Value, ours: bool) -> None:
        update = self.update(found, self.scope)
        if update is not UNDEFINED:
            if type(update) is not dict:
                raise fault("T2011", value=update)
            if ours:
                found.update(update)
        if self.delete is None:
            return
        names = self.delete(found, self.scope)
        if names is UNDEFINED:
            return
        if not are_strings(listed(names)):
            raise fault("T2012", value=names)
        for name in listed(names):
            if ours:
                found.pop(name, None)


def copy_tree(value: Value, run: QueryRun) -> Value:
    """Return a copy that shares no container with the original."""
    run.spend(6)
    if isinstance(value, list):
        return [copy_tree(item, run) for item in value]
    if type(value) is dict:
        return {name: copy_tree(item, run) for name, item in value.items()}
    return "" if isinstance(value, Function) else value


def _objects(value: Value, run: QueryRun) -> set[int]:
    """Return the ids of the copy's objects: nothing else may be changed."""
    found: set[int] = set()
    todo = [value]
    while todo:
        each = todo.pop()
        run.spend(2)
        if type(each) is dict:
            found.add(id(each))
            todo.extend(each.values())
        elif isinstance(each, list):
            todo.extend(each)
    return found
