"""What `compile` and `explain` let people choose: kind, options, limits; and the compilation itself."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from maskwright.compiler.options import PROFILES, CompileOptions, Limits

from .files import KINDS, read_source
from .terminal import EXIT_USAGE, Failure

if TYPE_CHECKING:
    from maskwright.compiler import Compiler, CompileResult


DRAFTS = ("2020-12", "2019-09", "7", "6", "4")


def add_choices(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--kind", choices=KINDS, help="default: by the suffix .json, .regex, .lark, .gbnf, .tools.json")
    kinds.add_argument("--gbnf", dest="kind", action="store_const", const="gbnf", help="the source is GBNF")
    kinds.add_argument("--tools", dest="kind", action="store_const", const="tools", help="the source lists tools")
    parser.add_argument("--whitespace", default="flexible", help="flexible, compact, or columns of indent")
    parser.add_argument("--max-whitespace", type=int, default=16, metavar="BYTES")
    parser.add_argument("--property-order", choices=("declared", "any"), default="declared")
    parser.add_argument("--residual", choices=("refuse", "allow"), default="refuse")
    parser.add_argument("--regex-dialect", choices=("ecma262", "python"), default="ecma262")
    parser.add_argument("--formats", choices=("enforce", "annotate"), default="enforce")
    parser.add_argument("--draft", choices=DRAFTS, default=DRAFTS[0], help="of a JSON Schema that names none")
    parser.add_argument(
        "--resource",
        action="append",
        default=[],
        metavar="URI=FILE",
        help="a JSON Schema that references may name; repeat for several: nothing is fetched",
    )
    parser.add_argument("--max-nesting", type=int, metavar="N", help="containers open at once")
    parser.add_argument("--grammar-start", metavar="RULE", help="default: start, in GBNF root")
    parser.add_argument("--grammar-fallback", choices=("refuse", "commit"), default="refuse")
    parser.add_argument("--grammar-strict", action="store_true", help="refuse conflicts and terminals that collide")
    _add_tool_arguments(parser)
    _add_bounds(parser)


def _add_bounds(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("bounds", "on values that their schema doesn't bound; and limits that refuse")
    group.add_argument("--default-max-length", type=int, metavar="N", help="characters of a string")
    group.add_argument("--default-max-items", type=int, metavar="N", help="items of an array, undeclared members")
    group.add_argument("--default-max-digits", type=int, metavar="N", help="digits in a row in a number")
    group.add_argument("--limits", choices=PROFILES, default="default", help="named limits; LIMITS.md lists them")
    group.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="one limit instead of the profile's; repeat for several (compile_seconds=5)",
    )


def _add_tool_arguments(parser: argparse.ArgumentParser) -> None:
    tools = parser.add_argument_group("tools", "where the source doesn't say it itself")
    tools.add_argument("--format", help="how calls are written; default: hermes")
    tools.add_argument("--tool-choice", metavar="CHOICE", help="auto (default), none, required, or a tool's name")
    tools.add_argument("--no-parallel", action="store_true", help="at most one call")
    tools.add_argument("--reasoning", nargs=2, metavar=("OPEN", "CLOSE"), help="free text before, between these")


def compile_kind(
    compiler: Compiler, kind: str, source: str, resources: Mapping[str, str] | None = None
) -> CompileResult:
    """Compiles text of one of `KINDS`; `resources` go with a JSON Schema. Raises CompileError."""
    if kind == "regex":
        return compiler.compile_regex(source.removesuffix("\n"))
    if kind == "lark":
        return compiler.compile_lark(source)
    if kind == "gbnf":
        return compiler.compile_gbnf(source)
    if kind == "tools":
        return compiler.compile_tools(source)
    return compiler.compile_json_schema(source, resources)


def resources_of(options: argparse.Namespace, kind: str) -> dict[str, str]:
    """The texts of `--resource`, by URI."""
    if options.resource and kind != "json_schema":
        raise Failure(EXIT_USAGE, "only a JSON Schema has resources")
    out: dict[str, str] = {}
    for setting in options.resource:
        uri, found, path = setting.rpartition("=")
        if not found or not uri or not path:
            raise Failure(EXIT_USAGE, f"--resource takes URI=FILE, not {setting!r}")
        out[uri] = read_source(path)
    return out


def with_tool_arguments(source: str, options: argparse.Namespace) -> str:
    """The document with what the command line adds; a source that isn't one is left for the compiler to refuse."""
    given = {"format": options.format, "tool_choice": options.tool_choice, "reasoning": options.reasoning}
    given["parallel"] = False if options.no_parallel else None
    chosen = {name: value for name, value in given.items() if value is not None}
    try:
        value = json.loads(source)
    except (ValueError, RecursionError):
        return source
    if not chosen or not isinstance(value, list | dict):
        return source
    return json.dumps({"tools": value, **chosen} if isinstance(value, list) else {**value, **chosen})


def options_of(options: argparse.Namespace) -> CompileOptions:
    """What changes the language."""
    whitespace = options.whitespace
    try:
        return CompileOptions(
            whitespace=int(whitespace) if whitespace.isdecimal() else whitespace,
            max_whitespace=options.max_whitespace,
            property_order=options.property_order,
            residual=options.residual,
            regex_dialect=options.regex_dialect,
            formats=options.formats,
            draft=options.draft,
            max_nesting=options.max_nesting,
            default_max_length=options.default_max_length,
            default_max_items=options.default_max_items,
            default_max_digits=options.default_max_digits,
            grammar_start=options.grammar_start,
            grammar_fallback=options.grammar_fallback,
            grammar_strict=options.grammar_strict,
        )
    except ValueError as error:
        raise Failure(EXIT_USAGE, str(error)) from error


def limits_of(options: argparse.Namespace) -> Limits:
    """The profile's, with those of `--limit` instead."""
    profile = Limits.profile(options.limits)
    known = vars(profile)
    chosen: dict[str, Any] = {}
    for setting in options.limit:
        name, _, value = setting.partition("=")
        if name not in known:
            raise Failure(EXIT_USAGE, f"no limit {name!r}; there are {', '.join(known)}")
        try:
            chosen[name] = type(known[name])(value)
        except ValueError as error:
            raise Failure(EXIT_USAGE, f"limit {name} can't be {value!r}") from error
    try:
        return replace(profile, **chosen)
    except ValueError as error:
        raise Failure(EXIT_USAGE, str(error)) from error
