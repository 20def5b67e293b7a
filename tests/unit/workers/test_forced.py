"""Forced texts and the tokens put down for them; what may follow, in bytes and in words."""

from __future__ import annotations

import json

import pytest
from compiled import PIECES, STOP, lark, regex, schema, token, vocabulary

from maskwright.workers import Artifact, Matcher
from maskwright.workers.explain import describe_bytes, instance_path

RECORD = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "kind": {"enum": ["refund", "ask"]}},
    "required": ["name", "kind"],
    "additionalProperties": False,
}


def spelled(tokens: list[int]) -> bytes:
    return b"".join(vocabulary().tokens[t] or b"" for t in tokens)


def expected_by_walking(m: Matcher) -> bytes:
    out = bytearray()
    for byte in range(256):
        fork = m.fork()
        if fork.accept_string(bytes((byte,))):
            out.append(byte)
    return bytes(out)


@pytest.mark.parametrize(
    ("artifact", "text"),
    [
        (schema(RECORD), '{"name": "a\\u0041é", "kind": "ask"}'),
        (schema({"type": "array", "items": {"$ref": "#"}}), "[[],[[ ]]]"),
        (schema({"type": ["number", "null"]}), "-10.5e3"),
        (regex(r"(ab|abc|é)*x{3}"), "abcabéxxx"),
        (lark('start: sum\nsum: atom | sum "+" atom\natom: /[0-9]+/ | "(" sum ")"'), "(1+2)+(((3)))"),
    ],
)
def test_expected_bytes_and_forced_texts_are_brute_force(artifact: Artifact, text: str) -> None:
    m = Matcher(artifact)
    for byte in [*text.encode(), None]:
        assert m.expected_bytes() == expected_by_walking(m)
        forced, fork = m.find_jump_forward_bytes(), m.fork()
        for b in forced:
            assert fork.expected_bytes() == bytes((b,)) and not fork.is_accepting()
            assert fork.accept_string(bytes((b,)))
        assert len(fork.expected_bytes()) != 1 or fork.is_accepting()
        if byte is not None:
            assert m.accept_string(bytes((byte,)))
    assert m.is_accepting()


def test_a_forced_text_is_whole_characters() -> None:
    m = Matcher(regex("(aé|aè)x"))
    assert m.find_jump_forward_bytes() == b"a\xc3"
    assert m.find_jump_forward_string() == "a"


def test_a_forced_text_that_begins_within_a_character() -> None:
    m, asked = Matcher(regex("a(😀b😁|😀b😂)")), []

    def encode(text: str) -> list[int]:
        asked.append(text)
        return list(text.encode())

    start, end = "a😀b".encode(), "😁".encode()[:3]
    assert m.find_jump_forward_bytes() == start + end and m.find_jump_forward_string() == "a😀b"
    assert m.find_jump_forward_tokens(encode) == list(start) and asked.pop() == "a😀b"
    assert m.accept_string(start[:3])  # two bytes of the emoji have been written
    assert m.find_jump_forward_bytes() == start[3:] + end and m.find_jump_forward_string() == ""
    assert m.find_jump_forward_tokens(encode) == list(start[3:]) and asked.pop() == "b"
    assert m.find_jump_forward_tokens() == list(start[3:] + end)
    assert m.accept_string(start[3:]) and m.find_jump_forward_string() == ""
    assert m.find_jump_forward_tokens(encode) == [] and not asked
    assert m.accept_string(end) and m.find_jump_forward_bytes() == b""


def test_nothing_is_put_down_for_what_no_token_spells() -> None:
    """Stop tokens that are text are no text, so that nothing spells the comma."""
    m = Matcher(regex("ab,c"), [ord(",")])
    assert m.find_jump_forward_string() == "ab,c" and m.find_jump_forward_tokens() == []


def test_nothing_is_forced_where_the_text_may_end_or_has_ended() -> None:
    m = Matcher(regex("ab(cd)?"))
    assert m.find_jump_forward_string() == "ab"
    assert m.accept_string("ab") and m.find_jump_forward_string() == ""
    assert m.accept_token(STOP)
    assert m.find_jump_forward_string() == "" and m.find_jump_forward_tokens() == [] and m.expected_bytes() == b""


def test_no_boundary_is_put_where_a_token_may_span_the_end() -> None:
    m = Matcher(schema(RECORD, whitespace="compact"))
    assert m.find_jump_forward_string() == '{"name":"'
    # '":"' ends with the forced text and nothing legal reaches beyond it, but '"' begins '""' (an empty name).
    assert spelled(m.find_jump_forward_tokens()) == b'{"name'
    assert m.accept_string('{"name":"x')
    assert m.find_jump_forward_tokens() == []
    assert m.accept_string('"')
    assert m.find_jump_forward_string() == ',"kind":"'
    assert spelled(m.find_jump_forward_tokens()) == b',"kind":"'  # no token that begins with a quote is legal next


def test_a_token_that_is_not_legal_spans_nothing() -> None:
    # '""' and '"}' begin with the forced quote, and aren't legal before "r" or "a".
    m = Matcher(schema({"enum": ["refund", "ask"]}))
    assert m.find_jump_forward_string() == '"'
    assert m.find_jump_forward_tokens() == [token('"')]
    assert m.accept_string('"r')
    assert m.find_jump_forward_string() == 'efund"'
    assert spelled(m.find_jump_forward_tokens()) == b'efund"'


def test_tokens_are_the_fewest_or_the_callers() -> None:
    m = Matcher(schema({"const": "name name refund"}))
    assert m.find_jump_forward_string() == '"name name refund"'
    fewest = m.find_jump_forward_tokens()
    assert [PIECES[t - 256] if t > 255 else chr(t) for t in fewest] == ['"', "name", " ", "name", " ", "refund", '"']
    by_bytes = m.find_jump_forward_tokens(lambda text: list(text.encode()))
    assert by_bytes == list(b'"name name refund"')
    for wrong in ([], [token("x")], list(b'"name'), [*b'"name name refund"', 1]):
        with pytest.raises(ValueError):
            m.find_jump_forward_tokens(lambda _, wrong=wrong: wrong)  # type: ignore[misc]


@pytest.mark.parametrize("text", ["", '{"name', '{"name": "x", "k', '{"name": "x", "kind": "as'])
def test_put_down_tokens_are_accepted_and_any_continuation_is_still_there(text: str) -> None:
    """Whatever token the model would have drawn here either is the first one put down or spells its way through it."""
    m = Matcher(schema(RECORD))
    assert m.accept_string(text)
    tokens = m.find_jump_forward_tokens()
    assert m.validate_tokens(tokens) == len(tokens)
    assert m.find_jump_forward_bytes().startswith(spelled(tokens))


def test_explanations() -> None:
    m = Matcher(schema(RECORD))
    told = m.explain()
    assert (told.frame, told.pointer, told.may_end, told.terminated, told.steps) == ("root", "", False, False, 0)
    assert told.path == "" and told.forced == "{" and '{"name"' in told.alternatives
    assert str(told) == "in root from the root, expected '{\"name\"' or white space"
    assert m.accept_string('{"name": "x", "kind": ') and m.accept_string('"')
    told = m.explain()
    assert told.stack[0] == ("root", "") and told.stack[-1] == ("enum", "/properties/kind")
    assert (told.pointer, told.frame) == ("/properties/kind", "enum") == (m.where().pointer, m.where().frame)
    assert told.alternatives == ('ask"', 'refund"') and told.expected == b"ar" and told.steps == 2
    assert str(told) == "in enum at /kind from /properties/kind, expected 'ask\"' or 'refund\"'"
    assert m.accept_string('ask"}')
    assert m.explain().may_end and str(m.explain()).endswith("expected the end of the text")
    assert m.accept_token(STOP)
    assert m.explain().terminated and str(m.explain()) == "the text has ended"


def test_alternatives_begin_with_the_character_that_has_begun() -> None:
    m = Matcher(schema({"enum": ["日本語", "日本人", "é"]}))
    assert m.accept_string('"') and m.explain().alternatives == ('é"', "日本")
    assert m.accept_string("日本".encode()[:4]) and str(m.explain()).endswith("expected '本人\"' or '本語\"'")
    assert m.accept_string("日本語".encode()[4:7]) and m.explain().alternatives == ('語"',)
    assert m.accept_string("日本語".encode()[7:]) and m.explain().alternatives == ('"',)


def test_a_shared_frame_is_told_with_the_pointer_around_it() -> None:
    m = Matcher(schema({"properties": {"a": {"type": "array", "items": {"type": "string"}, "minItems": 1}}}))
    assert m.accept_string('{"a":["x')
    told = m.explain()
    assert told.frame == "string" and told.pointer == "/properties/a"
    assert told.alternatives == () and told.path == "/a/0"
    assert str(told).startswith("in string at /a/0 from /properties/a, expected any character")
    assert Matcher(regex("a")).explain().path is None


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", ""),
        ("12", ""),
        ("[", "/0"),
        ('[1, "a,]", {', "/2"),
        ('[[], [1,2', "/1/1"),
        ('{"a": {"b', "/a"),
        ('{"a": {"b"', "/a"),
        ('{"a": {"b":', "/a/b"),
        ('{"a": {"b": "x\\"{', "/a/b"),
        ('{"a": {"b": 1}, "c" : [true', "/c/0"),
        ('{"a": {"b": 1}, ', ""),
        ('{"a": {"b": 1}', "/a"),
        ('{"~/\\u00e9\\"": [', "/~0~1é\"/0"),
        ('{"": {"":', "//"),
        ('{"a": "\\', "/a"),
    ],
)
def test_the_path_in_the_text(text: str, path: str) -> None:
    assert instance_path(text.encode()) == path


def test_bytes_in_words() -> None:
    assert list(describe_bytes(b"0123456789-")) == ["a digit", "'-'"]
    assert list(describe_bytes(bytes(range(0x20, 0x7F)))) == ["any character", "'\"'", "'\\\\'"]
    assert list(describe_bytes(b" \n\x01ab")) == ["byte 0x01", "line feed", "space", "'a'", "'b'"]
    assert list(describe_bytes(bytes(range(0x80, 0xC0)))) == ["the rest of a character that isn't ASCII"]
    every = json.dumps(list(describe_bytes(bytes(range(256)))))
    assert "any character" in every and "0x80" not in every
