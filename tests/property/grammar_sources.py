"""Grammars for differential tests, with members that people would write, and pieces to mutate them with."""

from __future__ import annotations

CALCULATOR = r"""
?start: sum | NAME "=" sum -> assign
?sum: product | sum "+" product | sum "-" product
?product: power | product ("*"|"/") power
?power: atom ["^" power]
?atom: NUMBER | "-" atom | NAME | NAME "(" [sum ("," sum)*] ")" | "(" sum ")"
%import common.CNAME -> NAME
%import common.NUMBER
%import common.WS_INLINE
%ignore WS_INLINE
"""

JSON = r"""
?start: value
?value: object | array | STRING | SIGNED_NUMBER | "true" | "false" | "null"
array: "[" [value ("," value)*] "]"
object: "{" [pair ("," pair)*] "}"
pair: STRING ":" value
%import common.ESCAPED_STRING -> STRING
%import common.SIGNED_NUMBER
%import common.WS
%ignore WS
"""

CSV = r"""
start: header _NL row+
header: "#" " "? (WORD _SEP?)+
row: (anything _SEP?)+ _NL
?anything: INT | WORD | NON_SEPARATOR | FLOAT | SIGNED_FLOAT
NON_SEPARATOR: /[^,;\t\n ]+/
_SEP: /[ ]+/ | "\t" | "," | ";"
%import common.NEWLINE -> _NL
%import common.WORD
%import common.INT
%import common.FLOAT
%import common.SIGNED_FLOAT
"""

CONFIG = r"""
start: _NL? section*
section: "[" NAME "]" _NL item*
item: NAME "=" VALUE? _NL
NAME: /\w+/
VALUE: /[^\n]+/
COMMENT: /;[^\n]*/
_NL: /(\r?\n[\t ]*)+/
%ignore /[\t ]+/
%ignore COMMENT
"""

STATEMENTS = r"""
start: (_NL | stmt)*
?stmt: simple (";" simple)* [";"] _NL | compound
?simple: "pass" | "return" [test] | NAME "=" test | NAME ("+=" | "-=") test | call | "del" NAME
?compound: "if" test ":" block ("elif" test ":" block)* ["else" ":" block]
         | "while" test ":" block | "for" NAME "in" test ":" block | "def" NAME "(" [names] ")" ":" block
block: simple _NL | _NL "{" _NL? stmt+ "}" _NL
names: NAME ("," NAME)* [","]
call: NAME "(" [test ("," test)*] ")"
?test: both ("or" both)*
?both: inverse ("and" inverse)*
?inverse: "not" inverse | compare
?compare: sum [("<" | ">" | "==" | "in" | "is" "not"? | "not" "in") sum]
?sum: atom (("+" | "-") atom)*
?atom: NAME | NUMBER | STRING+ | "(" test ")" | call | "[" [test ("," test)*] "]" | "None"
NAME: /[^\W\d]\w*/
NUMBER: /0|[1-9]\d*/ | /0x[\da-f]+/i
STRING: /([ub]?r?)("(?!"").*?(?<!\\)(\\\\)*?"|'(?!'').*?(?<!\\)(\\\\)*?')/i
_NL: /(\r?\n[\t ]*)+/
%ignore /[\t \f]+/
%ignore /\\[\t \f]*\r?\n/
%ignore /#[^\n]*/
"""

SQL = r"""
start: select ";"?
select: "SELECT"i cols "FROM"i NAME ("AS"i NAME)? join? where? order?
cols: "*" | col ("," col)*
col: expr ("AS"i NAME)?
join: "LEFT"i? "JOIN"i NAME "ON"i expr
where: "WHERE"i expr
order: "ORDER"i "BY"i expr ("ASC"i | "DESC"i)?
?expr: neg | expr ("AND"i | "OR"i) neg
?neg: "NOT"i neg | cmp
?cmp: add | add OP add | add "BETWEEN"i add "AND"i add | add "IS"i "NOT"i? "NULL"i
OP: "=" | "<>" | "<=" | ">=" | "<" | ">"
?add: atom | add "+" atom | add "-" atom
?atom: NUMBER | STRING | NAME ("." NAME)? | "(" expr ")"
NAME: /[A-Za-z_][A-Za-z_0-9]*/
STRING: /'([^']|'')*'/
NUMBER: /[0-9]+(\.[0-9]+)?/
%ignore /[ \t\n]+/
%ignore /--[^\n]*/
"""

SOURCES: dict[str, tuple[str, list[str], list[str]]] = {
    "calculator": (
        CALCULATOR,
        ["x = 3 + 4*(2-1)/y", "-f(1.5e3, y)^2^3", "f()", "1.", ".5"],
        [*list("x1.e+-*/^()=, "), "f(", "1e5"],
    ),
    "json": (
        JSON,
        ['{"a": [1, 2.5e3, null]}', '[true,false,"\\"x\\\\"]', '"é\\u0041"', "-0"],
        [*list('{}[],:"\\ 1-.e'), "true", "null", '"a"', "\n"],
    ),
    "csv": (CSV, ["#a b\n1,2\n", "# x,y;z\n-1.5 abc\tq!\n3\n\n4\n"], list("#ab1,; \t\n.-")),
    "config": (
        CONFIG,
        ["[a]\nx = 1 ; y\n\n[b]\n", "\n[s]\nkey=\nother = v w\n"],
        list("[]=;ax \t\n"),
    ),
    "statements": (
        STATEMENTS,
        [
            "x = 1\n",
            "if not x in y: pass\nelse: return 'a' \"b\"\n",
            "for i in f(1, 0x1F): \n{ x += i; del i\n}\n",
            "def f(a, b,): # note\n{\nreturn None; y = a is not b\n}\n",
            "ifx = notin\n",
        ],
        [*list("x1'\":;,()[]{}=+-#\\\n "), "if", "not ", "in", "is", "None", "elif", "r'"],
    ),
    "sql": (
        SQL,
        [
            "select a.b, 1 as c from t where x = 'it''s' and not y <> 3 order by a desc;",
            "SELECT * FROM t LEFT JOIN u ON t.a between 1 and 2.5 -- note\n",
        ],
        [*list("ax1.'*,()=<>-+ \n"), "select ", " from ", " and ", "as ", "null", " is ", "not "],
    ),
}
