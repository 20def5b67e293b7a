"""Grammars and tool calls beside llguidance and xgrammar, where these are installed: the same texts, one run.

    python -m tests.bench.bench_grammar --tokenizer tokenizer.json [--only json,sql,tools] [--tools 400] [--rounds 3]

A line has: time to compile, to the first mask, then fill + accept per token (p50, p99, p99.9 in microseconds). Each
engine gets its grammar in its own notation, for the same language as far as the notations go; a text that an engine
refuses is told. The first round over the texts is a line of its own ("cold"): rows and caches are made there. Without
a tokenizer: the vocabulary that ships, and no peers.

Peers read Hugging Face tokenizers, through transformers.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from maskwright.compiler import Compiler, CompileResult, Limits, Vocabulary
from maskwright.workers import Artifact, Matcher, VocabularyPack, allocate_token_bitmask

JSON = r"""
?start: value
?value: object | array | STRING | NUMBER | "true" | "false" | "null"
array: "[" (value ("," value)*)? "]"
object: "{" (pair ("," pair)*)? "}"
pair: STRING ":" value
STRING: /"([^"\\\x00-\x1f]|\\["\\\/bfnrt]|\\u[0-9a-fA-F]{4})*"/
NUMBER: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/
%ignore /[ \n]+/
"""

JSON_EBNF = r"""
root ::= ws value ws
value ::= object | array | string | number | "true" | "false" | "null"
array ::= "[" ws (value ws ("," ws value ws)*)? "]"
object ::= "{" ws (pair ws ("," ws pair ws)*)? "}"
pair ::= string ws ":" ws value
string ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F]))* "\""
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [+-]? [0-9]+)?
ws ::= [ \n]*
"""

SQL = r"""
start: query ";"?
query: "SELECT" "DISTINCT"? cols "FROM" source join* where? group? order? limit?
cols: "*" | col ("," col)*
col: expr ("AS" NAME)?
source: NAME ("AS" NAME)? | "(" query ")" "AS" NAME
join: ("LEFT" | "INNER")? "JOIN" source "ON" expr
where: "WHERE" expr
group: "GROUP" "BY" expr ("," expr)* ("HAVING" expr)?
order: "ORDER" "BY" key ("," key)*
key: expr ("ASC" | "DESC")?
limit: "LIMIT" NUMBER
expr: both ("OR" both)*
both: inverse ("AND" inverse)*
inverse: "NOT" inverse | test
test: sum (OP sum | "IS" "NOT"? "NULL" | "IN" "(" expr ("," expr)* ")" | "LIKE" STRING)?
sum: product (("+" | "-") product)*
product: atom (("*" | "/") atom)*
atom: NUMBER | STRING | NAME ("." NAME)? | NAME "(" ("*" | expr ("," expr)*)? ")" | "(" expr ")"
OP: "=" | "<>" | "<=" | ">=" | "<" | ">"
NAME: /[a-z_][a-z_0-9]*/
STRING: /'[^'\n]*'/
NUMBER: /[0-9]+(\.[0-9]+)?/
%ignore /[ \n]+/
"""

SQL_EBNF = r"""
root ::= ws query (";" ws)?
query ::= "SELECT" ws ("DISTINCT" ws)? cols "FROM" ws source join* where? group? order? limit?
cols ::= "*" ws | col ("," ws col)*
col ::= expr ("AS" ws name)?
source ::= name ("AS" ws name)? | "(" ws query ")" ws "AS" ws name
join ::= (("LEFT" | "INNER") ws)? "JOIN" ws source "ON" ws expr
where ::= "WHERE" ws expr
group ::= "GROUP" ws "BY" ws expr ("," ws expr)* ("HAVING" ws expr)?
order ::= "ORDER" ws "BY" ws key ("," ws key)*
key ::= expr (("ASC" | "DESC") ws)?
limit ::= "LIMIT" ws number
expr ::= both ("OR" ws both)*
both ::= inverse ("AND" ws inverse)*
inverse ::= "NOT" ws inverse | test
test ::= sum (op sum | "IS" ws ("NOT" ws)? "NULL" ws | "IN" ws "(" ws expr ("," ws expr)* ")" ws | "LIKE" ws string)?
sum ::= product (("+" | "-") ws product)*
product ::= atom (("*" | "/") ws atom)*
atom ::= number | string | name ("." ws name)? | name "(" ws ("*" ws | expr ("," ws expr)*)? ")" ws | "(" ws expr ")" ws
op ::= ("=" | "<>" | "<=" | ">=" | "<" | ">") ws
name ::= [a-z_] [a-z_0-9]* ws
string ::= "'" [^'\n]* "'" ws
number ::= [0-9]+ ("." [0-9]+)? ws
ws ::= [ \n]*
"""

JSON_TEXTS = [
    json.dumps({"id": i, "name": f"no {i}", "tags": ["a", "b c", "é"], "price": i / 7, "in": {"x": [i, None, True]}})
    for i in range(6)
] + [json.dumps([{"k": list(range(9))}, [], {}, '\\" \n', -1.5e-7], indent=2)]

SQL_TEXTS = [
    "SELECT * FROM users WHERE age >= 21 AND (name LIKE 'A%' OR city IN ('Paris', 'Rome')) ORDER BY age DESC LIMIT 9",
    "SELECT u.id, count(*) AS n FROM users AS u LEFT JOIN orders AS o ON u.id = o.user_id\nGROUP BY u.id HAVING "
    "count(*) > 3 ORDER BY n DESC, u.id",
    "SELECT DISTINCT a + b * (c - 1) / 2 AS sum FROM (SELECT a, b, c FROM t WHERE NOT a IS NULL) AS s WHERE sum > 0",
    "SELECT max(price), min(price), avg(price * quantity) FROM order_items INNER JOIN products ON "
    "order_items.product_id = products.id WHERE products.name LIKE '%book%' AND order_items.quantity IS NOT NULL;",
    "SELECT lower(name) FROM people",
]

WORDS = [
    "user", "order", "date", "city", "limit", "query", "status", "page", "amount", "currency", "email", "phone", "note",
    "kind", "title", "body", "url", "path",
]  # fmt: skip


def make_tools(count: int) -> list[dict[str, Any]]:
    """Tools with two to six parameters of mixed types."""
    rng = random.Random(count)
    kinds: list[dict[str, Any]] = [
        {"type": "string"},
        {"type": "string"},
        {"type": "integer"},
        {"type": "boolean"},
        {"enum": ["open", "closed", "all"]},
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}, "required": ["x", "y"],
         "additionalProperties": False},
    ]  # fmt: skip
    tools = []
    for i in range(count):
        properties = {w: rng.choice(kinds) for w in rng.sample(WORDS, rng.randint(2, 6))}
        schema = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        tools.append({"name": f"{rng.choice(WORDS)}_{rng.choice(WORDS)}_{i}", "parameters": schema})
    return tools


def value_of(schema: dict[str, Any]) -> Any:
    """Some value of a tool's schema."""
    if "enum" in schema:
        return schema["enum"][0]
    made = {"string": "some text", "integer": 42, "number": 1.5, "boolean": True, "array": ["a", "bc"]}
    if schema["type"] == "object":
        return {k: value_of(v) for k, v in schema["properties"].items()}
    return made[schema["type"]]


def call_texts(tools: list[dict[str, Any]], count: int) -> list[str]:
    """Conversations with two calls each, as Hermes writes them."""
    rng = random.Random(count)
    out = []
    for _ in range(count):
        calls = [json.dumps({"name": t["name"], "arguments": value_of(t["parameters"])}) for t in rng.sample(tools, 2)]
        out.append("Let me look that up for you.\n" + "\n".join(f"<tool_call>\n{c}\n</tool_call>" for c in calls))
    return out


class Maskwright:
    name = "maskwright"

    def __init__(self, data: bytes, texts: str, eos: int | None) -> None:
        self.vocabulary = Vocabulary.from_bytes(data) if data else Vocabulary.demo()
        self.compiler = Compiler(self.vocabulary, limits=Limits(compile_seconds=300))
        self.pack = VocabularyPack.from_bytes(self.vocabulary.pack_bytes())
        self.stops = [eos] if eos is not None else None

    def compile(self, job: Job) -> None:
        result: CompileResult
        if job.tools:
            result = self.compiler.compile_tools(job.tools)
        else:
            result = self.compiler.compile_lark(job.lark)
        self.data = result.to_bytes()

    def load(self) -> None:
        artifact = Artifact.from_bytes(self.data, self.pack)
        self.matcher, self.mask = Matcher(artifact, self.stops), allocate_token_bitmask(1, artifact.vocab_size)

    def reset(self) -> None:
        self.matcher.reset()

    def fill(self) -> None:
        self.matcher.fill_next_token_bitmask(self.mask)

    def accept(self, token: int) -> bool:
        return self.matcher.accept_token(token)


class Peer:
    """What both peers need: a tokenizer of transformers."""

    def __init__(self, data: bytes, text: str, eos: int | None) -> None:
        from tokenizers import Tokenizer
        from transformers import PreTrainedTokenizerFast

        t = Tokenizer.from_str(text)
        assert eos is not None
        self.eos, self.n = eos, t.get_vocab_size()
        self.tokenizer = PreTrainedTokenizerFast(
            tokenizer_object=t, eos_token=t.id_to_token(eos), clean_up_tokenization_spaces=False
        )
        self.prepare()

    def prepare(self) -> None:
        raise NotImplementedError


class Xgrammar(Peer):
    name = "xgrammar"

    def prepare(self) -> None:
        import xgrammar

        self.x = xgrammar
        info = xgrammar.TokenizerInfo.from_huggingface(self.tokenizer, vocab_size=self.n, stop_token_ids=[self.eos])
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.mask = xgrammar.allocate_token_bitmask(1, self.n)

    def compile(self, job: Job) -> None:
        if job.tools:
            tags = [
                self.x.StructuralTagItem(begin=begin, schema=json.dumps(schema), end=end)
                for begin, schema, end in job.tags()
            ]
            self.grammar = self.compiler.compile_structural_tag(tags, ["<tool_call>"])
        else:
            self.grammar = self.compiler.compile_grammar(job.ebnf)

    def load(self) -> None:
        self.matcher = self.x.GrammarMatcher(self.grammar)

    reset = load

    def fill(self) -> None:
        self.matcher.fill_next_token_bitmask(self.mask)

    def accept(self, token: int) -> bool:
        return bool(self.matcher.accept_token(token))


class Llguidance(Peer):
    name = "llguidance"

    def prepare(self) -> None:
        import llguidance
        import llguidance.hf
        from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

        self.l, self.fill_mask = llguidance, fill_next_token_bitmask
        self.t = llguidance.hf.from_tokenizer(self.tokenizer)
        self.mask = allocate_token_bitmask(1, self.t.vocab_size)

    def compile(self, job: Job) -> None:
        source = job.lark
        if job.tools:
            tags = [
                self.l.StructTag(trigger="<tool_call>", begin=begin, grammar=schema, end=end)
                for begin, schema, end in job.tags()
            ]
            source = self.l.StructTag.to_grammar(tags, assume_special=False)
        grammar = source if job.tools else json.dumps({"grammars": [{"lark_grammar": source}]})
        self.grammar = self.l.LLMatcher(self.t, grammar, log_level=0)
        if self.grammar.is_error():
            raise ValueError(self.grammar.get_error())

    def load(self) -> None:
        self.matcher = self.grammar.deep_copy()

    reset = load

    def fill(self) -> None:
        self.fill_mask(self.matcher, self.mask, 0)

    def accept(self, token: int) -> bool:
        return bool(self.matcher.consume_token(token))


class Job:
    def __init__(self, name: str, texts: list[str], lark: str = "", ebnf: str = "", tools: Any = None) -> None:
        self.name, self.texts, self.lark, self.ebnf, self.tools = name, texts, lark, ebnf, tools

    def tags(self) -> Iterator[tuple[str, Any, str]]:
        for tool in self.tools:
            yield f'<tool_call>\n{{"name": "{tool["name"]}", "arguments": ', tool["parameters"], "}\n</tool_call>"


def run(engine: Any, job: Job, cut: list[list[int]], rounds: int) -> None:
    """Prints the engine's lines for one job."""
    begin = time.perf_counter()
    try:
        engine.compile(job)
    except Exception as error:  # a peer that can't is a result, too
        show(f"{job.name:10} {engine.name:11} not compiled: {str(error)[:120]!r}")
        return
    compiled = time.perf_counter()
    engine.load()
    engine.fill()
    first = time.perf_counter()
    seconds, ms = compiled - begin, 1e3 * (first - compiled)
    head = f"{job.name:10} {engine.name:11} compile {seconds:8.3f} s  first mask {ms:7.2f} ms"
    engine.reset()
    for label, count in (("cold", 1), ("warm", rounds)):
        times: list[int] = []
        refused = 0
        for _ in range(count):
            for tokens in cut:
                engine.reset()
                refused += not follow(engine, tokens, times)
        us = np.array(times) / 1000
        p50, p99, p999 = np.percentile(us, [50, 99, 99.9])
        note = f"  {refused} texts refused" if refused else ""
        show(f"{head}  {label} p50 {p50:7.2f}  p99 {p99:8.2f}  p99.9 {p999:8.2f} us  n {len(us)}{note}")


def follow(engine: Any, tokens: Sequence[int], times: list[int]) -> bool:
    for token in tokens:
        begin = time.perf_counter_ns()
        engine.fill()
        good = engine.accept(token)
        times.append(time.perf_counter_ns() - begin)
        if not good:
            return False
    return True


def greedy(vocabulary: Vocabulary, text: str) -> list[int]:
    """The longest token each time."""
    known = {b: i for i, b in enumerate(vocabulary.tokens) if b}
    data, out = text.encode(), []
    while data:
        n = next(n for n in range(min(len(data), 32), 0, -1) if data[:n] in known)
        out.append(known[data[:n]])
        data = data[n:]
    return out


def show(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def jobs(only: set[str], tools: list[int]) -> Iterator[Job]:
    if "json" in only:
        yield Job("json", JSON_TEXTS, JSON, JSON_EBNF)
    if "sql" in only:
        yield Job("sql", SQL_TEXTS, SQL, SQL_EBNF)
    for n in tools if "tools" in only else ():
        found = make_tools(n)
        yield Job(f"{n} tools", call_texts(found, 8), tools=found)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="bench_grammar")
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--eos", default="<|eot_id|>")
    parser.add_argument("--only", default="json,sql,tools")
    parser.add_argument("--tools", default="")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    counts = [int(n) for n in options.tools.split(",") if n] or ([10, 400] if options.tokenizer else [10])
    data, text, eos = b"", "", None
    kinds: list[Any] = [Maskwright]
    if options.tokenizer:
        from tokenizers import Tokenizer

        data = options.tokenizer.read_bytes()
        data = gzip.decompress(data) if options.tokenizer.suffix == ".gz" else data
        text = data.decode()
        tokenizer = Tokenizer.from_str(text)
        eos = tokenizer.token_to_id(options.eos)
        kinds += [Llguidance, Xgrammar]
    engines = []
    for kind in kinds:
        try:
            engines.append(kind(data, text, eos))
        except ImportError as missing:
            show(f"{kind.name}: not installed ({missing.name})")
    for job in jobs(set(options.only.split(",")), counts):
        if options.tokenizer:
            cut = [list(tokenizer.encode(t, add_special_tokens=False).ids) for t in job.texts]
        else:
            cut = [greedy(engines[0].vocabulary, t) for t in job.texts]
        for engine in engines:
            run(engine, job, cut, options.rounds)


if __name__ == "__main__":
    main(sys.argv[1:])
