"""The byte automaton: a deterministic pushdown automaton, its construction and its passes.

    explore(front end's frames) -> ByteAutomaton -> specialise -> minimise

Each pass is one file that takes and returns a `ByteAutomaton` (`ir.py`), which has a printer and a verifier.
"""
