"""The frames that don't depend on a schema: what every vocabulary pack holds.

    string, key, char, number, integer, true, false, boolean, null
    whitespace:<bound>
    at_most:<n>, inside_at_most:<n>    a string of at most n characters, entered before or after its quote
    chunk:<n>, exact:<n>               n characters of a string; see counts.py
    object:<style>, array:<style>      any object and array; style is `compact` or `flexible:<bound>`
    format:<name>                      a string of a format

`key` starts inside a key (after its quote, between characters) and ends with the closing quote. `char` is one
character of a string that takes more than one byte.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from maskwright.compiler.automaton.explore import Entry, External, Frame
from maskwright.compiler.automaton.ir import ByteAutomaton, bytes_after_return
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.schema.counts import BIG, CHUNK, closed_verdict
from maskwright.compiler.schema.document import Document
from maskwright.compiler.schema.formula import TRUE, Space
from maskwright.compiler.schema.languages import Languages
from maskwright.compiler.schema.layout import root_nest
from maskwright.compiler.schema.lower import Lowering
from maskwright.compiler.schema.numbers import Integer
from maskwright.compiler.schema.values import Values


def make_values(options: CompileOptions) -> Values:
    """Values of no schema in particular, without a library."""
    space, limits = Space(), Limits()
    languages = Languages(space, options, limits, None)
    return Values(Lowering(Document(True), space, languages), options, limits, None)


def library_frames(whitespace_bound: int, formats: Iterable[str] = ()) -> dict[str, Frame | Entry]:
    """Frames by entry name, for `explore_library`. Schemas with other formats than `formats` make their own frames."""
    flexible = make_values(CompileOptions(max_whitespace=whitespace_bound))
    compact = make_values(CompileOptions(whitespace="compact"))
    out: dict[str, Frame | Entry] = {}
    for values, style in ((flexible, f"flexible:{whitespace_bound}"), (compact, "compact")):
        nest = root_nest(values.options)
        out[f"object:{style}"] = values.object(TRUE, (), (), nest, "")
        out[f"array:{style}"] = values.array(TRUE, (), nest, "")
    out[f"whitespace:{whitespace_bound}"] = flexible.whitespace
    for word in ("true", "false", "boolean", "null"):
        out[word] = flexible.word(word)
    for name, frame in (
        ("string", flexible.string(TRUE, (), "")),
        ("number", flexible.number(TRUE, (), "")),
        ("integer", flexible.number(flexible.space.atom(Integer()), (), "")),
    ):
        assert frame is not None
        out[name] = frame
    out["key"] = flexible.key_frame
    out["char"] = flexible.counting("char")
    counter = flexible.counting(f"at_most:{CHUNK - 1}")
    for n in range(CHUNK):
        out[f"at_most:{n}"] = Entry(counter, ("quote", n))
        out[f"inside_at_most:{n}"] = Entry(counter, n)
    for size in (CHUNK, BIG):
        out[f"exact:{size}"] = flexible.counting(f"exact:{size}")
        out[f"chunk:{size}"] = flexible.counting(f"chunk:{size}")
    for name in formats:
        frame = flexible.string(flexible.languages.format(name), (), "")
        assert frame is not None
        out[f"format:{name}"] = frame
    return out


INSIDE = ("char", "exact chunk", "chunk", "big exact chunk", "big chunk")
"""Frames that return inside a string; chunks also with the string's end."""
ENDED = ("string", "object", "array")
"""Frames with a last byte of their own, after which anything may follow when a grammar embeds them."""


def followed_by(library: ByteAutomaton) -> dict[tuple[int, int], str]:
    """What may follow the library's returns (frame, verdict) where not everything may.

    "string": the rest of a string, of which the callers only count the characters. "json": JSON, after keys, white
    space, numbers and words.
    """
    closed: dict[int, Hashable] = {}
    for name, control in library.entries.items():
        if name.startswith("chunk"):
            closed[library.frame_of(control)] = closed_verdict(External(name), library)
    out: dict[tuple[int, int], str] = {}
    for frame in range(library.n_frames):
        info = library.frame_info(frame)
        for v in range(info.verdicts):
            if info.name in INSIDE and v != closed.get(frame):
                out[frame, v] = "string"
            elif info.name not in (*INSIDE, *ENDED) and not info.name.startswith("at most"):
                out[frame, v] = "json"
    return out


def json_follows(a: ByteAutomaton) -> bool:
    """Whether the library's frames that need JSON behind them have it in `a`: not so for a number that's embedded in
    something else. Such an automaton has to be built without a library.
    """
    assert a.base is not None
    needs = {f for (f, _), kind in followed_by(a.base).items() if kind == "json"}
    allowed = sum(1 << b for b in b' \t\r\n,:]}"')
    white = {a.base.frame_of(c) for name, c in a.base.entries.items() if name.startswith("whitespace")}
    after = bytes_after_return(a, a.first_symbol)
    return all(not bits & ~allowed for (f, _), bits in after.items() if f in needs - white)
