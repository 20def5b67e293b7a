"""Grammars: Lark's notation to a pushdown automaton over bytes.

    lark_tables   lark's own reader, LALR tables and lexer contexts, read in one place
    program       terminals as programs of prioritised threads over bytes
    scan          the contextual lexer as a deterministic automaton with a bounded memory of bytes to read again
    pushdown      lexer and parse table together, as controls and return addresses
    liveness      what can't finish is cut, per context; the result is a `ByteAutomaton`

`build_grammar` runs them. A text is accepted exactly when lark parses it (lark==1.3.1, parser="lalr", lexer="contextual").
"""

from maskwright.compiler.grammar.front import GrammarOptions, build_grammar

__all__ = ["GrammarOptions", "build_grammar"]
