"""What the gate raises: wrong use and an unusable store. What happens to a text is an outcome, never one of these."""

from __future__ import annotations


class GateError(Exception):
    """Base of what the gate raises by itself. What a caller's hook raises is passed on as it is."""


class WrongSchema(GateError):
    """The schema isn't the one that the artifact was compiled from. Digests are hex SHA-256 of the compact JSON."""

    def __init__(self, expected: str, found: str) -> None:
        self.expected, self.found = expected, found
        super().__init__(expected, found)

    def __str__(self) -> str:
        return f"the artifact was compiled from schema {self.expected}, this one is {self.found}"


class SchemaNeeded(GateError):
    """The artifact leaves keywords to the gate (`residual="allow"`), and the gate got no schema."""

    def __init__(self, digest: str) -> None:
        self.digest = digest
        super().__init__(digest)

    def __str__(self) -> str:
        return f"artifact {self.digest} was compiled with residual='allow': the gate needs its schema to judge the rest"


class MissingDependency(GateError):
    """An optional package isn't installed."""

    def __init__(self, package: str, extra: str) -> None:
        self.package, self.extra = package, extra
        super().__init__(package, extra)

    def __str__(self) -> str:
        return f"{self.package} isn't installed: pip install 'maskwright[{self.extra}]'"


class StoreError(GateError):
    """The store can't be used: damaged, of another format, or not to be written. Nothing ran."""

    def __init__(self, path: str, reason: str) -> None:
        self.path, self.reason = path, reason
        super().__init__(path, reason)

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class CannotSettle(GateError):
    """A call that isn't in doubt. `state`: "unknown", "done" or "running"."""

    def __init__(self, scope: str, key: str, state: str) -> None:
        self.scope, self.key, self.state = scope, key, state
        super().__init__(scope, key, state)

    def __str__(self) -> str:
        return f"key {self.key!r} of scope {self.scope!r} is {self.state}, not in doubt"


class NotDone(Exception):
    """Raise this in an action that has had no effect: the key is released and the outcome is a rejection by the
    layer "action". Anything else that an action raises leaves the call in doubt.
    """
