"""From the byte automaton to the token automaton: vocabulary trie, walks, contexts, mask rows.

VocabularyTrie -> walk each control -> contexts (frame, stack class) -> rows -> TokenTables
"""
