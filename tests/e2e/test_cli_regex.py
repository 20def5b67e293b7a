"""`maskwright regex`: what it shows, what it draws, how it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from maskwright.registry.cli import main
from maskwright.registry.cli.excerpts import point_at


def test_shows_tree_size_and_members(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["regex", "a|é{2}"]) == 0
    out = capsys.readouterr().out
    for part in ("repeat 2..2", "3 over characters, 5 over UTF-8 bytes", "at most 2 characters", "'a', 'éé'"):
        assert part in out


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["regex", "(x+x+)+y", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert fields["states"] == {"chars": 4, "utf8": 4, "json": 19}
    assert (fields["shortest"], fields["longest"]) == (["xxy", "xxxy", "xxxxy"], None)
    assert fields["tree"][0] == "concat  0..8"
    assert main(["regex", "a^b", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["empty"] is True


def test_dialect_and_search(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["regex", r"(?i)a\Z", "--dialect", "python", "--search", "--json"]) == 0
    fields = json.loads(capsys.readouterr().out)
    assert (fields["dialect"], fields["mode"], len(fields["shortest"])) == ("python", "search", 3)
    assert all(m.lower().endswith("a") for m in fields["shortest"])
    assert main(["regex", r"(?i)a\Z"]) == 1


def test_drawings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dot, svg = tmp_path / "a.dot", tmp_path / "a.svg"
    assert main(["regex", "(x+x+)+y", "--dot", str(dot), "--svg", str(svg)]) == 0
    assert str(svg) in capsys.readouterr().out
    assert "2 -> 2" in dot.read_text()
    assert ElementTree.parse(svg).getroot().tag.endswith("svg")
    assert main(["regex", "a{999}", "--svg", str(tmp_path / "large.svg")]) == 1
    assert "too many to draw" in capsys.readouterr().err
    assert not (tmp_path / "large.svg").exists()
    assert main(["regex", "a", "--svg", str(tmp_path / "missing" / "a.svg")]) == 3


REFUSED = [
    ("a(?=b", "INVALID_SOURCE", [1, 5], "    a(?=b\n     ^^^^\n"),
    (r"(a)\1", "UNSUPPORTED_PATTERN", [3, 5], "    (a)\\1\n       ^^\n"),
    ("😀[b-a]", "INVALID_SOURCE", [2, 5], "    😀[b-a]\n       ^^^\n"),
    ("[ab]*a[ab]{20}", "LIMIT_EXCEEDED", [6, 14], "    [ab]*a[ab]{20}\n          ^^^^^^^^\n"),
]


@pytest.mark.parametrize(("pattern", "code", "span", "shown"), REFUSED)
def test_refusals_point_at_the_place(
    pattern: str, code: str, span: list[int], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["regex", pattern]) == 1
    err = capsys.readouterr().err
    assert code in err
    line, carets = (part[4:] for part in shown.splitlines())
    assert f"  1 | {line}\n    | {carets}\n" in err
    assert main(["regex", pattern, "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["diagnostics"]
    assert (found["code"], found["span"]) == (code, span)


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["regex"], ["regex", "a", "--dialect", "pcre"]):
        with pytest.raises(SystemExit) as caught:
            main(wrong)
        assert caught.value.code == 2
    assert main(["regex", "--", "-?[0-9]"]) == 0
    assert main(["regex", "a\udcff"]) == 1
    assert "isn't UTF-8" in capsys.readouterr().err


def test_pointing_in_long_and_many_lines() -> None:
    line, carets = point_at("x" * 500 + "(?=" + "y" * 500, 500, 503)
    assert len(line) < 80
    assert line[carets.index("^") : carets.index("^") + 3] == "(?="
    assert point_at("ab\ncd)\nef", 5, 6) == ("cd)", "  ^")
    assert point_at("ab(cd\nef", 2, 8) == ("ab(cd", "  ^^^")
    assert point_at("a\t(", 2, 3) == ("a\\t(", "   ^")
    assert point_at("a\\", 2, 2) == ("a\\", "  ^")
    assert point_at("", 0, 0) == ("", "^")


def test_a_refused_source_file_is_pointed_at_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from importlib.resources import files

    tokenizer = str(files("maskwright.compiler") / "data" / "demo.tokenizer.json")
    (tmp_path / "p.regex").write_text("ab(c\n")
    assert main(["compile", str(tmp_path / "p.regex"), "--tokenizer", tokenizer, "-o", str(tmp_path / "o")]) == 1
    assert "  1 | ab(c\n    |   ^^\n" in capsys.readouterr().err
