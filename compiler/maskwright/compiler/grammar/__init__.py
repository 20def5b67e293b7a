"""Grammars: Lark's notation to a pushdown automaton over bytes.

    embed         `%json` and `%regex` values are taken out and compiled on their own; special tokens become symbols
    lark_tables   lark's own reader, LALR tables and lexer contexts, read in one place
    merge_states  LR states that do the same are one
    conflicts     what may surprise in them, as diagnostics
    program       terminals as programs of prioritised threads over bytes
    scan          the contextual lexer as a deterministic automaton with a bounded memory of bytes to read
                  again
    pushdown      what the parser does with each byte, on the part of its stack that's known
    assemble      that as a machine of controls and return addresses
    liveness      what can't finish is cut, per context
    emit          the result is a `ByteAutomaton`

`build_grammar` runs them. `build_tools` (tools.py) and `build_gbnf` (gbnf.py) are front ends of their own
onto frames, `explore` and `specialise`. A text is accepted exactly when lark parses it (lark==1.3.1,
parser="lalr", lexer="contextual").

What the automaton uses of `automaton/ir.py`: edges with any number of pushes; returns that push
(often the symbol that was popped); chains of final controls, one for each further symbol that a reduction
pops; accepting controls with edges, where the edge wins although its byte may also follow the return (a
lexeme is as long as the lexer makes it). It's live in every context already: `specialise` isn't run on it.
"""

from maskwright.compiler.grammar.front import GrammarOptions, GrammarResult, build_grammar
from maskwright.compiler.grammar.gbnf import build_gbnf
from maskwright.compiler.grammar.tool_formats import FORMATS, ToolFormat
from maskwright.compiler.grammar.tools import ToolOptions, ToolsResult, build_tools

__all__ = [
    "FORMATS",
    "GrammarOptions",
    "GrammarResult",
    "ToolFormat",
    "ToolOptions",
    "ToolsResult",
    "build_gbnf",
    "build_grammar",
    "build_tools",
]
