"""What the canonical form leaves out of the texts of valid instances, and why: `DEPARTURES.md` is made from this.

Each departure shows a text that is left out and the text of the same instance that is accepted; a test holds them to
it. Verdicts on the texts that are left are exact, also under `not`, `oneOf` and `if`.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from maskwright.compiler.schema.formats import FORMATS


@dataclass(frozen=True)
class Departure:
    """`left_out` is valid JSON text of a valid instance, `instead` the text of an equal instance that is accepted (of
    another instance where `other` says so). `options` are those of `CompileOptions`."""

    title: str
    schema: Any
    left_out: str
    instead: str
    why: str
    other: bool = False
    options: tuple[tuple[str, Any], ...] = ()


DEPARTURES = (
    Departure(
        "Keys come in the schema's order",
        {"type": "object", "properties": {"a": {}, "b": {}}},
        '{"b": 1, "a": 2}',
        '{"a": 2, "b": 1}',
        "An automaton that takes n properties in any order has a state for each set of them. The order is that of "
        "`properties`, then of what `$ref`, `allOf`, `anyOf`, `oneOf`, `if` and dependents bring, then of names that "
        "are only mentioned, then undeclared keys. Several schemas that judge a member or an item come in that order "
        "too, without those that the keys before have ruled out (so after a discriminator a value has its own branch's "
        'order). `property_order="any"` takes every order where the limit on states allows it.',
    ),
    Departure(
        "Keys are spelled with the fewest escapes",
        {"type": "object", "properties": {"a": {"type": "null"}}},
        '{"\\u0061": null}',
        '{"a": null}',
        "So that an escaped spelling of a declared name can't pass for another key.",
    ),
    Departure(
        "Strings of `enum` and `const` too",
        {"enum": ["a/b"]},
        '"a\\/b"',
        '"a/b"',
        "Every spelling of every member takes 5.6 times the states, and says nothing more. A string that merely may be "
        "a member (`anyOf` of an `enum` and a free string) is spelled so until it differs from all members. Other "
        "strings may use any escape, and `pattern`, lengths and `format` judge the decoded characters.",
    ),
    Departure(
        "No lone surrogates",
        {"type": "string"},
        '"\\ud800"',
        '"\\ufffd"',
        "They have no UTF-8: most readers fail on them or replace them.",
        other=True,
    ),
    Departure(
        "An integer has no fraction and no exponent",
        {"type": "integer"},
        "3.0",
        "3",
        "Readers in many languages make a float of `3.0`. Up to draft 4 it isn't an integer anyway.",
    ),
    Departure(
        "No exponent where a number is judged",
        {"minimum": 100},
        "1e3",
        "1000",
        "With exponents the numbers above a bound aren't a regular set. Judged means: under bounds, `multipleOf`, "
        "numbers of `enum` and `const`, or `integer` beside something else. Free numbers may use exponents.",
    ),
    Departure(
        "Undeclared keys may repeat, and each is judged and counted",
        {"maxProperties": 1},
        '{"x": 1, "x": 2}',
        '{"x": 2}',
        "An automaton can't remember undeclared keys, so they may repeat in the text, and each counts for "
        "`maxProperties`. `minProperties` counts all of them as one, and a minimum that needs more is residual. Each "
        "value is judged, where most readers keep the last. So where a failing value counts for the text (`not`, "
        "`oneOf`, `if`), one that another value may have replaced is undecided: "
        '`{"not": {"additionalProperties": {"type": "null"}}}` takes `{"y": null, "x": 1}`, and not '
        '`{"x": 1, "y": null}`. A declared key comes once.',
    ),
    Departure(
        "White space stands only between tokens, at most 16 bytes of it in a row",
        {"type": "array"},
        "[" + " " * 17 + "]",
        "[" + " " * 16 + "]",
        "So that a run always ends. None stands before or after the value. `max_whitespace` is the bound; "
        '`whitespace="compact"` allows none, an integer n exactly the layout of `json.dumps(value, indent=n)`.',
    ),
    Departure(
        "Approximated formats are narrower",
        {"format": "email"},
        '"\\"a b\\"@example.com"',
        '"a.b@example.com"',
        "The formats named below aren't regular, or would take too many states. A text that certainly has the format "
        "is judged to have it, one that certainly hasn't to have it not, and what lies between is left out, in "
        "negative places too.",
        other=True,
    ),
    Departure(
        "Formats count in every draft",
        {"$schema": "http://json-schema.org/draft-07/schema#", "format": "uuid"},
        '"none"',
        '"2eb8aa08-aa98-11ea-b4aa-73b441d16380"',
        "A draft lets formats that it doesn't know pass. Writers of older drafts use later formats all the same, and "
        'mean them. `formats="annotate"` enforces none.',
        other=True,
    ),
)


def paragraph(text: str) -> list[str]:
    """A paragraph's lines."""
    return textwrap.wrap(" ".join(text.split()), 118, break_long_words=False, break_on_hyphens=False)


def page() -> str:
    """`DEPARTURES.md`."""
    return "\n".join(_lines())


def _lines() -> Iterable[str]:
    yield "# Departures from JSON Schema"
    yield ""
    yield "<!-- Made by `make pages` from departures.py and formats.py: change those. -->"
    yield ""
    yield from paragraph(
        """A compiled schema accepts exactly the valid instances, each in one canonical form. This page lists the texts
        of valid instances that the form leaves out. Nothing invalid is ever let in, and the verdict on every text that
        is left is exact, also under `not`, `oneOf` and `if`.
        Numbers are judged as the decimals that are written, where a validator with binary floats rounds them first:
        `0.29999999999999999999` is below 0.3. Which keywords are enforced: [SUPPORT.md](SUPPORT.md)."""
    )
    for d in DEPARTURES:
        yield from ("", f"## {d.title}", "", *paragraph(d.why), "")
        yield "| schema | left out | accepted |"
        yield "|---|---|---|"
        shown = (json.dumps(d.schema, ensure_ascii=False), _short(d.left_out), _short(d.instead))
        yield "| " + " | ".join(f"`{cell}`" for cell in shown) + " |"
    yield from ("", "### Approximated formats", "", "| format | left out |", "|---|---|")
    for name, known in FORMATS.items():
        if known.narrower:
            yield f"| `{name}` | {known.narrower.replace('|', '&#124;')} |"
    yield ""


def _short(text: str) -> str:
    return text if len(text) < 60 else f"{text[:4]}…{text[-4:]}"
