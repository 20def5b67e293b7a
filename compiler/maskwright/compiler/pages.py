"""The pages that are made from tables: `DIAGNOSTICS.md` and `LIMITS.md`, beside this file.

    python -m maskwright.compiler.pages        writes both; LIMITS.md keeps the costs that it holds
    python -m tests.bench bench_limits         measures the costs and writes LIMITS.md with them

Tests notice a page that doesn't fit its table. Measured costs, and the messages of examples, aren't compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

from maskwright.compiler.diagnostic_codes import CODES, Entry, Example, run_example
from maskwright.compiler.diagnostics import HINTS, Code
from maskwright.compiler.options import (
    MAX_DEFAULT_DIGITS,
    MAX_DEFAULT_ITEMS,
    MAX_DEFAULT_LENGTH,
    MAX_NESTING,
    PROFILES,
    RESOURCE_LIMITS,
    limit_table,
)

HERE = Path(__file__).parent
DIAGNOSTICS, LIMITS = HERE / "DIAGNOSTICS.md", HERE / "LIMITS.md"
NOT_MEASURED = "—"
COLUMNS = 8
"""Of the table of limits; the last holds what was measured."""

FIXED: Mapping[str, tuple[str, str, str]] = {
    "number_digits": ("schema.check", "MAX_DIGITS", "digits of a number in a schema, written out"),
    "multiple_of": ("schema.numbers", "MAX_DIVISOR", "remainders that a `multipleOf` tells apart"),
    "branches": ("schema.unevaluated", "MAX_CHOICES", "in stage `unevaluated`: alternatives that decide it"),
    "lookarounds": ("regex.survey", "MAX_LOOKS", "of one pattern"),
    "lookaround_nesting": ("regex.survey", "MAX_LOOK_NESTING", "lookarounds inside one another"),
    "lookaround_terms": ("regex.positions", "MAX_TERMS", "conditions of lookarounds at one place"),
    "lookaround_threads": ("regex.lookaround", "MAX_THREADS", "ways to be inside lookarounds at once"),
    "positions": ("regex.survey", "MAX_POSITIONS", "characters and classes of a pattern, repeats written out"),
    "visits": ("regex.survey", "MAX_VISITS", "nodes of a pattern, repeats written out"),
    "set_bytes": ("regex.table", "MAX_SET_BYTES", "sets of positions while a pattern is made deterministic"),
    "instructions": ("grammar.program", "MAX_INSTRUCTIONS", "of the terminals of a Lark grammar"),
    "grammar_rules": ("grammar.lark_tables", "MAX_RULES", "alternatives of a Lark grammar, repeats written out"),
    "template_uses": ("grammar.templates", "MAX_USES", "uses of templates with different arguments"),
    "template_argument": ("grammar.templates", "MAX_ARGUMENT", "names in one argument of a template, written out"),
    "pushes": ("tokens.walk", "ARENA", "symbols that one token pushes"),
    "vocabulary_bytes": ("vocabulary.faults", "MAX_FILE_BYTES", "a tokenizer file, decompressed"),
    "vocabulary_tokens": ("vocabulary.faults", "MAX_TOKENS", "token ids"),
    "vocabulary_table_bytes": ("vocabulary.faults", "MAX_TABLE_BYTES", "bytes of all tokens"),
    "token_bytes": ("vocabulary.faults", "MAX_TOKEN_BYTES", "bytes of one token"),
    "decoder_steps": ("vocabulary.decoders", "MAX_STEPS", "steps of a tokenizer's decoder"),
    "decoder_nesting": ("vocabulary.decoders", "MAX_NESTING", "decoders inside one another"),
}
"""Limits that no one can choose: where the constant is, and what it counts."""


def diagnostics_page() -> str:
    """The text of DIAGNOSTICS.md. Costs the compilation of every example."""
    out = [
        "# Diagnostics",
        "",
        "Made from `diagnostic_codes.py` by `python -m maskwright.compiler.pages`. A code's meaning never changes.",
        "",
        "Everything that a user is told has one shape: `code`, `severity` (error, warning, note), `message`, `source` "
        "(the pattern, where it's about one inside a schema), `pointer` (RFC 6901) or `span` (start and end in "
        "characters), `detail` (every value in the message) and `hint`, the next step. LIMIT_EXCEEDED has "
        "`limit_name`, `limit`, `observed` and `stage` in its detail. Independent faults are reported together.",
        "",
        "Refused for a reason of the source's own (cached by the service): every error but LIMIT_EXCEEDED by "
        f"{' or '.join(f'`{name}`' for name in sorted(RESOURCE_LIMITS))}, which depend on the machine.",
        "",
    ]
    for code in Code:
        out += _code(code, CODES[code])
    return "\n".join(out)


def _code(code: Code, entry: Entry) -> Iterator[str]:
    yield f"## {code.value}"
    yield ""
    yield f"{_meaning(code)}"
    yield ""
    yield f"**Cure.** {entry.cure}"
    yield ""
    for example in entry.examples:
        yield from _example(example)


def _example(example: Example) -> Iterator[str]:
    given = [f"{name}={value!r}" for name, value in (*example.options.items(), *example.limits.items())]
    if example.tokens:
        given.append("tokens " + ", ".join(repr(t.decode()) for t in example.tokens))
    yield f"{example.kind}{', ' if given else ''}{', '.join(given)}:"
    yield ""
    yield "```"
    yield example.source.rstrip("\n")
    yield "```"
    yield ""
    for diagnostic in run_example(example):
        yield f"> {diagnostic}"
        yield ">"
    yield ""


def _meaning(code: Code) -> str:
    """The text under the code's name in `Code`."""
    source = (HERE / "diagnostics.py").read_text(encoding="utf-8")
    found = re.search(rf'^    {code.value} = "{code.value}"\n    """(.*?)"""', source, re.DOTALL | re.MULTILINE)
    return " ".join(found[1].split()) if found else ""


def limits_page(costs: Mapping[str, str]) -> str:
    """The text of LIMITS.md. `costs`: what was measured at each limit's default, by name."""
    out = [
        "# Limits",
        "",
        "Made from `options.py` by `python -m maskwright.compiler.pages`; the last column by "
        "`python -m tests.bench bench_limits`, on one core, with the demo vocabulary.",
        "",
        "A limit decides only whether a compilation is refused; it's checked inside the pass that spends it. Three "
        "profiles are named: `strict` for sources of strangers, `default` for a shared service, `large` for a batch of "
        'one\'s own: `Limits.profile("strict")`, `--limits strict`, `limits_profile` of a request. '
        "`--limit NAME=VALUE` sets one.",
        "",
        "| limit | strict | default | large | unit | what | checked in | cost at the default |",
        "|---|--:|--:|--:|---|---|---|---|",
    ]
    for name, limit in limit_table().items():
        values = " | ".join(_shown(limit[profile], limit["unit"]) for profile in PROFILES)
        cost = costs.get(name, NOT_MEASURED)
        out.append(f"| `{name}` | {values} | {limit['unit']} | {limit['meaning']} | {limit['stage']} | {cost} |")
    return "\n".join([*out, *_next_steps(), *_fixed(), *_imposed(), ""])


def _shown(value: float, unit: str) -> str:
    """Whole mebibytes as such, other numbers with commas."""
    if unit == "bytes" and value >= 1 << 20 and value % (1 << 20) == 0:
        return f"{int(value) >> 20:,} MiB"
    return f"{value:,.10g}"


def _next_steps() -> Iterator[str]:
    yield ""
    names = "` and `".join(sorted(RESOURCE_LIMITS))
    yield f"`{names}` are resources: passing them says nothing about the source, so the service"
    yield "answers RESOURCE_EXHAUSTED and doesn't remember it. All others are refusals, and remembered."
    yield ""
    yield "## What to do"
    yield ""
    for name in limit_table():
        yield f"- `{name}`: {HINTS[name]}"


def _fixed() -> Iterator[str]:
    yield ""
    yield "## Fixed"
    yield ""
    yield "On constructions whose cost grows faster than their source. No option changes them."
    yield ""
    yield "| name | value | what |"
    yield "|---|---|---|"
    for name, (module, constant, meaning) in FIXED.items():
        value = getattr(import_module(f"maskwright.compiler.{module}"), constant)
        yield f"| `{name}` | {_shown(value, name.rpartition('_')[2])} | {meaning} |"


def _imposed() -> Iterator[str]:
    yield ""
    yield "## Bounds on the length of texts"
    yield ""
    yield "These are options: they change the language and are part of an artifact's key. Without them texts may be"
    yield "without bound; the report says where (`bounded`, `max_bytes`, `unbounded`)."
    yield ""
    yield "| option | at most | cost |"
    yield "|---|--:|---|"
    for name, most, cost in _IMPOSED:
        yield f"| `{name}` | {most:,} | {cost} |"


_IMPOSED = (
    ("max_nesting", MAX_NESTING, "the frames of recursive parts once for each depth"),
    (
        "default_max_length",
        MAX_DEFAULT_LENGTH,
        "about 150 states for a free string; under a pattern its states times the bound",
    ),
    (
        "default_max_items",
        MAX_DEFAULT_ITEMS,
        "about 200 states for an array; six for each undeclared member, of which at most 256 may come",
    ),
    ("default_max_digits", MAX_DEFAULT_DIGITS, "three states for each digit"),
)


def measured(page: str) -> dict[str, str]:
    """The costs that a page holds."""
    rows = (line.split(" | ") for line in page.splitlines() if line.startswith("| `"))
    return {r[0].strip("| `"): r[-1].rstrip(" |") for r in rows if len(r) == COLUMNS}


def without_messages(page: str) -> str:
    """A page of diagnostics without what its examples gave: wordings may change more often than the page."""
    return "\n".join(line for line in page.splitlines() if not line.startswith(">"))


def main() -> None:
    DIAGNOSTICS.write_text(diagnostics_page(), encoding="utf-8")
    costs = measured(LIMITS.read_text(encoding="utf-8")) if LIMITS.exists() else {}
    LIMITS.write_text(limits_page(costs), encoding="utf-8")


if __name__ == "__main__":
    main()
