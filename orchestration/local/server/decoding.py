"""Decoding of HTTP requests into AWS operations and their parameters."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs, parse_qsl

from orchestration.local.account import documents
from orchestration.local.account.protocol import Request
from orchestration.local.iam.principals import account_of

# Signing names that differ from the service's name in botocore.
_SERVICE_OF_SIGNING_NAME = {
    "states": "stepfunctions",
    "elasticfilesystem": "efs",
    "monitoring": "cloudwatch",
    "servicequotas": "service-quotas",
}
# Longer S3 bodies are recorded as a digest instead of text.
_LONGEST_TEXT = 65_536
_CALLER = "HTTP_X_MOTO_ACCOUNT_ID"
_SCOPE = re.compile(r"Credential=(?P<key>[^/]+)/\d+/(?P<region>[^/]+)/(?P<name>[^/]+)/aws4_request")


def decode(environ: Mapping[str, Any], body: bytes) -> Request | None:
    """Decode a WSGI request; return None if it is no AWS call."""
    request = _decoded(environ, body)
    scope = _SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
    if request is None or scope is None:
        return request
    caller = environ.get(_CALLER) or account_of(scope["key"]) or request.account
    return replace(request, account=caller, access_key=scope["key"])


def _decoded(environ: Mapping[str, Any], body: bytes) -> Request | None:
    scope = _SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
    if scope is None:
        return None
    service = _SERVICE_OF_SIGNING_NAME.get(scope["name"], scope["name"])
    if service == "sagemaker" and environ["PATH_INFO"].startswith("/endpoints/"):
        service = "sagemaker-runtime"
    if service == "s3" and "HTTP_X_AMZ_ACCOUNT_ID" in environ:
        service = "s3control"
    target = environ.get("HTTP_X_AMZ_TARGET")
    if target:
        parameters = json.loads(body) if body else {}
        return Request(service, target.rsplit(".", 1)[-1], parameters, scope["region"])
    model = documents.model(service)
    if model is None:
        return Request(service, "(unknown)", {}, scope["region"])
    if model.metadata["protocol"] in ("query", "ec2"):
        operation, parameters = _query(model, environ, body)
    else:
        operation, parameters = _rest(model, environ, body)
    return Request(service, operation, parameters, scope["region"])


def _query(model: Any, environ: Mapping[str, Any], body: bytes) -> tuple[str, dict[str, Any]]:
    fields = dict(parse_qsl(body.decode(), keep_blank_values=True))
    fields |= dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    operation = fields.pop("Action", "(unknown)")
    if operation not in model.operation_names:
        return operation, fields
    shape = model.operation_model(operation).input_shape
    return operation, _unflatten(shape, fields, "") if shape else {}


def _unflatten(shape: Any, fields: Mapping[str, str], prefix: str) -> Any:
    """Build the value of a shape from `Tags.member.1.Key=…` fields."""
    below = {key: value for key, value in fields.items() if key.startswith(prefix)}
    if shape.type_name == "structure":
        structure = {}
        for name, member in shape.members.items():
            path = prefix + (member.serialization.get("name") or name)
            if path in below or any(key.startswith(path + ".") for key in below):
                is_leaf = member.type_name not in ("structure", "list", "map")
                structure[name] = _unflatten(member, below, path if is_leaf else path + ".")
        return structure
    if shape.type_name == "list":
        numbers = sorted(
            {
                int(n)
                for n in re.findall(
                    rf"^{re.escape(prefix)}(?:member\.)?(\d+)", _lines(below), re.MULTILINE
                )
            }
        )
        infix = "member." if any(key.startswith(prefix + "member.") for key in below) else ""
        leaf = shape.member.type_name not in ("structure", "list", "map")
        return [
            _unflatten(shape.member, below, f"{prefix}{infix}{n}" + ("" if leaf else "."))
            for n in numbers
        ]
    if shape.type_name == "map":
        return dict(_pairs(shape, below, prefix))
    return _scalar(shape, fields.get(prefix.rstrip("."), ""))


def _pairs(shape: Any, fields: Mapping[str, str], prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield the entries of a map: `MessageAttributes.entry.1.Name=…`."""
    named = {end: getattr(shape, end).serialization.get("name", end) for end in ("key", "value")}
    start = re.escape(prefix)
    for key, name in fields.items():
        if match := re.fullmatch(rf"({start}(?:entry\.)?\d+\.){re.escape(named['key'])}", key):
            leaf = shape.value.type_name not in ("structure", "list", "map")
            path = f"{match[1]}{named['value']}" + ("" if leaf else ".")
            yield name, _unflatten(shape.value, fields, path)


def _lines(fields: Mapping[str, str]) -> str:
    return "\n".join(fields)


def _scalar(shape: Any, text: str) -> Any:
    if shape.type_name in ("integer", "long"):
        return int(text)
    if shape.type_name in ("float", "double"):
        return float(text)
    if shape.type_name == "boolean":
        return text.lower() == "true"
    return text


@dataclass(frozen=True)
class _Route:
    operation: str
    method: str
    path: re.Pattern[str]
    query: dict[str, str]
    required_query: frozenset[str]
    required_headers: frozenset[str]

    @property
    def weight(self) -> tuple[int, int, int]:
        return (
            len(self.query),
            len(self.required_query) + len(self.required_headers),
            len(self.path.pattern),
        )


@functools.cache
def _routes(service: str) -> tuple[_Route, ...]:
    model = documents.model(service)
    routes = []
    for name in model.operation_names:
        operation = model.operation_model(name)
        path, _, query = operation.http["requestUri"].partition("?")
        shape = operation.input_shape
        required = (
            {m: shape.members[m].serialization for m in shape.required_members} if shape else {}
        )
        routes.append(
            _Route(
                operation=name,
                method=operation.http["method"],
                path=_pattern(path),
                query=dict(parse_qsl(query, keep_blank_values=True)),
                required_query=_names(required, "querystring"),
                required_headers=_names(required, "header"),
            )
        )
    return tuple(sorted(routes, key=lambda route: route.weight, reverse=True))


def _names(members: Mapping[str, Mapping[str, str]], location: str) -> frozenset[str]:
    return frozenset(
        at["name"].lower() if location == "header" else at["name"]
        for at in members.values()
        if at.get("location") == location
    )


def _pattern(path: str) -> re.Pattern[str]:
    text = re.escape(path.rstrip("/"))
    text = re.sub(r"\\\{(\w+)\\\+\\\}", r"(?P<\1>.+)", text)
    text = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", text)
    return re.compile(f"^{text}/?$")


def _rest(model: Any, environ: Mapping[str, Any], body: bytes) -> tuple[str, dict[str, Any]]:
    path = environ["PATH_INFO"].encode("latin1").decode("utf-8", "replace")
    query = dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    headers = _header_fields(environ)
    for route in _routes(model.service_name):
        match = route.path.match(path)
        if (
            match
            and route.method == environ["REQUEST_METHOD"]
            and all(query.get(key) == value for key, value in route.query.items())
            and route.required_query <= query.keys()
            and route.required_headers <= headers.keys()
        ):
            shape = model.operation_model(route.operation).input_shape
            parameters = _parameters(shape, match.groupdict(), query, headers, body)
            return route.operation, parameters | _lists(shape, environ.get("QUERY_STRING", ""))
    return "(unknown)", {"Path": path}


def _header_fields(environ: Mapping[str, Any]) -> dict[str, str]:
    fields = {
        key[5:].lower().replace("_", "-"): value
        for key, value in environ.items()
        if key.startswith("HTTP_")
    }
    if environ.get("CONTENT_TYPE"):
        fields["content-type"] = environ["CONTENT_TYPE"]
    return fields


def _parameters(
    shape: Any,
    path: Mapping[str, str],
    query: Mapping[str, str],
    headers: Mapping[str, str],
    body: bytes,
) -> dict[str, Any]:
    if shape is None:
        return {}
    payload = shape.serialization.get("payload")
    document = (
        _document(body, shape if payload is None else None)
        if payload is None or shape.members[payload].type_name in ("structure", "list", "map")
        else None
    )
    parameters: dict[str, Any] = {}
    for name, member in shape.members.items():
        location = member.serialization.get("location")
        key = member.serialization.get("name", name)
        if location == "uri" and key in path:
            parameters[name] = path[key]
        elif location == "querystring" and key in query:
            parameters[name] = _scalar(member, query[key])
        elif location == "header" and key.lower() in headers:
            parameters[name] = headers[key.lower()]
        elif location == "headers":
            if fields := _prefixed(headers, key.lower()):
                parameters[name] = fields
        elif name == payload:
            parameters[name] = document if document is not None else _content(body)
        elif location is None and isinstance(document, dict) and key in document:
            parameters[name] = document[key]
    return parameters


def _prefixed(headers: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the headers of a map, whose names share a prefix (`x-amz-meta-`)."""
    return {
        name.removeprefix(prefix): value
        for name, value in headers.items()
        if name.startswith(prefix)
    }


def _lists(shape: Any, query: str) -> dict[str, list[str]]:
    """Return the lists in a query, which names a parameter once for each element."""
    values = parse_qs(query)
    members = {} if shape is None else shape.members
    return {
        name: values[member.serialization["name"]]
        for name, member in members.items()
        if member.type_name == "list"
        and member.serialization.get("location") == "querystring"
        and member.serialization["name"] in values
    }


def _document(body: bytes, shape: Any) -> Any:
    if body.startswith(b"<"):
        # S3's own documents, each the payload of a request, are recorded as text.
        return None if shape is None else documents.decoded(shape, body)
    try:
        return json.loads(body) if body else {}
    except ValueError:
        return None


def _content(body: bytes) -> Any:
    if len(body) <= _LONGEST_TEXT:
        try:
            return body.decode()
        except UnicodeDecodeError:
            pass
    digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
    return {"sha256": digest, "bytes": len(body)}
