"""Random small schemas and instances, for comparing with another validator.

Names, strings and numbers come from small pools, so that keywords meet. The canonical key
order of an instance isn't known here: `accepts_in_some_order` tries them all.
"""

from __future__ import annotations

import json
import random
from typing import Any

from maskwright.compiler.automaton.ir import ByteAutomaton, Configuration, initial, may_end, step

NAMES = ["a", "b", "ab", "é"]
STRINGS = ["", "a", "b", "ab", "ba", "aab", "é\n", '"']
NUMBERS = [0, 1, 2, 3, -1, -2, 10, 12, 0.5, 1.5, -0.25, 2.75]
PATTERNS = ["^a", "b$", "^[ab]*$", "a.*b", "^.{2}$"]
FORMATS = {
    "ipv4": ["1.2.3.4", "1.2.3.256"],
    "date": ["2024-02-29", "2023-02-29"],
    "uuid": ["2eb8aa08-aa98-11ea-b4aa-73b441d16380"],
    "json-pointer": ["/a~1b", "/~"],
}
"""Exact ones, with texts that have them or nearly so."""
DRAFTS = {2020: "2020-12", 2019: "2019-09", 7: "7", 6: "6", 4: "4"}


class SchemaMaker:
    def __init__(self, rng: random.Random, *, recursion: bool = True, draft: int = 2020) -> None:
        self.rng, self.recursion, self.draft = rng, recursion, draft

    def schema(self) -> Any:
        out = self.sub(3)
        while isinstance(out, bool):
            out = self.sub(3)
        if self.recursion:
            out[self.definitions] = {"d0": self.sub(2), "d1": self.sub(1)}
        return out

    @property
    def definitions(self) -> str:
        return "$defs" if self.draft >= 2019 else "definitions"

    def sub(self, depth: int) -> Any:
        rng = self.rng
        if rng.random() < 0.06:
            accepts = rng.random() < 0.7
            return accepts if self.draft > 4 else {} if accepts else {"not": {}}
        if depth <= 0:
            return self.leaf()
        out: dict[str, Any] = {}
        for make in rng.sample(self.makers(), rng.choice([1, 1, 2, 2, 3])):
            out.update(make(depth - 1))
        return out

    def makers(self) -> list[Any]:
        some = [
            self.type,
            self.object,
            self.object,
            self.array,
            self.array,
            self.combine,
            self.combine,
            self.negate,
        ]
        some += [self.strings, self.numbers, self.enum, self.depend, self.counts, self.unique, self.formats]
        some += [self.conditional] if self.draft >= 7 else []
        some += [self.contains] if self.draft >= 6 else []
        some += [self.unevaluated] if self.draft >= 2019 else []
        return some + ([self.ref] if self.recursion else [])

    def leaf(self) -> Any:
        return self.rng.choice([self.type, self.enum, self.strings, self.numbers])(0)

    def type(self, depth: int) -> dict[str, Any]:
        kinds = ["null", "boolean", "integer", "number", "string", "array", "object"]
        names = self.rng.sample(kinds, self.rng.choice([1, 1, 2, 3]))
        return {"type": names if len(names) > 1 else names[0]}

    def names(self) -> list[str]:
        return self.rng.sample(NAMES, self.rng.choice([1, 2, 2, 3]))

    def object(self, depth: int) -> dict[str, Any]:
        rng = self.rng
        out: dict[str, Any] = {"properties": {n: self.sub(depth) for n in self.names()}}
        if rng.random() < 0.5:
            out["required"] = self.names()
        if rng.random() < 0.4:
            out["additionalProperties"] = rng.choice([False, False, self.sub(depth)])
        if rng.random() < 0.2:
            out["patternProperties"] = {p: self.sub(depth) for p in rng.sample(PATTERNS, rng.choice([1, 1, 2]))}
        if rng.random() < 0.15 and self.draft >= 6:
            out["propertyNames"] = rng.choice([{"maxLength": 1}, {"pattern": "^a"}, {"enum": NAMES[:2]}])
        return out

    def array(self, depth: int) -> dict[str, Any]:
        rng = self.rng
        out: dict[str, Any] = {}
        if rng.random() < 0.7:
            out["items"] = self.sub(depth)
        if rng.random() < 0.4:
            prefix = [self.sub(depth) for _ in range(rng.choice([1, 2]))]
            if self.draft >= 2020:
                out["prefixItems"] = prefix
            elif "items" in out and rng.random() < 0.7:
                out["additionalItems"], out["items"] = out["items"], prefix
            else:
                out["items"] = prefix
        if rng.random() < 0.4:
            out["minItems"] = rng.randint(0, 2)
        if rng.random() < 0.3:
            out["maxItems"] = rng.randint(0, 3)
        return out

    def combine(self, depth: int) -> dict[str, Any]:
        keyword = self.rng.choice(["anyOf", "anyOf", "oneOf", "allOf"])
        return {keyword: [self.sub(depth) for _ in range(self.rng.choice([1, 2, 2, 3]))]}

    def negate(self, depth: int) -> dict[str, Any]:
        return {"not": self.sub(depth)}

    def conditional(self, depth: int) -> dict[str, Any]:
        out = {"if": self.sub(depth)}
        for k in ("then", "else"):
            if self.rng.random() < 0.7:
                out[k] = self.sub(depth)
        return out

    def strings(self, depth: int) -> dict[str, Any]:
        rng = self.rng
        return rng.choice(
            [
                {"minLength": rng.randint(0, 3)},
                {"maxLength": rng.randint(0, 3)},
                {"pattern": rng.choice(PATTERNS)},
            ]
        )

    def numbers(self, depth: int) -> dict[str, Any]:
        keyword = self.rng.choice(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"])
        if self.draft == 4 and keyword.startswith("exclusive"):
            return {keyword: self.rng.random() < 0.7, keyword[9:].lower(): self.rng.choice(NUMBERS)}
        return {keyword: self.rng.choice([0.5, 1.5, 2, 0.25, 3] if keyword == "multipleOf" else NUMBERS)}

    def enum(self, depth: int) -> dict[str, Any]:
        rng = self.rng
        if rng.random() < 0.3 and self.draft >= 6:
            return {"const": self.value(1)}
        return {"enum": [self.value(1) for _ in range(rng.choice([1, 2, 3]))]}

    def depend(self, depth: int) -> dict[str, Any]:
        keyword = self.rng.choice(["dependentRequired", "dependentSchemas"])
        value = self.names() if keyword == "dependentRequired" else self.sub(depth)
        keyword = keyword if self.draft >= 2019 else "dependencies"
        return {keyword: {self.rng.choice(NAMES): value}}

    def counts(self, depth: int) -> dict[str, Any]:
        return self.rng.choice([{"minProperties": 1}, {"maxProperties": self.rng.randint(0, 2)}])

    def unique(self, depth: int) -> dict[str, Any]:
        """Over few values, so that it's enforced."""
        rng = self.rng
        items = rng.choice(
            [{"enum": [self.value(1) for _ in range(3)]}, {"type": "boolean"}, {"type": ["null", "boolean"]}]
        )
        return {"items": items, "uniqueItems": rng.random() < 0.9}

    def formats(self, depth: int) -> dict[str, Any]:
        since = {"ipv4": 4, "json-pointer": 6, "date": 7, "uuid": 2019}  # another validator goes by the draft
        return {"format": self.rng.choice([name for name in FORMATS if since[name] <= self.draft])}

    def contains(self, depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {"contains": self.sub(depth)}
        if self.rng.random() < 0.4 and self.draft >= 2019:
            out["minContains"] = self.rng.randint(0, 2)
        if self.rng.random() < 0.4 and self.draft >= 2019:
            out["maxContains"] = self.rng.randint(0, 2)
        return out

    def unevaluated(self, depth: int) -> dict[str, Any]:
        """With something beside it that evaluates in part."""
        beside = self.rng.choice([self.object, self.combine, self.conditional, self.array, self.contains])
        keyword = self.rng.choice(["unevaluatedProperties", "unevaluatedItems"])
        return {**beside(depth), keyword: self.rng.choice([False, False, self.sub(depth - 1)])}

    def ref(self, depth: int) -> dict[str, Any]:
        name = self.rng.choice(["#", f"#/{self.definitions}/d0", f"#/{self.definitions}/d1"])
        if self.rng.random() < 0.2 and name == "#" and self.draft >= 2019:
            return {"$recursiveRef" if self.draft == 2019 else "$dynamicRef": "#"}
        return {"$ref": name}

    def value(self, depth: int) -> Any:
        rng = self.rng
        kind = rng.choice(
            ["word", "number", "string", "string", "array", "object", "object"]
            if depth
            else ["word", "number", "string"]
        )
        if kind == "word":
            return rng.choice([None, True, False])
        if kind == "number":
            return rng.choice(NUMBERS)
        if kind == "string":
            return rng.choice(STRINGS if rng.random() < 0.8 else [text for texts in FORMATS.values() for text in texts])
        if kind == "array":
            return [self.value(depth - 1) for _ in range(rng.choice([0, 1, 1, 2, 3]))]
        return {n: self.value(depth - 1) for n in rng.sample([*NAMES, "c"], rng.choice([0, 1, 1, 2, 2, 3]))}


def accepts_in_some_order(automaton: ByteAutomaton, value: Any, comma: str = ", ", colon: str = ": ") -> bool:
    """Whether the value is accepted with its keys in some order."""
    end = _Orders(automaton, comma, colon).value(initial(automaton), value)
    return end is not None and may_end(automaton, end)


class _Orders:
    """The configuration after a value in some order of its keys. A verdict depends on the value alone, so the first
    order that is accepted stands for all. Sets of keys left that lead nowhere are remembered."""

    def __init__(self, automaton: ByteAutomaton, comma: str, colon: str) -> None:
        self.automaton, self.comma, self.colon = automaton, comma, colon
        self.known: dict[tuple[Configuration, int, frozenset[str]], Configuration | None] = {}

    def read(self, config: Configuration | None, text: str) -> Configuration | None:
        for byte in text.encode():
            if config is None:
                return None
            config = step(self.automaton, config, byte)
        return config

    def value(self, config: Configuration | None, value: Any) -> Configuration | None:
        if isinstance(value, dict):
            inside = self.read(config, "{")
            return inside and self.members(inside, value, frozenset(value))
        if not isinstance(value, list):
            return self.read(config, json.dumps(value, ensure_ascii=False))
        config = self.read(config, "[")
        for i, item in enumerate(value):
            config = self.value(self.read(config, self.comma if i else ""), item)
        return self.read(config, "]")

    def members(self, config: Configuration, value: dict[str, Any], left: frozenset[str]) -> Configuration | None:
        at = (config, id(value), left)
        if at not in self.known:
            self.known[at] = self._members(config, value, left)
        return self.known[at]

    def _members(self, config: Configuration, value: dict[str, Any], left: frozenset[str]) -> Configuration | None:
        if not left:
            return self.read(config, "}")
        before = "" if len(left) == len(value) else self.comma
        for key in (k for k in value if k in left):
            inside = self.read(config, f"{before}{json.dumps(key, ensure_ascii=False)}{self.colon}")
            after = self.value(inside, value[key])
            end = after and self.members(after, value, left - {key})
            if end is not None:
                return end
        return None
