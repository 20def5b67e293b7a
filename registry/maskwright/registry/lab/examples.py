"""The lab's examples: a source, and a table of texts that plays the model for it.

A table is a tiny language model that anybody can check by hand: texts with weights. The probability of a next token is
the weight of the texts that go on with it, among those that begin with the text so far (`distributions.TextTable`). So
the worked examples' figures can be read off: where the weights are delete 0.50, refund 0.30, ask 0.15 and only refund
and ask are legal, 0.45 of the mass is left and they become 0.667 and 0.333.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ..demo.schemas import REFUND as DEMO_REFUND


@dataclass(frozen=True)
class Example:
    """`table`: (weight, text) pairs. `start_text`: what the page has written when the example is chosen.
    `prompt`: what the real model is asked.
    """

    name: str
    title: str
    about: str
    kind: str
    source: str
    table: tuple[tuple[float, str], ...] = ()
    start_text: str = ""
    prompt: str = "Answer with an example."


def _schema(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


REFUND = Example(
    "refund",
    "Refund or ask",
    "Half of the model's mass is on an action that doesn't exist. The mask leaves two: 0.667 and 0.333.",
    "json_schema",
    _schema(DEMO_REFUND.schema),
    (
        (0.50, '{"action":"delete","order":1204}'),
        (0.18, '{"action":"refund","order":1204,"amount":900,"currency":"EUR"}'),
        (0.12, '{"action":"refund","order":1204,"amount":20.5,"currency":"EUR"}'),
        (0.15, '{"action":"ask","question":"Which order is it about?"}'),
        (0.05, '{"action":"cancel","order":1204}'),
    ),
    '{"action":"',
    "A customer writes: order 1204 came broken, I want 20.50 euros back. Answer with one JSON object: the action.",
)

CITY = Example(
    "city",
    "City and unit",
    "The right key has 0.61 of the mass. After the mask it has all of it: 0.61 → 1.00.",
    "json_schema",
    _schema(
        {
            "type": "object",
            "properties": {
                "city": {"type": "string", "minLength": 1, "maxLength": 40},
                "unit": {"enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city", "unit"],
            "additionalProperties": False,
        }
    ),
    (
        (0.37, '{"city":"Oslo","unit":"celsius"}'),
        (0.24, '{"city":"Oslo","unit":"kelvin"}'),
        (0.24, '{"city":"Oslo","country":"Norway"}'),
        (0.15, '{"city":"Oslo","date":"today"}'),
    ),
    '{"city":"Oslo","',
    "How warm is it in Oslo? Answer with the arguments of the weather function, as JSON.",
)

TREE = Example(
    "tree",
    "A tree, by recursion",
    "A schema that refers to itself: the stack on the right grows and shrinks with the brackets.",
    "json_schema",
    _schema(
        {
            "$ref": "#/$defs/node",
            "$defs": {
                "node": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string", "pattern": "^[a-z]{1,8}$"},
                        "children": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 3},
                    },
                    "required": ["name"],
                    "additionalProperties": False,
                }
            },
        }
    ),
    (
        (0.6, '{"name":"root","children":[{"name":"left"},{"name":"right","children":[]}]}'),
        (0.4, '{"name":"root","size":3}'),
    ),
)

CONDITIONAL = Example(
    "conditional",
    "If card, then number",
    "What may follow depends on a value that was written earlier.",
    "json_schema",
    _schema(
        {
            "type": "object",
            "properties": {
                "pay": {"enum": ["card", "cash"]},
                "number": {"type": "string", "pattern": "^[0-9]{4}$"},
            },
            "required": ["pay"],
            "additionalProperties": False,
            "if": {"properties": {"pay": {"const": "card"}}},
            "then": {"required": ["number"]},
        }
    ),
    (
        (0.55, '{"pay":"card"}'),
        (0.25, '{"pay":"card","number":"4071"}'),
        (0.20, '{"pay":"cash"}'),
    ),
)

NAME = Example(
    "name",
    "A name, by pattern",
    "A regular expression with a negative look-ahead: any name of 3 to 12 letters that doesn't begin with admin.",
    "regex",
    "(?!admin)[a-z]{3,12}",
    ((0.5, "administrator"), (0.3, "adele"), (0.2, "guest")),
)

SUM = Example(
    "sum",
    "Sums, by grammar",
    "A context-free grammar in Lark's notation. Brackets nest as deep as they like and always close.",
    "lark",
    """start: sum
sum: sum "+" product | product
product: product "*" atom | atom
atom: NUMBER | "(" sum ")"
NUMBER: /0|[1-9][0-9]*/
%ignore " "
""",
    ((0.5, "(1+2)*3"), (0.3, "1+2)"), (0.2, "12*(3+4)")),
)

LIST = Example(
    "list",
    "A list, in GBNF",
    "llama.cpp's notation for grammars.",
    "gbnf",
    """root ::= "- " item ("\\n- " item)*
item ::= [a-z]+ (" " [a-z]+){0,3}
""",
    ((0.6, "- bread\n- green tea\n- rice"), (0.4, "* bread")),
)

EXAMPLES = (REFUND, CITY, TREE, CONDITIONAL, NAME, SUM, LIST)
BY_NAME = {example.name: example for example in EXAMPLES}
