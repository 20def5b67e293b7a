"""What a caller may choose: `CompileOptions` changes the language, `Limits` only decides refusal.

Options are part of an artifact's key; limits are part of a cached refusal's key. Each limit is declared once, with
its meaning, unit and value in every profile; `LIMITS.md` is made from that (`limits_page.py`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from types import MappingProxyType
from typing import Any, Literal

MAX_INDENT = 16
MAX_WHITESPACE = 64
MAX_NESTING = 1024
MAX_DEFAULT_LENGTH = 1_000_000
MAX_DEFAULT_ITEMS = 100_000
MAX_DEFAULT_DIGITS = 400


@dataclass(frozen=True)
class CompileOptions:
    """Choices that change the language.

    whitespace: "flexible" (at most `max_whitespace` bytes in a gap between structural tokens), "compact" (none), or
        an int n (exactly the layout of `json.dumps(value, indent=n)`).
    property_order: "declared" or "any".
    residual: what to do with a keyword that an automaton can't express, "refuse" or "allow".
    regex_dialect: "ecma262" or "python", for `compile_regex` and for `pattern`.
    formats: "enforce" or "annotate".
    draft: that of a schema without a `$schema` of its own: "2020-12", "2019-09", "7", "6" or "4".
    max_nesting: containers that may be open at once; None is unbounded (with an indent it is
        `INDENT_NESTING`, because each depth has a layout of its own).
    default_max_length: characters of a string, and of an undeclared key, that its schema doesn't bound.
    default_max_items: items of an array, and undeclared members of an object, that its schema doesn't bound.
    default_max_digits: digits in a row in a number that its schema doesn't bound: whole, fraction and exponent apart.
        The three defaults (None: none) leave texts out and judge those that are left as before. A schema's own bound
        goes before a default where it stands plainly, not in one of several alternatives; so does a minimum above it.
    grammar_start: the rule that a text must match; None is "start" in Lark's notation and "root" in GBNF.
    grammar_fallback: where Lark's lexer may have to look ahead without bound before it falls back on a shorter match:
        "refuse", or "commit" (never fall back that far; texts are lost, none is wrongly let through).
    grammar_strict: refuse shift/reduce conflicts, and terminals of one priority that match a text in common, instead
        of noting them.

    Raises ValueError for a value outside these.
    """

    whitespace: Literal["flexible", "compact"] | int = "flexible"
    max_whitespace: int = 16
    property_order: Literal["declared", "any"] = "declared"
    residual: Literal["refuse", "allow"] = "refuse"
    regex_dialect: Literal["ecma262", "python"] = "ecma262"
    formats: Literal["enforce", "annotate"] = "enforce"
    draft: Literal["2020-12", "2019-09", "7", "6", "4"] = "2020-12"
    max_nesting: int | None = None
    default_max_length: int | None = None
    default_max_items: int | None = None
    default_max_digits: int | None = None
    grammar_start: str | None = None
    grammar_fallback: Literal["refuse", "commit"] = "refuse"
    grammar_strict: bool = False

    INDENT_NESTING = 12

    def __post_init__(self) -> None:
        _one_of("property_order", self.property_order, ("declared", "any"))
        _one_of("residual", self.residual, ("refuse", "allow"))
        _one_of("regex_dialect", self.regex_dialect, ("ecma262", "python"))
        _one_of("formats", self.formats, ("enforce", "annotate"))
        _one_of("draft", self.draft, ("2020-12", "2019-09", "7", "6", "4"))
        _one_of("grammar_fallback", self.grammar_fallback, ("refuse", "commit"))
        if not isinstance(self.grammar_strict, bool):
            raise ValueError(f"grammar_strict must be true or false, not {self.grammar_strict!r}")
        if self.grammar_start is not None and (not isinstance(self.grammar_start, str) or not self.grammar_start):
            raise ValueError(f"grammar_start must be the name of a rule, not {self.grammar_start!r}")
        if isinstance(self.whitespace, bool) or not isinstance(self.whitespace, int | str):
            raise ValueError(f"whitespace must be 'flexible', 'compact' or an indent, not {self.whitespace!r}")
        if isinstance(self.whitespace, int):
            _in_range("whitespace", self.whitespace, 0, MAX_INDENT)
        else:
            _one_of("whitespace", self.whitespace, ("flexible", "compact"))
        _in_range("max_whitespace", self.max_whitespace, 1, MAX_WHITESPACE)
        for name, least, most in (
            ("max_nesting", 1, MAX_NESTING),
            ("default_max_length", 0, MAX_DEFAULT_LENGTH),
            ("default_max_items", 0, MAX_DEFAULT_ITEMS),
            ("default_max_digits", 1, MAX_DEFAULT_DIGITS),
        ):
            if getattr(self, name) is not None:
                _in_range(name, getattr(self, name), least, most)

    def canonical(self) -> str:
        """The options as compact JSON with sorted keys: what the artifact's key holds. Bounds on values that aren't set
        aren't in it, so that keys don't change when there's one more."""
        chosen = {k: v for k, v in asdict(self).items() if v is not None or not k.startswith("default_")}
        return json.dumps(chosen, sort_keys=True, separators=(",", ":"))

    @property
    def bounds_values(self) -> bool:
        """Whether any value may be bounded beyond what its schema says."""
        return (self.default_max_length, self.default_max_items, self.default_max_digits) != (None, None, None)


def _limit(default: Any, strict: Any, large: Any, unit: str, meaning: str, stage: str) -> Any:
    """A limit's field: its value in each profile, what it counts, and the pass that checks it."""
    described = {"strict": strict, "default": default, "large": large, "unit": unit, "meaning": meaning, "stage": stage}
    return field(default=default, metadata=MappingProxyType(described))


MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """Bounds on one compilation. Passing one raises `LimitExceeded`; none changes an artifact that is made.

    `compile_seconds` and `compile_memory` are resources: passing them says nothing about the source. All others
    depend on source and options alone. Raises ValueError for a value that isn't a number above zero.
    """

    source_bytes: int = _limit(4_000_000, 256_000, 64_000_000, "bytes", "the source's text", "read")
    schema_depth: int = _limit(256, 64, 256, "levels", "nesting of the schema's JSON", "read")
    ref_expansion: int = _limit(
        1_000, 250, 1_000, "schemas", "sub-schemas that judge one value, one inside or behind the other", "schema"
    )
    properties: int = _limit(2_000, 500, 10_000, "names", "`properties` of one schema", "schema")
    enum_values: int = _limit(20_000, 2_000, 200_000, "values", "members of one `enum`", "schema")
    branches: int = _limit(1_000, 64, 5_000, "schemas", "of one `anyOf`, `oneOf` or `allOf`", "schema")
    pattern_length: int = _limit(20_000, 2_000, 100_000, "characters", "one pattern", "regex")
    string_bound: int = _limit(1_000_000, 100_000, 10_000_000, "characters", "`minLength` and `maxLength`", "schema")
    array_bound: int = _limit(
        100_000, 10_000, 1_000_000, "items", "bounds on items, on `contains` and on members", "schema"
    )
    frames: int = _limit(20_000, 500, 100_000, "frames", "of the byte automaton while it is explored", "explore")
    states: int = _limit(
        200_000, 5_000, 1_000_000, "states", "of the byte automaton, or of any made on the way to it", "explore"
    )
    stack_classes: int = _limit(
        20_000, 2_000, 100_000, "pairs", "(frame, stack class): what a mask can see", "contexts"
    )
    mask_bytes: int = _limit(256 * MIB, 64 * MIB, 2048 * MIB, "bytes", "distinct mask rows, if all were dense", "rows")
    artifact_bytes: int = _limit(16 * MIB, 4 * MIB, 256 * MIB, "bytes", "the finished artifact", "write")
    compile_seconds: float = _limit(
        60.0, 10.0, 600.0, "seconds", "wall time, looked at inside every pass that can be long", "every pass"
    )
    compile_memory: int = _limit(
        4096 * MIB,
        1024 * MIB,
        12288 * MIB,
        "bytes",
        "memory beyond what the process held before; a child process is held to it by the operating system, "
        "elsewhere it's looked at between passes",
        "every pass",
    )

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
                raise ValueError(f"limit {f.name} must be a number above 0, not {value!r}")

    @classmethod
    def profile(cls, name: str) -> Limits:
        """The named limits: "strict" for sources of strangers, "default", "large" for a batch of one's own.

        Raises ValueError for another name.
        """
        _one_of("profile", name, PROFILES)
        return cls(**{f.name: f.metadata[name] for f in fields(cls)})


PROFILES = ("strict", "default", "large")
RESOURCE_LIMITS = frozenset({"compile_seconds", "compile_memory"})
"""Limits whose being passed depends on the machine, not on source and options alone: never kept as a refusal."""


def limit_table() -> Mapping[str, Mapping[str, Any]]:
    """Each limit's `strict`, `default`, `large`, `unit`, `meaning` and `stage`, by name, in order."""
    return {f.name: f.metadata for f in fields(Limits)}


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")


def _in_range(name: str, value: int, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{name} must be an integer from {low} to {high}, not {value!r}")
