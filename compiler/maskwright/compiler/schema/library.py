"""The frames that don't depend on a schema: what every vocabulary pack holds.

    string, key, char, number, integer, true, false, boolean, null
    whitespace:<bound>
    object:<style>, array:<style>      any object and array; style is `compact` or `flexible:<bound>`

`key` starts inside a key (after its quote, between characters) and ends with the closing quote. `char` is one character of
a string that takes more than one byte.
"""

from __future__ import annotations

from maskwright.compiler.automaton.explore import Frame
from maskwright.compiler.options import CompileOptions, Limits
from maskwright.compiler.schema.document import Document
from maskwright.compiler.schema.formula import TRUE, Space
from maskwright.compiler.schema.languages import Languages
from maskwright.compiler.schema.layout import root_nest
from maskwright.compiler.schema.lower import Lowering
from maskwright.compiler.schema.numbers import Integer
from maskwright.compiler.schema.strings import wide_char
from maskwright.compiler.schema.tables import TableFrame
from maskwright.compiler.schema.values import Values


def make_values(options: CompileOptions) -> Values:
    """Values of no schema in particular, without a library."""
    space, limits = Space(), Limits()
    languages = Languages(space, options, limits, None)
    return Values(Lowering(Document(True), space, languages), options, limits, None)


def library_frames(whitespace_bound: int) -> dict[str, Frame]:
    """Frames by entry name, for `explore_library`."""
    flexible = make_values(CompileOptions(max_whitespace=whitespace_bound))
    compact = make_values(CompileOptions(whitespace="compact"))
    out: dict[str, Frame] = {}
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
    out["key"] = flexible.key_tail((), b"")
    out["char"] = flexible.shared("char", lambda: TableFrame("char", wide_char()))
    return out
