"""A `ServerConfig` from a TOML file and the environment.

The file's tables and keys are the dataclasses' fields. A variable `MASKWRIGHT_SERVER_<KEY>` goes before the file,
with `__` between a table and its key: MASKWRIGHT_SERVER_POOL__CHILDREN=4. Variables hold plain values, no lists.

Everything that isn't known or doesn't fit is an error that names its place; nothing is guessed.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from .config import ServerConfig

PREFIX = "MASKWRIGHT_SERVER_"


class ConfigError(ValueError):
    """Something in a configuration; `place` is dotted."""

    def __init__(self, place: str, message: str) -> None:
        self.place = place
        super().__init__(f"{place}: {message}" if place else message)


def load_config(path: Path | None, environment: Mapping[str, str], **chosen: Any) -> ServerConfig:
    """The configuration; `chosen` (a command line's) goes before the environment, and that before the file.

    Raises ConfigError, OSError.
    """
    values: dict[str, Any] = {}
    if path is not None:
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError("", f"{path}: {error}") from error
    for name, text in environment.items():
        if name.startswith(PREFIX):
            _put(values, name.removeprefix(PREFIX).lower().split("__"), text)
    for name, value in chosen.items():
        if value is not None:
            _put(values, name.split("__"), value)
    config: ServerConfig = _build(ServerConfig, values, "")
    return config


def _put(values: dict[str, Any], keys: list[str], value: Any) -> None:
    *tables, last = keys
    for table in tables:
        values = values.setdefault(table, {})
        if not isinstance(values, dict):
            raise ConfigError(".".join(keys), "a value, not a table")
    values[last] = value


def _build(kind: type[Any], values: Any, place: str) -> Any:
    if not isinstance(values, dict):
        raise ConfigError(place, "must be a table")
    hints = get_type_hints(kind)
    known = {f.name: f for f in fields(kind)}
    for name in values:
        if name not in known:
            raise ConfigError(_join(place, name), f"isn't known; there are {', '.join(known)}")
    for name, f in known.items():
        if name not in values and f.default is MISSING and f.default_factory is MISSING:
            raise ConfigError(_join(place, name), "is missing")
    read = {name: _read(hints[name], value, _join(place, name)) for name, value in values.items()}
    if kind is ServerConfig and "profiles" in read:
        read["profiles"] = {**ServerConfig().profiles, **read["profiles"]}
    try:
        return kind(**read)
    except ValueError as error:
        raise ConfigError(place, str(error)) from error


def _read(hint: Any, value: Any, place: str) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return _read(next(a for a in arguments if a is not NoneType), value, place)
    if is_dataclass(hint) and isinstance(hint, type):
        return _build(hint, value, place)
    if origin is Literal:
        if value not in arguments:
            raise ConfigError(place, f"must be one of {', '.join(arguments)}, not {value!r}")
        return value
    if origin is tuple:
        if not isinstance(value, list):
            raise ConfigError(place, "must be a list")
        return tuple(_read(arguments[0], item, f"{place}[{n}]") for n, item in enumerate(value))
    if origin is not None:  # a mapping of names
        if not isinstance(value, dict):
            raise ConfigError(place, "must be a table")
        return {name: _read(arguments[1], item, _join(place, name)) for name, item in value.items()}
    return _scalar(hint, value, place)


def _scalar(kind: type[Any], value: Any, place: str) -> Any:
    """A value of a plain kind; text of the environment is read as that kind."""
    found = _convert(kind, value, place)
    if isinstance(found, float) and not math.isfinite(found):
        raise ConfigError(place, f"must be a finite number, not {found}")
    return found


def _convert(kind: type[Any], value: Any, place: str) -> Any:
    if kind is Path and isinstance(value, str | Path):
        return Path(value)
    if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError as error:
            raise ConfigError(place, "is too large") from error
    if isinstance(value, str):
        if kind is bool and value.lower() in ("true", "false"):
            return value.lower() == "true"
        try:
            return kind(value) if kind is not bool else _no_bool(value)
        except ValueError as error:
            raise ConfigError(place, f"must be {kind.__name__}, not {value!r}") from error
    raise ConfigError(place, f"must be {kind.__name__}, not {value!r}")


def _no_bool(value: str) -> bool:
    raise ValueError(value)


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name
