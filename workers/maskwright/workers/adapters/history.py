"""Where sequences stand, by the tokens that they have generated.

Engines that reorder, fork or shorten sequences between steps (beam search, assisted decoding) tell a processor only
each row's tokens. A sequence's matcher is found by its generated tokens: the one of all but the last token is forked
and goes on by the last. The most recent ones are kept; one that's no longer there is replayed from the start.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from maskwright.workers.artifact import Artifact
from maskwright.workers.matcher import Matcher

Tokens = tuple[int, ...]


class History:
    """The matchers of sequences that start at one artifact's start. `kept`: how many are remembered."""

    def __init__(self, artifact: Artifact, stop_token_ids: Iterable[int] | None, kept: int) -> None:
        self.start = Matcher(artifact, stop_token_ids)
        self._kept = kept
        self._known: OrderedDict[Tokens, Matcher | None] = OrderedDict()

    def find(self, tokens: Tokens) -> Matcher | None:
        """The matcher after `tokens`; None when one of them wasn't legal. What follows a stop token (padding) changes
        nothing. The matcher is shared: fork it before going on. Cost: one accepted token when the sequence without its
        last token was asked for lately, else one for each token.
        """
        if not tokens:
            return self.start
        if tokens in self._known:
            self._known.move_to_end(tokens)
            return self._known[tokens]
        matcher = self._known[tokens[:-1]] if tokens[:-1] in self._known else self._replay(tokens[:-1])
        found = self._known[tokens] = _after(matcher, tokens[-1])
        while len(self._known) > self._kept:
            self._known.popitem(last=False)
        return found

    def _replay(self, tokens: Tokens) -> Matcher | None:
        matcher = self.start.fork()
        for token in tokens:
            if not matcher.is_terminated() and not matcher.accept_token(token):
                return None
        return matcher


def _after(matcher: Matcher | None, token: int) -> Matcher | None:
    if matcher is None or matcher.is_terminated():
        return matcher
    matcher = matcher.fork()
    return matcher if matcher.accept_token(token) else None
