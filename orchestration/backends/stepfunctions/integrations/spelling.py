"""The names that Step Functions has for the fields of requests and responses.

They begin with a capital letter, whatever the API's own begin with, at every depth: Batch's
``jobQueue`` is ``JobQueue``, and ``jobs[0].status`` comes as ``Jobs[0].Status``. An acronym at the
beginning is one word: ``DBInstanceIdentifier`` is ``DbInstanceIdentifier``. Only the fields of
structures are renamed, so their shapes in botocore's model decide: the keys of maps are the user's,
and a document has no fields of its own.

The documentation says so of requests, and that ``equals`` is ``EqualsValue`` (read November 2026):
https://docs.aws.amazon.com/step-functions/latest/dg/supported-services-awssdk.html
That it holds for responses too is reported of a definition that ran on AWS, in
https://github.com/localstack/localstack/issues/9853, and for nested fields in
https://github.com/awsdocs/aws-step-functions-developer-guide/pull/80. Public definitions have such
names of Batch, CodeBuild, ECS, EMR Serverless, RDS, Route 53 and Step Functions.

How acronyms and reserved words are written nobody documents, and we could not try. ``EqualsValue``,
``DbInstanceIdentifier``, DynamoDB's ``Bool`` (https://repost.aws/questions/QUyLUoqYlGTC2m36ibrtGXSQ)
and its ``Nul`` (https://github.com/boto/boto3/issues/4253) are what the AWS SDK for Java 2 calls
their setters. So its rules are here, from https://github.com/aws/aws-sdk-java-v2:
``codegen/naming/DefaultNamingStrategy.java``, ``codegen/internal/Utils.java``, and the
``customization.config`` of the services.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from orchestration.checks.requests import operation_model
from orchestration.checks.shapes import Shape
from orchestration.expressions import SCALARS, Tree
from orchestration.graph import Alternative, Call, Operation, Output, Pages, Path, Person, Until
from orchestration.refs import Expression

Part = TypeVar("Part", str, str | int)

_HEAD: Final = re.compile(r"[A-Za-z0-9](?:[A-Z](?![a-z]))*")
"""A capital is a word's beginning where a small letter follows, else a part of an acronym."""
_KEYWORDS: Final = frozenset(
    {
        *("abstract", "assert", "boolean", "break", "byte", "case", "catch", "char", "class"),
        *("const", "continue", "default", "do", "double", "else", "enum", "extends", "false"),
        *("final", "finally", "float", "for", "goto", "if", "implements", "import", "instanceof"),
        *("int", "interface", "long", "native", "new", "null", "package", "private", "protected"),
        *("public", "return", "short", "static", "strictfp", "super", "switch", "synchronized"),
        *("this", "throw", "throws", "transient", "true", "try", "void", "volatile", "while"),
    }
)
_METHODS: Final = frozenset(
    {
        *("equals", "finalize", "getClass", "hashCode", "notify", "notifyAll", "toString", "wait"),
        *("builder", "sdkFields", "toBuilder", "overrideConfiguration", "sdkHttpResponse"),
    }
)
"""Words that cannot name a field in Java: its keywords, and what its objects already have."""
_EXCEPTIONS: Final = {
    ("AddPermissionInput", "AWSAccountId"): "AwsAccountIds",
    ("AddPermissionInput", "ActionName"): "ActionNames",
    ("AttributeValue", "NULL"): "Nul",
    ("FpgaImage", "Public"): "IsPublic",
    ("Image", "Public"): "PublicLaunchPermissions",
    ("ListStacksInput", "StackStatusFilter"): "StackStatusFilters",
}
"""Fields that the configuration of SNS, DynamoDB, EC2 or CloudFormation renames, by structure."""


def spelled(name: str, structure: str = "") -> str:
    """Return the name that Step Functions has for a field of a structure."""
    if (structure, name) in _EXCEPTIONS:
        return _EXCEPTIONS[structure, name]
    head = _HEAD.match(name)
    word = name if head is None else head[0].lower() + name[head.end() :]
    if word.lower() in _KEYWORDS or word in _METHODS:
        word += "Value"
    return word[:1].upper() + word[1:]


def call(step: Call) -> Call:
    """Return a call with the names of Step Functions, but for its outputs' places."""
    operation, until, fallback = step.operation, step.until, step.fallback
    adopt, pages = step.adopt, step.pages
    if adopt is not None and adopt.name_field is not None:
        adopt = replace(adopt, name_field=_field(operation, adopt.name_field))
    if fallback is not None:
        others = tuple(_alternative(other) for other in fallback.alternatives)
        fallback = replace(fallback, alternatives=others)
    return replace(
        step,
        operation=_operation(operation),
        until=None if until is None else _until(until),
        adopt=adopt,
        pages=None if pages is None else _pages(operation, pages),
        fallback=fallback,
    )


@dataclass(frozen=True, slots=True)
class Place:
    """The place of an output in a response."""

    path: Path
    columns: Mapping[str, str]
    """Of a list of objects: the names of the columns, by the API's."""


def place(operation: Operation, output: Output) -> Place:
    """Return the place of an output in an operation's response."""
    path, shape = _walked(_response(operation), output.path)
    row = shape.member if shape is not None and shape.type_name == "list" else None
    return Place(path, {column: _member(row, column)[0] for column in output.columns})


def unclear(operation: Operation) -> Iterator[str]:
    """Yield the places of a request's objects that are known only when a pipeline runs.

    Their fields would have to be renamed, and no definition can do that.
    """
    yield from _objects(_request(operation), operation.request, "")


def carried(operation: Operation, outputs: Mapping[str, Output]) -> Iterator[str]:
    """Yield the outputs that hold fields which have other names in responses."""
    for name, output in outputs.items():
        if output.kind == "object":
            continue  # Its reader names fields that have one name.
        shape = _walked(_response(operation), output.path)[1]
        parts: list[Shape | None] = [shape]
        if output.columns:
            row = shape.member if shape is not None and shape.type_name == "list" else None
            parts = [_member(row, column)[1] for column in output.columns]
        if any(part is not None and _differs(part, frozenset()) for part in parts):
            yield name


def original(shape: Shape | None, name: str) -> tuple[str, Shape | None]:
    """Return the API's name of a part of a request, by that in Step Functions, and its shape."""
    if shape is None or shape.type_name != "structure":
        return _member(shape, name)
    names = {spelled(member, shape.name): member for member in shape.members}
    member = names.get(name, name)
    return member, shape.members.get(member)


def _operation(operation: Operation) -> Operation:
    shape, request = _request(operation), operation.request
    renamed = {_member(shape, n)[0]: _tree(_member(shape, n)[1], v) for n, v in request.items()}
    return replace(operation, request=renamed)


def _alternative(other: Alternative) -> Alternative:
    stop = None if other.stop is None else _operation(other.stop)
    operation, poll = _operation(other.operation), _operation(other.poll)
    return replace(other, operation=operation, poll=poll, stop=stop)


def _until(until: Until) -> Until:
    poll, person = until.poll, until.person
    status, reason, limit = (
        None if path is None else _walked(_response(poll), path)[0]
        for path in (until.status, until.reason, until.limit)
    )
    counts, numbers = _walked(_response(poll), until.counts or ())
    if person is not None:
        person = _person(person)
    return replace(
        until,
        poll=_operation(poll),
        stop=None if until.stop is None else _operation(until.stop),
        status=status or (),
        reason=reason,
        limit=limit,
        counts=None if until.counts is None else counts,
        counted={_member(numbers, name)[0]: words for name, words in until.counted.items()},
        person=person,
    )


def _person(person: Person) -> Person:
    field = _field(person.token, person.field)
    return replace(person, token=_operation(person.token), field=field)


def _pages(operation: Operation, pages: Pages) -> Pages:
    token = _walked(_response(operation), pages.token)[0]
    return replace(pages, token=token, field=_field(operation, pages.field))


def _field(operation: Operation, name: str) -> str:
    return _member(_request(operation), name)[0]


def _request(operation: Operation) -> Shape | None:
    model = operation_model(operation.service, operation.name)
    return None if model is None else model.input_shape


def _response(operation: Operation) -> Shape | None:
    model = operation_model(operation.service, operation.name)
    return None if model is None else model.output_shape


def _member(shape: Shape | None, part: Part) -> tuple[Part, Shape | None]:
    """Return the name of a part of a value, and its shape if the model has one."""
    match None if shape is None else shape.type_name, part:
        case "structure", str() if shape is not None and part in shape.members:
            return spelled(part, shape.name), shape.members[part]
        case "map", str() if shape is not None:
            return part, shape.value
        case "list", int() if shape is not None:
            return part, shape.member
        case _:
            return part, None


def _walked(shape: Shape | None, path: Path) -> tuple[Path, Shape | None]:
    names = list[str | int]()
    for part in path:
        name, shape = _member(shape, part)
        names.append(name)
    return tuple(names), shape


def _tree(shape: Shape | None, value: Tree) -> Tree:
    if shape is None or isinstance(value, (*SCALARS, Expression)):
        return value
    if isinstance(value, Mapping):
        members = ((*_member(shape, key), item) for key, item in value.items())
        return {name: _tree(inner, item) for name, inner, item in members}
    if shape.type_name == "list":
        return [_tree(shape.member, item) for item in value]
    return value


def _objects(shape: Shape | None, value: Tree, path: str) -> Iterator[str]:
    if shape is None or isinstance(value, SCALARS):
        return
    if isinstance(value, Expression):
        if _differs(shape, frozenset()):
            yield path
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _objects(_member(shape, key)[1], item, f"{path}.{key}" if path else key)
    elif shape.type_name == "list":
        for index, item in enumerate(value):
            yield from _objects(shape.member, item, f"{path}[{index}]")


def _differs(shape: Shape, around: frozenset[str]) -> bool:
    """Return whether a value has fields that Step Functions has other names for."""
    if shape.name in around:
        return False  # A structure within itself.
    around |= {shape.name}
    match shape.type_name:
        case "structure":
            return any(
                spelled(name, shape.name) != name or _differs(member, around)
                for name, member in shape.members.items()
            )
        case "list":
            return _differs(shape.member, around)
        case "map":
            return _differs(shape.value, around)
        case _:
            return False
