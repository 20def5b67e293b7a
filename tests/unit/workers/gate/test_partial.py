"""The partial view: what is finished, where it stands, and never more than the text says."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from maskwright.workers.gate import PartialView

VALUES: list[Any] = [
    {"action": "refund", "items": [{"id": 1, "ok": True}, {"id": -2.5e3, "ok": None}], "note": 'é "x" \\ \u2028'},
    [],
    {},
    [[], [[]], {}, {"": {"": []}}],
    "text",
    -12.5,
    True,
    None,
    {"a/b": {"c~d": [0, 1]}},
]


def _locate(value: Any, pointer: str) -> tuple[Any, str]:
    """The container that a pointer leads into, and its last part."""
    parts = [p.replace("~1", "/").replace("~0", "~") for p in pointer.split("/")[1:]]
    for part in parts[:-1]:
        value = value[int(part)] if isinstance(value, list) else value[part]
    return value, parts[-1] if parts else ""


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("indent", [None, 2])
def test_whole_texts_are_their_value(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    partial = PartialView().feed(text + "\n")
    assert (partial.value, partial.complete, partial.broken, partial.pointer) == (value, True, None, None)
    assert partial.committed is False


@pytest.mark.parametrize("value", VALUES)
def test_every_prefix_shows_what_is_finished(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False)
    for end in range(len(text)):
        partial = PartialView().feed(text[:end])
        assert partial.broken is None
        assert _is_part(partial.value, value), text[:end]
        assert text[:end].endswith(partial.pending)
        if partial.pending and partial.value is not None and not partial.pending.startswith('"'):
            # A scalar that is being written isn't in the value yet.
            container, last = _locate(partial.value, partial.pointer or "")
            assert last not in container if isinstance(container, dict) else int(last) == len(container)


def _is_part(part: Any, whole: Any) -> bool:
    if part is None:
        return True
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(k in whole and _is_part(v, whole[k]) for k, v in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(_is_part, part, whole))
    return bool(part == whole)


def test_pieces_may_end_anywhere() -> None:
    data = json.dumps(VALUES, ensure_ascii=False).encode()
    choose = random.Random(2)
    for _ in range(50):
        view, at = PartialView(), 0
        while at < len(data):
            step = choose.randint(1, 9)
            partial = view.feed(data[at : at + step])
            at += step
        assert partial.value == VALUES
        assert partial.complete


def test_where_it_stands() -> None:
    view = PartialView()
    pieces = ['{"a/b": [1, ', '"x', '"', '], "c', '": ', "tr", "ue", "}"]
    seen = [(p.pointer, p.pending) for p in map(view.feed, pieces)]
    assert seen[:4] == [("/a~1b/1", ""), ("/a~1b/1", '"x'), (None, ""), ("", '"c')]
    assert seen[4:] == [("/c", ""), ("/c", "tr"), ("/c", "true"), (None, "")]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("x", 0), ('{"a" 1}', 5), ("[1 2]", 3), ("[1,]", 3), ('{"a":1,}', 7), ("{]", 1), ("[}", 1), ("01,", 2),
        ("nul]", 3), ("1 1", 2), ("{1", 1), ('"\\x"', 3), ("[1]]", 3), ("+1", 0), ('{"a":}', 5), ('["\x01"]', 3),
        ("[1e999,", 6), ('{"a":1,"a":2}', 9),
    ],
)  # fmt: skip
def test_broken_texts_stay_where_they_broke(text: str, place: int) -> None:
    view = PartialView()
    partial = view.feed(text)
    assert (partial.broken, partial.complete) == (place, False)
    assert view.feed('{"b": 2}').value == partial.value


def test_deep_texts_dont_recurse() -> None:
    view = PartialView()
    partial = view.feed("[" * 20_000 + "1")
    assert partial.pointer == "/0" * 20_000
    assert view.feed("]" * 20_000).complete
