"""The data of a state machine, as far as it is known before a run: literals and places."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

_STEP = re.compile(r"\.([\w-]+)|\[\s*['\"]([^'\"]+)['\"]\s*\]|\[\s*(\d+)\s*\]")
_SUBSTITUTION = re.compile(r"\$\{([\w.:]+)\}")
"""Also ``${AWS::Region}`` and ``${Function.Arn}``."""
_FORMAT = re.compile(r"States\.Format\((.*)\)", re.DOTALL)
_ARGUMENT = re.compile(r"\s*('(?:[^'\\]|\\.)*'|[^,']+)\s*(?:,|$)")
_JSONATA = re.compile(r"\{%(.*)%\}", re.DOTALL)
_PART = re.compile(r"\s*('[^']*'|\"[^\"]*\"|\$[\w.$\[\]]+|-?\d+(?:\.\d+)?|true|false)\s*(&|$)")
_LITERAL = re.compile(r"-?\d+(?:\.\d+)?|true|false|null")
_OURS: Final = frozenset({"Get", "Std:Join", "Std:JsonGet"})
_CONTEXT: Final = {
    "Execution.Id": "Execution.PipelineExecutionId",
    "Execution.Name": "Execution.PipelineExecutionId",
    "StateMachine.Name": "Execution.PipelineName",
}
"""Of the context object, by what SageMaker Pipelines call the same."""


@dataclass(frozen=True, slots=True)
class Place:
    """A value that a run will have: a place in its input, or in the result of a step."""

    root: str
    """``Parameters`` or ``Steps.Train``."""
    path: str = ""

    def below(self, part: str | int) -> Place:
        """Return the place of a field or an element."""
        if isinstance(part, int):
            return Place(self.root, f"{self.path}[{part}]")
        return Place(self.root, f"{self.path}.{part}" if self.path else part)


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that nothing here can tell, with the words that the definition has for it."""

    text: str


@dataclass
class Data:
    """The data that a state is given: its input, and the variables that were assigned before it."""

    input: Any
    variables: Mapping[str, Any] = field(default_factory=dict)
    result: Any = None
    """The result of the state, where its output is made."""
    state: str = ""
    """The name of the state, by which what is unknown in it is told from others."""
    element: Any = None
    """The element that the Map around it is at."""

    def merged(self, other: Data, state: str) -> Data:
        """Return the data of a state that two ways lead to."""
        names = self.variables.keys() & other.variables.keys()
        variables = {
            name: _merged(self.variables[name], other.variables[name], f"{name} at {state}")
            for name in names
        }
        made = _merged(self.input, other.input, f"the input of {state}")
        return replace(self, input=made, variables=variables)

    def unknown(self, text: str) -> Unknown:
        """Return what a text of the definition stands for, where nothing here tells it."""
        return Unknown(f"{text} in {self.state}" if self.state else text)

    def template(self, value: Any, language: str, *, source: Any = None) -> Any:
        """Return a value of the definition with what its paths and expressions stand for."""
        start = self.input if source is None else source
        if isinstance(value, Mapping) and value.keys() & _OURS and len(value) == 1:
            return self.unknown(str(dict(value)))
        if isinstance(value, Mapping) and any(map(_SUBSTITUTION.search, value)):
            return self.unknown(str(dict(value)))
        if isinstance(value, Mapping):
            made: dict[str, Any] = {}
            for key, item in value.items():
                if language == "JSONPath" and key.endswith(".$"):
                    made[key[:-2]] = self.path(str(item), start)
                else:
                    made[key] = self.template(item, language, source=source)
            return made
        if isinstance(value, list):
            return [self.template(item, language, source=source) for item in value]
        if not isinstance(value, str):
            return value
        match = _JSONATA.fullmatch(value) if language == "JSONata" else None
        if match is None:
            return substituted(value)
        return self.unknown(value) if _SUBSTITUTION.search(value) else self.expression(match[1])

    def path(self, text: str, start: Any = None) -> Any:
        """Return what a path or an intrinsic function stands for."""
        start = self.input if start is None else start
        if text.startswith("$$"):
            return self._context(text[2:].lstrip("."), text)
        if match := re.match(r"\$([A-Za-z_]\w*)", text):
            if match[1] in self.variables:
                return at(self.variables[match[1]], text[match.end() :], text)
            return self.unknown(text)
        if text.startswith("$"):
            return at(start, text[1:], text)
        match = _FORMAT.fullmatch(text)
        return self.unknown(text) if match is None else self._formatted(match[1], text, start)

    def expression(self, text: str) -> Any:
        """Return what an expression of JSONata stands for: places, and texts put together."""
        parts: list[Any] = []
        position, text = 0, text.strip()
        while match := _PART.match(text, position):
            parts.append(self._operand(match[1]))
            position = match.end()
            if not match[2]:
                break
        odd = any(isinstance(part, Unknown) for part in parts)
        odd = odd or (len(parts) > 1 and any(isinstance(part, bool) for part in parts))
        if not parts or position < len(text) or odd or "\\" in text:
            return self.unknown(text)
        return parts[0] if len(parts) == 1 else {"Std:Join": {"On": "", "Values": parts}}

    def _operand(self, text: str) -> Any:
        if text[0] in "'\"":
            return text[1:-1]
        if text in ("true", "false"):
            return text == "true"
        if text[0] != "$":
            return float(text) if "." in text else int(text)
        for name, start in (("$states.input", self.input), ("$states.result", self.result)):
            if re.match(rf"{re.escape(name)}(?![\w])", text):
                return at(start, text[len(name) :], text)
        if text.startswith("$states.context."):
            return self._context(text.removeprefix("$states.context."), text)
        return self.path(text)

    def _context(self, place: str, text: str) -> Any:
        if place in _CONTEXT:
            return {"Get": _CONTEXT[place]}
        if place.startswith("Map.Item.Value") and self.element is not None:
            return at(self.element, place.removeprefix("Map.Item.Value"), text)
        if place.startswith("Execution.Input"):
            return at(Place("Parameters"), place.removeprefix("Execution.Input"), text)
        return Unknown(text)

    def _formatted(self, arguments: str, text: str, start: Any) -> Any:
        given = [match[1].strip() for match in _ARGUMENT.finditer(arguments)]
        if not given or given[0][:1] != "'" or _SUBSTITUTION.search(text):
            return self.unknown(text)
        values = [self._argument(each, start) for each in given[1:]]
        pieces = re.split(r"(?<!\\)\{\}", given[0][1:-1])
        if len(pieces) != len(values) + 1 or any(isinstance(v, Unknown) for v in values):
            return self.unknown(text)
        plain = [_unescaped(piece) for piece in pieces]
        between = [part for pair in zip(plain, [*values, ""], strict=True) for part in pair]
        return {"Std:Join": {"On": "", "Values": [part for part in between if part != ""]}}

    def _argument(self, text: str, start: Any) -> Any:
        if text[:1] == "'":
            return _unescaped(text[1:-1])
        if text[:1] == "$":
            return self.path(text, start)
        return text if _LITERAL.fullmatch(text) else self.unknown(text)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def substituted(text: str) -> Any:
    """Return a text with parameters in the place of what is filled in when it is deployed."""
    parts = _SUBSTITUTION.split(text)
    values = [
        Place("Parameters", f"${{{part}}}") if n % 2 else part for n, part in enumerate(parts)
    ]
    together = [value for value in values if value != ""]
    if len(together) == 1:
        return together[0]
    return text if len(parts) == 1 else {"Std:Join": {"On": "", "Values": together}}


def filled(value: Any) -> Any:
    """Return a literal with parameters in the place of what is filled in at the deployment."""
    match value:
        case str():
            return substituted(value)
        case Mapping():
            return {key: filled(item) for key, item in value.items()}
        case list():
            return [filled(item) for item in value]
        case _:
            return value


def at(start: Any, path: str, text: str) -> Any:
    """Return the value at a path below another."""
    position = 0
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            return Unknown(text)
        part: str | int = int(step[3]) if step[3] else step[1] or step[2]
        position = step.end()
        match start:
            case Place():
                start = start.below(part)
            case Unknown(told):
                return Unknown(f"{text} of {told}")
            case Mapping() if part in start:
                start = start[part]
            case list() if isinstance(part, int) and part < len(start):
                start = start[part]
            case _:
                return Unknown(text)
    return start


def placed(data: Any, path: str | None, value: Any) -> Any:
    """Return data with a value at a ``ResultPath``."""
    if path is None:
        return data
    names = [step[1] or step[2] for step in _STEP.finditer(path[1:])]
    if not names:
        return value
    below: dict[str, Any] = {} if not isinstance(data, Mapping) else dict(data)
    if isinstance(data, Place | Unknown):
        below = {_REST: data}
    inner = below.get(names[0], {})
    below[names[0]] = placed(inner, "$" + "".join(f".{name}" for name in names[1:]), value)
    return Layered(below) if _REST in below else below


_REST: Final = "\0"


class Layered(dict[str, Any]):
    """The input of the execution, of which no field is known, with results laid over it."""

    def __contains__(self, key: object) -> bool:
        return super().__contains__(key) or isinstance(key, str)

    def __missing__(self, key: str) -> Any:
        rest = self[_REST]
        return rest.below(key) if isinstance(rest, Place) else Unknown(f"{key} of {rest.text}")

    @property
    def is_input(self) -> bool:
        """Return whether the rest is the input of the execution."""
        return bool(self[_REST] == Place("Parameters"))

    def known(self) -> dict[str, Any]:
        """Return the results that a request can hold."""
        return {key: item for key, item in self.items() if key != _REST and _is_held(item)}


@dataclass
class Layers:
    """The inputs with results laid over them that requests hold whole, and their names."""

    named: list[tuple[Layered, str]] = field(default_factory=list)

    def name(self, layered: Layered, where: str) -> str:
        """Return the name of an input: one for equal ones."""
        for known, text in self.named:
            if known == layered:
                return text
        text = f"all of the input at {where}"
        text += "".join(" again" for _, other in self.named if other.startswith(text))
        self.named.append((layered, text))
        return text


def plain(value: Any, named: Callable[[Layered], str] = lambda _: "all of the input") -> Any:
    """Return a value with references in the place of what a run will have.

    ``named`` tells one layered input from another.
    """
    match value:
        case Place(root, ""):
            return {"Get": f"all of {root}"}
        case Place(root, path):
            return {"Get": f"{root}.{path}"}
        case Unknown(text):
            return {"Get": text}
        case Layered():
            return {"Get": named(value)}
        case Mapping():
            return {key: plain(item, named) for key, item in value.items()}
        case list():
            return [plain(item, named) for item in value]
        case _:
            return value


def _is_held(value: Any) -> bool:
    """Return whether a request can hold a value: no whole result, and nothing unknown."""
    match value:
        case Place(_, path):
            return path not in ("", "Payload")
        case Unknown() | Layered():
            return False
        case Mapping():
            return all(map(_is_held, value.values()))
        case list():
            return all(map(_is_held, value))
        case _:
            return True


def is_reference(value: Any) -> bool:
    """Return whether a value is one that only a run will have, or a text with such values."""
    if isinstance(value, Place | Unknown | Layered):
        return True
    ours = isinstance(value, Mapping) and len(value) == 1
    return ours and bool(value.keys() & {"Get", "Std:Join"})


def is_known(value: Any) -> bool:
    """Return whether a value is all literal."""
    match value:
        case Place() | Unknown() | Layered():
            return False
        case Mapping():
            return not value.keys() & {"Get", "Std:Join"} and all(map(is_known, value.values()))
        case list():
            return all(map(is_known, value))
        case _:
            return True


def inputs(value: Any) -> Iterator[str]:
    """Yield the places in the execution's input that a value needs."""
    match value:
        case Place("Parameters", path) if path:
            yield path
        case Layered():
            return
        case Mapping():
            for item in value.values():
                yield from inputs(item)
        case list():
            for item in value:
                yield from inputs(item)


def _merged(one: Any, other: Any, name: str) -> Any:
    if one == other:
        return one
    if isinstance(one, Place) and isinstance(other, Mapping):
        one = Layered({_REST: one})
    elif isinstance(other, Place) and isinstance(one, Mapping):
        other = Layered({_REST: other})
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        both = {
            key: _merged(one[key], other[key], f"{key} of {name}")
            if key in one.keys() & other.keys()
            else Unknown(f"{key} of {name}, by the way taken")
            for key in dict.fromkeys([*one, *other])
        }
        return Layered(both) if _REST in both else both
    return Unknown(f"{name}, by the way taken")
