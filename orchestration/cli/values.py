"""Parameters and uploads given on a command line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from orchestration.errors import near

if TYPE_CHECKING:
    from orchestration.graph import ParameterSpec
    from orchestration.graph import ParameterValue as Value

_WILD = "*?["
"""Characters of patterns."""
_BOOLEANS = {"true": True, "false": False}


def parameters(
    specs: Sequence[ParameterSpec],
    pairs: Iterable[str],
    *,
    filled: Iterable[str] = (),
    written: Mapping[str, Value] | None = None,
) -> dict[str, Value]:
    """Parse ``name=value`` pairs in their declared types, with all mistakes reported at once.

    Required parameters must be among them, except for those that are ``filled`` in later. Pairs
    take precedence over values that are ``written`` in a file.
    """
    known = {spec.name: spec for spec in specs}
    values: dict[str, Value] = {}
    problems: list[str] = []
    for text in pairs:
        name, equals, value = text.partition("=")
        if not equals:
            problems.append(f"{text!r} is not NAME=VALUE")
        elif name not in known:
            problems.append(f"unknown parameter {name!r}{near(name, known)}")
        elif name in values:
            problems.append(f"{name} is given twice")
        else:
            read = _read(known[name], value)
            if read is None:
                problems.append(f"{name}: expected a {known[name].type}, got {value!r:.60}")
            else:
                values[name] = read
    named = {text.partition("=")[0] for text in pairs}
    values |= {name: v for name, v in (written or {}).items() if name not in named}
    named |= {*(written or {})}
    missing = [s for s in specs if s.default is None and s.name not in {*named, *filled}]
    problems += [_missing(spec) for spec in missing]
    if problems:
        raise _usage(problems, "--parameter")
    return values


def uploads(pairs: Iterable[str]) -> dict[str, Path]:
    """Parse ``LOCAL=S3URI`` pairs, by S3 URI; ``LOCAL`` may be a pattern."""
    from orchestration.execution.parameters import names_bucket

    by_uri: dict[str, Path] = {}
    problems: list[str] = []
    for text in pairs:
        local, equals, uri = text.partition("=s3://")
        if equals and names_bucket(f"s3://{uri}"):
            problems += add_upload(by_uri, local, f"s3://{uri}")
        else:
            problems.append(f"{text!r} is not LOCAL=s3://bucket/key")
    if problems:
        raise _usage(problems, "--upload")
    return by_uri


def add_upload(
    by_uri: dict[str, Path], local: str, uri: str, folder: Path | None = None
) -> Iterator[str]:
    """Add a file, a folder or all files of a pattern in a folder; yield what is wrong with them."""
    path = (folder or Path()) / local
    sent = list(_matching(path, uri) if _is_pattern(path) else _single(path, uri))
    if not sent:
        yield f"there is no file or folder {path}"
    for whole, each in sent:
        if whole in by_uri:
            yield f"{each} and {by_uri[whole]} both go to {whole}"
        by_uri[whole] = each


def _single(path: Path, uri: str) -> Iterator[tuple[str, Path]]:
    if path.exists():
        # Several files may go to one prefix, so each gets its own URI.
        yield (f"{uri}{path.name}" if path.is_file() and uri.endswith("/") else uri), path


def _is_pattern(path: Path) -> bool:
    return any(character in str(path) for character in _WILD) and not path.exists()


def _matching(pattern: Path, uri: str) -> Iterator[tuple[str, Path]]:
    """Yield the files that match, each under the prefix by its path behind the fixed folders."""
    parts = pattern.parts
    fixed = next(i for i, part in enumerate(parts) if any(c in part for c in _WILD))
    folder = Path(*parts[:fixed])
    for path in sorted(folder.glob(str(Path(*parts[fixed:])))):
        if path.is_file():
            yield f"{uri.rstrip('/')}/{path.relative_to(folder).as_posix()}", path


def _read(spec: ParameterSpec, text: str) -> Value | None:
    match spec.type:
        case "string":
            return text
        case "boolean":
            return _BOOLEANS.get(text.lower())
        case "number":
            return _number(text)
        case "array":
            return _array(text)


def _array(text: str) -> Value | None:
    """Read a JSON array of scalars or objects, or texts between commas."""
    if not text.startswith("["):
        return text.split(",") if text else []
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if all(map(_is_element, value)) else None


def _is_element(item: object) -> bool:
    """Return whether a value may stand in a list: a scalar, or an object of scalars."""
    values = item.values() if isinstance(item, dict) else [item]
    return all(isinstance(value, str | int | float) for value in values)


def _number(text: str) -> float | None:
    from math import isfinite

    for kind in (int, float):
        try:
            number = kind(text)
            return number if isfinite(number) else None
        except (OverflowError, ValueError):
            continue
    return None


def _missing(spec: ParameterSpec) -> str:
    about = f" ({spec.description})" if spec.description else ""
    return f"{spec.name} is required{about}; give it as -p {spec.name}=VALUE"


def _usage(problems: Sequence[str], option: str) -> typer.BadParameter:
    text = problems[0] if len(problems) == 1 else "\n" + "\n".join(f"  - {p}" for p in problems)
    return typer.BadParameter(text, param_hint=option)
