"""Patterns and their oracles: every small pattern of a few atoms, random larger ones, `re` and `regress`."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator

import regress

from maskwright.compiler.diagnostics import Code, CompileError
from maskwright.compiler.regex import Dialect, Mode, compile_pattern
from maskwright.compiler.regular import Dfa, shortest_members

ATOMS = ["", "a", "b", ".", "[^a]", "^", "$", r"\b", r"\B", "(?=a)", "(?!b)", "(?<=a)", "(?<!b)"]
MODES: tuple[Mode, ...] = ("full", "search")
Judge = Callable[[str], bool]


def pairs(ones: list[str], twos: list[str]) -> Iterator[str]:
    for x, y in itertools.product(ones, twos):
        yield f"{x}{y}"
        yield f"(?:{x}|{y})"


def wrapped(ones: list[str]) -> Iterator[str]:
    for x in ones:
        yield from (f"(?:{x}){q}" for q in ("*", "+", "?", "{2}", "{1,2}"))
        yield from (f"({look}{x})" for look in ("?=", "?!", "?<=", "?<!"))


def small_patterns(atoms: list[str] = ATOMS) -> list[str]:
    """All patterns of one operation on one or two atoms."""
    return list(dict.fromkeys([*atoms, *pairs(atoms, atoms), *wrapped(atoms)]))


def medium_patterns(atoms: list[str] = ATOMS) -> list[str]:
    """All patterns of one operation on small patterns and atoms: some 24,000 of all atoms."""
    small = small_patterns(atoms)
    return list(dict.fromkeys([*wrapped(small), *pairs(atoms, small), *pairs(small, atoms)]))


def oracle(pattern: str, dialect: Dialect, flags: str = "") -> dict[str, Judge] | None:
    """What the reference engine says of a text, by mode; None: it doesn't take the pattern."""
    try:
        if dialect == "python":
            found = re.compile(pattern, sum(getattr(re, f.upper()) for f in flags))
            seeker = _without_prefix(found)
            return {"full": lambda t: found.fullmatch(t) is not None, "search": lambda t: seeker.search(t) is not None}
        inside = regress.Regex(pattern, "u" + flags)
        whole = regress.Regex(f"(?-m:^)(?:{pattern})(?-m:$)", "u" + flags)
    except (re.error, regress.RegressError, OverflowError):
        return None
    return {"full": lambda t: whole.find(t) is not None, "search": lambda t: inside.find(t) is not None}


def disagreements(pattern: str, dialect: Dialect, texts: list[str], flags: str = "") -> list[tuple[object, ...]]:
    """Texts that the compiled pattern judges unlike the oracle; patterns the oracle refuses say nothing."""
    judges = oracle(pattern, dialect, flags)
    if judges is None:
        return []
    out: list[tuple[object, ...]] = []
    for mode in ("full", "search"):
        dfa = compile_pattern(pattern, dialect, mode=mode, flags=flags)  # type: ignore[arg-type]
        # Backtracking oracles take forever where repeats nest, so they get short texts.
        longest = 8 if sum(map(pattern.count, "*+{")) > 2 else 15
        for text in texts or likely_texts(dfa, random.Random(pattern), longest):
            if (dfa.label(text) >= 0) != judges[mode](text):
                out.append((pattern, dialect, flags, mode, text, dfa.label(text)))
    return out


def _without_prefix(found: re.Pattern[str]) -> re.Pattern[str]:
    """The same, but not with the shortcut for a first character, which forgets scoped flags: (?a:\\S) on "\\x1c"."""
    try:
        return re.compile(f"(?=){found.pattern}", found.flags & ~re.UNICODE)
    except re.error:  # flags for the whole pattern must come first, and there's no scope then
        return found


class AllTexts:
    """Every text over an alphabet up to a length, judged by an automaton in one step each."""

    def __init__(self, alphabet: str, longest: int) -> None:
        self.texts = [""]
        self.parents: list[tuple[int, str]] = []
        begin = 0
        for _ in range(longest):
            end = len(self.texts)
            self.parents += [(i, c) for i in range(begin, end) for c in alphabet]
            self.texts += [self.texts[i] + c for i in range(begin, end) for c in alphabet]
            begin = end

    def judged(self, dfa: Dfa) -> list[bool]:
        """For each text, whether it's a member."""
        states = [0]
        step = {(s, c): dfa.step(s, ord(c)) for s in range(dfa.n_states) for c in {c for _, c in self.parents}}
        for parent, c in self.parents:
            states.append(step.get((states[parent], c), -1))
        return [s >= 0 and dfa.labels[s] >= 0 for s in states]

    def disagreements(self, pattern: str, dialect: Dialect) -> list[tuple[str, Dialect, str, str, bool]]:
        """Texts that the compiled pattern judges unlike the oracle, in both modes."""
        judges = oracle(pattern, dialect)
        if judges is None:
            return []
        out = []
        for mode in MODES:
            judge = judges[mode]
            for text, found in zip(self.texts, self.judged(compile_pattern(pattern, dialect, mode=mode)), strict=True):
                if found != judge(text):
                    out.append((pattern, dialect, mode, text, found))
        return out


COMMON = ["a", "b", "c", "A", "é", "ß", "İ", "k", "ſ", ".", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S", "[abc]", "[^abc]"]
COMMON += ["[a-f]", r"[\w-]", r"\n", r"\t", r"\x41", r"\u00e9", r"\.", r"[\d\s]", "0", "1", " ", "-", "_"]
COMMON += [r"\b", r"\B", "^", "$", "😀", "[à-ÿ]", "[^\\d]", "[A-Z_]"]
ECMA262 = [r"\p{L}", r"\P{L}", r"\p{Lu}", r"\p{Script=Greek}", r"\p{Ll}", r"[\p{N}a]", r"\u{1F600}", r"\cA", "[^]"]
ECMA262 += [
    r"\ud83d\ude00",
    "[]",
    r"\/",
    r"[\b]",
    r"[^\p{Lu}]",
    r"[^\P{Lu}]",
    r"\0",
    r"\p{scx=Grek}",
    r"\p{Alphabetic}",
]
PYTHON = [
    r"\A",
    r"\Z",
    r"\N{GREEK SMALL LETTER ALPHA}",
    r"\U0001F600",
    "[]a]",
    "[^]a]",
    r"\101",
    r"[\101]",
    "{",
    "(?#x)",
]
PYTHON += ["{", "(?#x)", "a{,2}", r"\a"]
PYTHON += [r"\07", "(?>a|ab)c", "(?>ab|a)c", "a?+b", "[a-c]++", "(?:ab){1,2}+", "(?>a*?b)"]
ONLY = {"ecma262": ECMA262, "python": PYTHON}
QUANTIFIERS = ["*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "+?", "??", "{0,2}?"]
LETTERS = "abcABCkKſéÉßẞİıi01 -_\n\r\t.😀\u2028αΑÿι\u0345"


def random_pattern(r: random.Random, dialect: Dialect, depth: int) -> str:
    if depth == 0 or r.random() < 0.25:
        return r.choice(COMMON + ONLY[dialect])

    def inner() -> str:
        return random_pattern(r, dialect, depth - 1)

    forms: list[Callable[[], str]] = [
        lambda: inner() + inner(),
        lambda: inner() + inner(),
        lambda: f"(?:{inner()}|{inner()})",
        lambda: f"(?:{inner()}){r.choice(QUANTIFIERS)}",
        lambda: f"({inner()})",
        lambda: f"(?{r.choice(['=', '!', '<=', '<!'])}{inner()})",
        lambda: f"(?{r.choice(['i', 'm', 's', 'im', 'i-s', '-i'])}:{inner()})",
    ]
    if dialect == "python":
        forms += [lambda: f"(?a:{inner()})", lambda: f"(?u:{inner()})", lambda: f"(?x: {inner()} )"]
        forms += [lambda: f"(?>{inner()})", lambda: f"(?:{inner()}){r.choice(['*+', '++', '?+', '{1,2}+'])}"]
    return r.choice(forms)()


def likely_texts(dfa: Dfa, r: random.Random, longest: int) -> list[str]:
    """Members, near-members and random texts, up to a length."""
    out = ["", *("".join(r.choices(LETTERS, k=r.randrange(1, 7))) for _ in range(20))]
    for m in shortest_members(dfa, 10):
        assert isinstance(m, str)
        i = r.randrange(len(m)) if m else 0
        out += [m, m[:i] + m[i + 1 :], m[:i] + r.choice(LETTERS) + m[i + 1 :], m + "\n", r.choice(LETTERS) + m]
    return [t for t in out if len(t) <= longest]


def refused_as_unsupported(e: CompileError) -> bool:
    return all(d.code == Code.UNSUPPORTED_PATTERN and d.span is not None for d in e.diagnostics)
