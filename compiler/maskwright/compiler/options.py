"""What a caller may choose: `CompileOptions` changes the language, `Limits` only decides refusal.

Options are part of an artifact's key; limits are part of a cached refusal's key.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Literal

MAX_INDENT = 16
MAX_WHITESPACE = 64


@dataclass(frozen=True)
class CompileOptions:
    """Choices that change the language.

    whitespace: "flexible" (at most `max_whitespace` bytes in a gap between structural tokens), "compact" (none), or
        an int n (exactly the layout of `json.dumps(value, indent=n)`).
    property_order: "declared" or "any".
    residual: what to do with a keyword that an automaton can't express, "refuse" or "allow".
    regex_dialect: "ecma262" or "python", for `compile_regex` and for `pattern`.
    formats: "enforce" or "annotate".
    max_nesting: containers that may be open at once; None is unbounded (with an indent it is
        `INDENT_NESTING`, because each depth has a layout of its own).

    Raises ValueError for a value outside these.
    """

    whitespace: Literal["flexible", "compact"] | int = "flexible"
    max_whitespace: int = 16
    property_order: Literal["declared", "any"] = "declared"
    residual: Literal["refuse", "allow"] = "refuse"
    regex_dialect: Literal["ecma262", "python"] = "ecma262"
    formats: Literal["enforce", "annotate"] = "enforce"
    max_nesting: int | None = None

    INDENT_NESTING = 12

    def __post_init__(self) -> None:
        _one_of("property_order", self.property_order, ("declared", "any"))
        _one_of("residual", self.residual, ("refuse", "allow"))
        _one_of("regex_dialect", self.regex_dialect, ("ecma262", "python"))
        _one_of("formats", self.formats, ("enforce", "annotate"))
        if isinstance(self.whitespace, bool) or not isinstance(self.whitespace, int | str):
            raise ValueError(f"whitespace must be 'flexible', 'compact' or an indent, not {self.whitespace!r}")
        if isinstance(self.whitespace, int):
            _in_range("whitespace", self.whitespace, 0, MAX_INDENT)
        else:
            _one_of("whitespace", self.whitespace, ("flexible", "compact"))
        _in_range("max_whitespace", self.max_whitespace, 1, MAX_WHITESPACE)
        if self.max_nesting is not None:
            _in_range("max_nesting", self.max_nesting, 1, 1024)

    def canonical(self) -> str:
        """The options as compact JSON with sorted keys: what the artifact's key holds."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class Limits:
    """Bounds on one compilation. Passing one raises `LimitExceeded`; none changes an artifact that is made.

    source_bytes: bytes of the source text.
    schema_depth: nesting of the source JSON.
    ref_expansion: schemas that `$ref` may bring in, counted with repetition.
    properties: declared properties of one object.
    enum_values: members of one enum.
    branches: alternatives of one applicator.
    pattern_length: characters of one pattern.
    string_bound, array_bound: largest length and item bounds.
    frames, states: of the byte automaton, before minimisation.
    stack_classes: (frame, stack class) pairs.
    mask_bytes: bytes of all distinct mask rows, dense.
    artifact_bytes: bytes of the finished artifact.
    compile_seconds: wall time; checked between passes and inside the long ones.
    """

    source_bytes: int = 4_000_000
    schema_depth: int = 256
    ref_expansion: int = 100_000
    properties: int = 5_000
    enum_values: int = 20_000
    branches: int = 1_000
    pattern_length: int = 20_000
    string_bound: int = 1_000_000
    array_bound: int = 100_000
    frames: int = 20_000
    states: int = 200_000
    stack_classes: int = 20_000
    mask_bytes: int = 1 << 30
    artifact_bytes: int = 64 << 20
    compile_seconds: float = 60.0


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")


def _in_range(name: str, value: int, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name} must be an integer from {low} to {high}, not {value!r}")
