"""JSON as it's written: numbers keep their spelling, and a value is looked for in other spellings.

The canonical form has one order of keys and leaves some spellings of numbers out, so a blocked text of a valid
instance is looked at again: is another text of the same instance accepted?
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

from maskwright.compiler.automaton.ir import ByteAutomaton, Configuration, initial, may_end, step

MAX_DIGITS = 400


class Number(str):
    """A number's text."""

    __slots__ = ()


def read(text: str) -> Any:
    return json.loads(text, parse_float=Number, parse_int=Number)


def write(value: Any) -> str:
    """Compact but for a space after colons and commas; numbers as they were."""
    if isinstance(value, Number):
        return str.__str__(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{write(str(k))}: {write(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(write, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def plain(number: Number) -> str:
    """Without exponent and without zeros at a fraction's end; very long numbers stay."""
    value = Decimal(number)
    if abs(value.adjusted()) > MAX_DIGITS:
        return str.__str__(number)
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text


def accepts_in_other_spelling(automaton: ByteAutomaton, value: Any, numbers: bool) -> bool:
    """Whether a text of the value with its keys in some order, and with `numbers` also respelled, is accepted."""
    search = _Search(automaton, numbers)
    return any(may_end(automaton, end) for end in search.value([initial(automaton)], value))


class _Search:
    """Sets of configurations, so that every order and spelling is tried at once. For small values."""

    def __init__(self, automaton: ByteAutomaton, numbers: bool) -> None:
        self.automaton, self.numbers = automaton, numbers

    def read(self, configs: list[Configuration], text: str) -> list[Configuration]:
        out: dict[Configuration, None] = {}
        for config in configs:
            at: Configuration | None = config
            for byte in text.encode("utf-8", "surrogatepass"):
                at = step(self.automaton, at, byte) if at is not None else None
            if at is not None:
                out[at] = None
        return list(out)

    def value(self, configs: list[Configuration], value: Any) -> list[Configuration]:
        if isinstance(value, dict):
            return self.members(self.read(configs, "{"), value)
        if isinstance(value, list):
            configs = self.read(configs, "[")
            for i, item in enumerate(value):
                configs = self.value(self.read(configs, ", ") if i else configs, item)
            return self.read(configs, "]")
        found = self.read(configs, write(value))
        if self.numbers and isinstance(value, Number):
            found = list(dict.fromkeys([*found, *self.read(configs, plain(value))]))
        return found

    def members(self, configs: list[Configuration], value: dict[str, Any]) -> list[Configuration]:
        """By sets of keys written, smallest first."""
        keys = list(value)
        layers: dict[frozenset[str], list[Configuration]] = {frozenset(): configs}
        for _ in keys:
            following: dict[frozenset[str], list[Configuration]] = {}
            for written, reached in layers.items():
                for key in (k for k in keys if k not in written):
                    begin = f"{', ' if written else ''}{write(str(key))}: "
                    after = self.value(self.read(reached, begin), value[key])
                    if after:
                        following.setdefault(written | {key}, []).extend(after)
            layers = {k: list(dict.fromkeys(v)) for k, v in following.items()}
        return self.read([c for reached in layers.values() for c in reached], "}")
