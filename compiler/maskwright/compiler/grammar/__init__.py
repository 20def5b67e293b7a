"""Grammars: Lark's notation to a pushdown automaton over bytes.

    lark_tables   lark's own reader, LALR tables and lexer contexts, read in one place
    program       terminals as programs of prioritised threads over bytes
    scan          the contextual lexer as a deterministic automaton with a bounded memory of bytes to read
                  again
    pushdown      lexer and parse table together, as controls and return addresses
    liveness      what can't finish is cut, per context; the result is a `ByteAutomaton`

`build_grammar` runs them. A text is accepted exactly when lark parses it (lark==1.3.1, parser="lalr",
lexer="contextual").

What the automaton uses of `automaton/ir.py`: one frame; edges with any number of pushes; returns that push
(often the symbol that was popped); chains of final controls, one for each further symbol that a reduction
pops; accepting controls with edges, where the edge wins although its byte may also follow the return (a
lexeme is as long as the lexer makes it). It's live in every context already: `specialise` isn't run on it.
"""

from maskwright.compiler.grammar.front import GrammarOptions, GrammarResult, build_grammar

__all__ = ["GrammarOptions", "GrammarResult", "build_grammar"]
