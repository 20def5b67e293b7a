"""The support page, from the keyword tables: `SUPPORT.md`.

`measured` are the counts of the conformance runner's baseline: draft folder -> file -> category -> number of tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from maskwright.compiler.schema.departures import paragraph
from maskwright.compiler.schema.formats import FORMATS
from maskwright.compiler.schema.keywords import DRAFTS, KEYWORDS, RESIDUAL, Draft

Measured = Mapping[str, Mapping[str, Mapping[str, int]]]

_FILES = {
    "$ref": ("ref.json", "refRemote.json", "infinite-loop-detection.json", "optional/refOfUnknownKeyword.json"),
    "$dynamicRef": ("dynamicRef.json", "optional/dynamicRef.json"),
    "$recursiveRef": ("recursiveRef.json",),
    "$id": ("id.json", "optional/id.json"),
    "id": ("optional/id.json",),
    "$anchor": ("anchor.json", "optional/anchor.json"),
    "$defs": ("defs.json",),
    "$vocabulary": ("vocabulary.json",),
    "$schema": ("optional/cross-draft.json", "optional/no-schema.json"),
    "if": ("if-then-else.json",),
    "then": ("if-then-else.json",),
    "else": ("if-then-else.json",),
    "format": ("format.json", "optional/format-assertion.json"),
    "contentMediaType": ("content.json",),
    "contentEncoding": ("content.json",),
    "contentSchema": ("content.json",),
    "dependencies": ("dependencies.json", "optional/dependencies-compatibility.json"),
    "pattern": ("pattern.json", "optional/ecmascript-regex.json", "optional/non-bmp-regex.json"),
    "type": ("type.json", "optional/zeroTerminatedFloats.json"),
}
"""Files of the suite by keyword, where they aren't called after it."""


def page(measured: Measured | None = None) -> str:
    """`SUPPORT.md`."""
    return "\n".join(_lines(measured or {}))


def _lines(measured: Measured) -> Iterable[str]:
    yield "# JSON Schema: what is supported"
    yield ""
    yield "<!-- Made by `make pages` from keywords.py, formats.py and the conformance baseline: change those. -->"
    yield ""
    yield from paragraph(
        """A keyword is *enforced* (the automaton judges it), an *annotation* (without effect on validity), or
        *residual* (an automaton can't express it). A residual keyword refuses the schema, naming its place; with
        `residual="allow"` it is left to validation after decoding and recorded. A keyword in no table is an
        annotation, and reported. A dash: the draft doesn't know the keyword. What the canonical form leaves out of
        the valid texts is in [DEPARTURES.md](DEPARTURES.md)."""
    )
    yield ""
    yield from paragraph(
        """Figures are tests of the official JSON Schema Test Suite that are judged exactly, of those in the keyword's
        own files; the rest are narrower by the canonical form or residual, none is wrong (`make conformance`)."""
    )
    yield from ("", "## Keywords", "")
    yield f"| keyword | {' | '.join(DRAFTS)} |"
    yield "|---" * (len(DRAFTS) + 1) + "|"
    for name in KEYWORDS:
        cells = (_cell(name, draft, measured.get(f"draft{title}", {})) for title, draft in DRAFTS.items())
        yield f"| `{name}` | {' | '.join(cells)} |"
    yield from ("", "## Residual", "", "| keyword | where |", "|---|---|")
    yield from (f"| `{name}` | {when} |" for name, when in RESIDUAL.items())
    yield from ("", "## Formats", "")
    yield from paragraph(
        """Judged with `formats="enforce"` (the default) and where a dialect asserts formats. Others are annotations,
        and reported."""
    )
    yield ""
    yield f"| format | judged | {' | '.join(DRAFTS)} |"
    yield "|---" * (len(DRAFTS) + 2) + "|"
    for name, known in FORMATS.items():
        counts = (
            _exact(measured.get(f"draft{title}", {}), (f"optional/format/{name}.json",)) or "" for title in DRAFTS
        )
        yield f"| `{name}` | {'narrower' if known.narrower else 'exact'} | {' | '.join(counts)} |"
    yield from _totals(measured)
    yield ""


def _cell(name: str, draft: Draft, files: Mapping[str, Mapping[str, int]]) -> str:
    known = KEYWORDS[name]
    if not known.known(draft):
        return "—"
    counted = _exact(files, _FILES.get(name, (f"{name}.json",)))
    return f"{known.treatment} {counted}".strip()


def _exact(files: Mapping[str, Mapping[str, int]], names: Iterable[str]) -> str:
    counts = Counter[str]()
    for name in names:
        counts.update(files.get(name, {}))
    return f"{counts['exact']}/{counts.total()}" if counts else ""


def _totals(measured: Measured) -> Iterable[str]:
    if not measured:
        return
    categories = ("exact", "narrower", "residual", "refused", "wrong")
    yield from ("", "## The official suite", "")
    yield 'Required and optional files with `formats="annotate"`, optional/format files with `formats="enforce"`.'
    yield ""
    yield f"| draft | tests | {' | '.join(categories)} |"
    yield "|---" * (len(categories) + 2) + "|"
    for draft, files in measured.items():
        counts = Counter[str]()
        for found in files.values():
            counts.update(found)
        yield f"| {draft.removeprefix('draft')} | {counts.total()} | {' | '.join(str(counts[c]) for c in categories)} |"
