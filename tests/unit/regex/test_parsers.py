"""Trees, and what each dialect refuses, with code and span."""

from __future__ import annotations

import pytest

from maskwright.compiler.diagnostics import Code, CompileError
from maskwright.compiler.regex import Dialect, compile_pattern, parse_pattern, print_tree
from maskwright.compiler.regular import ANY_CHAR, ANY_STRING, Dfa, is_empty, one_of, shortest_members


def test_a_printed_tree() -> None:
    printed = print_tree(parse_pattern(r"^(?:a|[b-d]*?)(?!x[0-9])(é😀\b){2,3}"))
    assert (
        printed
        == """\
concat  0..35
  point text_start  0..1
  alternation  1..14
    chars [a]  4..5
    repeat 0.. lazy  6..13
      chars [b-d]  6..11
  look ahead negative  14..24
    concat  17..23
      chars [x]  17..18
      chars [0-9]  18..23
  repeat 2..3  24..35
    concat  25..29
      chars [\\xe9]  25..26
      chars [\\u{1f600}]  26..27
      point word  27..29"""
    )


INVALID = [
    ("ecma262", "a)", (1, 2)),
    ("ecma262", "(a", (0, 2)),
    ("ecma262", "a(?:b", (1, 5)),
    ("ecma262", "*a", (0, 1)),
    ("ecma262", "a**", (2, 3)),
    ("ecma262", "a|*", (2, 3)),
    ("ecma262", "{2}", (0, 3)),
    ("ecma262", "^*", (1, 2)),
    ("ecma262", "(?<=a)*", (6, 7)),
    ("ecma262", "a{3,2}", (1, 6)),
    ("ecma262", "[b-a]", (1, 4)),
    ("ecma262", "[a", (0, 2)),
    ("ecma262", "a\\", (1, 2)),
    ("ecma262", r"\y", (0, 2)),
    ("ecma262", r"\u12", (0, 4)),
    ("ecma262", r"\u{110000}", (0, 10)),
    ("ecma262", r"\x1", (0, 3)),
    ("ecma262", r"\c1", (0, 2)),
    ("ecma262", r"\p{Nope}", (0, 8)),
    ("ecma262", r"\p{Script=Elvish}", (0, 17)),
    ("ecma262", r"\pL", (0, 2)),
    ("ecma262", "(?P<n>a)", (0, 3)),
    ("ecma262", "(?i)a", (0, 4)),
    ("ecma262", "(?ii:a)", (0, 5)),
    ("ecma262", "(?<1>a)", (0, 5)),
    ("ecma262", "(?<\u200d>a)", (0, 5)),
    ("ecma262", "(?<n", (0, 4)),
    ("ecma262", r"(?<a>)(?<\u0061>)", (6, 16)),
    ("ecma262", "(?<n>a)(?<n>b)", (7, 12)),
    ("ecma262", "(?<n>(?<n>a))", (5, 10)),
    ("ecma262", "(?:(?<n>a)|(?<n>b))(?<n>c)", (19, 24)),
    ("ecma262", "(?<n>a)(?:x|(?<n>b))", (12, 17)),
    ("python", "a)", (1, 2)),
    ("python", "(?u)(?a)x", (4, 8)),
    ("python", "(a", (0, 2)),
    ("python", "a**", (2, 3)),
    ("python", "^*", (1, 2)),
    ("python", "a{3,2}", (1, 6)),
    ("python", "[]", (0, 2)),
    ("python", r"[\d-z]", (1, 5)),
    ("python", r"\y", (0, 2)),
    ("python", r"\400", (0, 4)),
    ("python", r"[\8]", (1, 3)),
    ("python", r"\N{NO SUCH CHARACTER}", (0, 21)),
    ("python", "a(?i)b", (1, 5)),
    ("python", "(?iL)b", (0, 5)),
    ("python", "(?<n>a)", (0, 4)),
    ("python", "(?P<n>a)(?P<n>b)", (8, 14)),
    ("python", "(?<=a*)b", (0, 7)),
    ("python", "(?", (0, 2)),
]


@pytest.mark.parametrize(("dialect", "pattern", "span"), INVALID)
def test_syntax_errors_have_spans(dialect: Dialect, pattern: str, span: tuple[int, int]) -> None:
    with pytest.raises(CompileError) as e:
        compile_pattern(pattern, dialect)
    found = e.value.diagnostics[0]
    assert (found.code, found.span) == (Code.INVALID_SOURCE, span), found.message


UNSUPPORTED = [
    ("ecma262", r"(a)\1", (3, 5), "back-reference"),
    ("ecma262", r"(?<n>a)\k<n>", (7, 12), "back-reference"),
    ("python", r"(a)\1", (3, 5), "back-reference"),
    ("python", r"(?P<n>a)(?P=n)", (8, 14), "back-reference"),
    ("python", r"(a)?(?(1)b|c)", (4, 9), "conditional"),
    ("python", r"x(?>a*b?)c", (1, 9), "atomic"),
    ("python", r"(?>a*(?<=b))", (0, 12), "atomic"),
    ("python", r"x(?>(?:a|ab)$)", (1, 14), "atomic"),
]


@pytest.mark.parametrize(("dialect", "pattern", "span", "name"), UNSUPPORTED)
def test_what_is_not_regular_is_refused_by_name(
    dialect: Dialect, pattern: str, span: tuple[int, int], name: str
) -> None:
    with pytest.raises(CompileError) as e:
        compile_pattern(pattern, dialect)
    found = e.value.diagnostics[0]
    assert (found.code, found.span) == (Code.UNSUPPORTED_PATTERN, span)
    assert name in found.detail["construct"]


def same(one: str, two: str, dialect: Dialect = "ecma262") -> bool:
    return compile_pattern(one, dialect) == compile_pattern(two, dialect)


def test_web_grammar_where_it_has_one_meaning() -> None:
    assert same(r"\-\_\@\ ", "-_@ ")
    assert same("a{,2}]}{", r"a\{,2\}\]\}\{")
    assert same(r"[\w-.]", r"[\w.\-]")
    assert same(r"[a-\d]", r"[a\-\d]")
    assert same("(?=a)*b", "b")
    assert same("[a-]", r"[a\-]")


def test_escapes_of_characters() -> None:
    assert same(r"\x41\u0042\u{43}\cJ\0\t", "ABC\n\0\t")
    assert same(r"\ud83d\ude00", "😀")
    assert is_empty(compile_pattern(r"\ud83d"))
    assert is_empty(compile_pattern(r"[\ud800-\udfff]"))
    assert same(r"\x41\u0042\U00000043\101\n\07", "ABCA\n\7", "python")
    assert same(r"\N{DIGIT ONE}", "1", "python")
    assert same(r"[\b]", "\b") and same(r"[\b]", "\b", "python")


def test_classes() -> None:
    assert compile_pattern("[^]") == ANY_CHAR
    assert is_empty(compile_pattern("[]"))
    assert compile_pattern("[^]*") == compile_pattern("", mode="search") == ANY_STRING
    assert same("[]a]", r"[\]a]", "python") and same("[^]a]", r"[^\]a]", "python")
    assert same(".", r"[^\n\r\u2028\u2029]") and same(".", r"[^\n]", "python")


def test_flags() -> None:
    assert compile_pattern("(?i:a)b") == compile_pattern("[aA]b")
    assert compile_pattern("a.", flags="is") == compile_pattern("[aA][^]")
    assert compile_pattern("(?-i:a)b", flags="i") == compile_pattern("a[bB]")
    assert compile_pattern("(?i)a", "python") == compile_pattern("[aA]", "python")
    assert compile_pattern("(?x) a b # c\n [ ]", "python") == compile_pattern("ab ", "python")
    assert compile_pattern(r"(?a)\d", "python") == compile_pattern("[0-9]", "python")
    with pytest.raises(ValueError, match="unknown flags"):
        compile_pattern("a", flags="q")
    with pytest.raises(ValueError, match="unknown dialect"):
        compile_pattern("a", "pcre")  # type: ignore[arg-type]


def test_alternatives_may_share_a_group_name() -> None:
    assert same("(?<n>a)|(?<n>b)", "a|b")
    assert same("(?:(?<n>a)|b)|(?<n>c)|(?=(?<n>d))d", "[abcd]")
    assert same(r"(?<\u0061$>b)(?<$\u{62}\u200d>)(?<\ud835\udc9c>)", "b")
    many = "(?:" * 2000 + "".join(f"(?<n{i}>)" for i in range(1000)) + ")" * 2000
    assert same(many, "")


def test_sets_of_characters_are_not_folded_in_python() -> None:
    for pattern in (r"[\w]", r"[^\W]", r"[\wa-f]"):
        assert compile_pattern(pattern, "python", flags="i") == compile_pattern(r"\w", "python")
    assert compile_pattern(r"(?i)[\Ws]", "python") == compile_pattern(r"\W|(?i:s)", "python")


def test_ends() -> None:
    assert compile_pattern("^a$", mode="search") == compile_pattern("a")
    assert shortest_members(compile_pattern("^a$", "python", mode="search"), 9) == ["a", "a\n"]
    assert compile_pattern("^a|b$", mode="search") == compile_pattern("a[^]*|[^]*b")
    assert is_empty(compile_pattern("a^b", mode="search"))
    assert compile_pattern("(?m:^a$)", mode="search").label("x\na\ny") == 0


def test_repeats_of_repeats_do_not_pile_up() -> None:
    deep = "(?:" * 3000 + "a" + ")?" * 3000
    assert compile_pattern(deep) == compile_pattern("a?")
    assert same("(?:a*)+", "a*") and same("(?:a+){2,3}", "a{2,}") and same("(?:a?){3}", "a{0,3}")


def test_atomic_groups_commit() -> None:
    def language(pattern: str) -> Dfa:
        return compile_pattern(pattern, "python")

    assert is_empty(language("(?>a|ab)c(?<=bc)"))
    assert language("(?>ab|a)c") == language("abc|ac")
    assert is_empty(language("a*+a"))
    assert language("[a-c]++d") == language("[a-c]+d")
    assert language("(?:ab){1,2}+ab") == language("ababab")
    assert language("(?>a*?)b") == language("b")
    assert language(r"(?>b|ab\b)(?!c)-") == language(r"(?:b|ab)\b-")


def test_unicode_sets() -> None:
    assert compile_pattern(r"\p{ASCII}") == one_of(((0, 127),))
    assert compile_pattern(r"[\p{Lu}\P{Lu}]") == ANY_CHAR
    assert same(r"\p{L}", r"\p{General_Category=Letter}") and same(r"\p{sc=Grek}", r"\p{Script=Greek}")
    greek = compile_pattern(r"\p{Script=Greek}+")
    assert greek.label("αβγ") == 0 and greek.label("abc") == -1
    assert compile_pattern("(?i:ß)").label("ẞ") == 0
    assert compile_pattern("(?i:σ)").label("ς") == 0
    assert compile_pattern(r"(?i:\w)").label("\u212a") == 0
    assert compile_pattern(r"\w").label("\u212a") == -1
