"""XML documents of services with the protocol `rest-xml`, and botocore's models, which say how."""

from __future__ import annotations

import datetime
import functools
import re
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree
from xml.sax.saxutils import escape


@functools.cache
def model(service: str) -> Any:
    """Return botocore's model of a service; None if it knows none."""
    import botocore.exceptions
    import botocore.session

    try:
        return botocore.session.Session(profile=None).get_service_model(service)
    except botocore.exceptions.UnknownServiceError:
        return None


def decoded(shape: Any, body: bytes) -> dict[str, Any]:
    """Return the members of a structure from a document; none of a body that is no XML."""
    try:
        # The bodies are those of this machine's own AWS clients.
        root = ElementTree.fromstring(body)  # noqa: S314
    except ElementTree.ParseError:
        return {}
    value: dict[str, Any] = _value(shape, root)
    return value


def encoded(service: str, operation: str, response: Mapping[str, Any]) -> bytes:
    """Return the document of a response."""
    shape = model(service).operation_model(operation).output_shape
    # The protocol `query` puts the result into another element.
    wrapper = shape.serialization.get("resultWrapper") if shape is not None else None
    tag = wrapper or (shape.name if shape is not None else "")
    text = "".join(_written(tag, shape, response)) if shape is not None else ""
    if wrapper is not None:
        text = f"<{operation}Response>{text}</{operation}Response>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'.encode()


def _value(shape: Any, element: ElementTree.Element) -> Any:
    if shape.type_name == "structure":
        inside = {_local(child.tag): child for child in element}
        return {
            name: _value(member, inside[tag])
            for name, member in shape.members.items()
            if (tag := member.serialization.get("name", name)) in inside
        }
    if shape.type_name == "list":
        return [_value(shape.member, child) for child in element]
    text = element.text or ""
    if shape.type_name in ("integer", "long"):
        return int(text)
    if shape.type_name == "boolean":
        return text == "true"
    return text


def _local(tag: str) -> str:
    """Return a tag without its namespace."""
    return re.sub(r"^\{[^}]*\}", "", tag)


def _written(tag: str, shape: Any, value: Any) -> Iterator[str]:
    yield f"<{tag}>"
    if shape.type_name == "structure":
        for name, member in shape.members.items():
            if name in value:
                yield from _written(member.serialization.get("name", name), member, value[name])
    elif shape.type_name == "list":
        for item in value:
            yield from _written(
                shape.member.serialization.get("name", "member"), shape.member, item
            )
    else:
        yield escape(_text(value))
    yield f"</{tag}>"


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, datetime.datetime) else str(value)
