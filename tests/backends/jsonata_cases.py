"""Random expressions with values to be evaluated with, as JSONata and in Python."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from hypothesis import strategies as st

from orchestration.backends.jsonata import Code, Kind
from orchestration.backends.stepfunctions.names import Facts, Scope, variable
from orchestration.expressions import (
    All,
    Apply,
    Best,
    Compare,
    Field,
    Function,
    Item,
    Json,
    Not,
    Parameter,
    Result,
    Run,
    join,
    nodes,
)
from orchestration.expressions.evaluate import Values
from orchestration.refs import times

STEPS = ("train", "v", "count", "stage.copy")
OUTPUTS = ("text", "number", "truth", "rows", "anything", "in")
PARAMETERS = ("bucket", "or")
KEYS = ("a", "b c", "in", "it's", "Key.$")

TEXT = st.text(max_size=6)
URIS = st.builds(
    "{}{}".format, st.sampled_from(["s3://", "s3:/", "/"]), st.text("ab/%é", max_size=6)
)
TAGS = st.sampled_from(["one", "two"])
# jsonata-python 0.7.1 writes whole numbers from 1e15 on, and others from 1e14 on, in another way
# than JSONata does.
NUMBERS = st.integers(1 - 10**15, 10**15 - 1) | st.floats(-9e13, 9e13)
SCALARS = st.none() | st.booleans() | NUMBERS | TEXT | URIS
# No booleans inside: Python takes true for 1 there, and equality is for scalars.
INNER = st.none() | NUMBERS | TEXT
ROWS = st.lists(st.dictionaries(st.sampled_from(KEYS), st.integers(-9, 9), max_size=3), max_size=3)
OBJECTS = st.fixed_dictionaries({"Key": TEXT, "Size": st.integers(0, 5 * 10**13), "ETag": TEXT})
TIMES = st.one_of(
    st.datetimes(datetime(1000, 1, 1)).map(lambda at: f"{at:%Y-%m-%dT%H:%M:%SZ}"),
    st.dates(date(1000, 1, 1)).map(date.isoformat),
)
IMPOSSIBLE = (
    *("2027-02-29", "2027-04-31T06:00:00Z", "2027-00-01", "2027-13-01", "2027-03-01T24:00:00Z"),
    *("2027-03-01T23:59:60Z", "2027-03-01T06:00:00", "2027-03-01T06:00Z", "2027-3-1", "noon", ""),
    *("2027-03-01T06:00:00+01:00", "0999-03-01", "2027-03-01\n", "٢٠٢٧-03-01", " 2027-03-01"),
)
SECONDS = st.sampled_from([0, 3600, 7 * 86_400, 36_600 * 86_400])
FORMATS = st.sampled_from([times.ISO, "%Y/%m/%d", "at %H o'clock, 100 %%", "{%M}$S \n \\ é"])
ENCRYPTIONS = st.sampled_from(["", "AES256", "aws:kms"])
SUMS = st.sampled_from(["x=", "y=", "x-2"])
DESCRIBED = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(("ETag", "ChecksumCRC64NVME", "ChecksumSHA1", "ChecksumType"), SUMS),
        "ServerSideEncryption": ENCRYPTIONS,
    },
)
VALUES = st.one_of(
    SCALARS,
    ROWS,
    st.lists(INNER, max_size=2),
    st.lists(st.lists(INNER, max_size=2), max_size=2),
    st.dictionaries(st.sampled_from(KEYS), INNER | ROWS, max_size=3),
)

PREFIXES = st.sampled_from(["c/e-9/", "c/e-10/", "c/e-1/", "c/e-01/", "c/last/", "c/e-2b/", "x"])
KINDS = st.sampled_from(["string", "number", "boolean"])
LEAVES: st.SearchStrategy[Any] = st.one_of(
    st.builds(Result, st.sampled_from(STEPS), st.sampled_from(OUTPUTS)),
    st.builds(Parameter, st.sampled_from(PARAMETERS)),
    st.just(Run()),
    st.just(Item()),
)


def _apply(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    mixed = inner | SCALARS | st.lists(inner | SCALARS, max_size=2)
    texts = inner | TEXT | URIS
    of_lists = st.sampled_from(
        [Function.SUM, Function.LARGEST, Function.NUMBERED, Function.COLUMN, Function.LISTED]
    )
    texts_only = st.sampled_from([Function.REMOVE_PREFIX, Function.CONTAINS])
    two = (
        *(Function.SUM, Function.LARGEST, Function.NUMBERED, Function.COLUMN, Function.TAG),
        *(Function.WHERE, Function.MISFITS, Function.LISTED, Function.PICKED),
        Function.TOP,
        *(Function.REMOVE_PREFIX, Function.CONTAINS, Function.FINGERPRINT, Function.DIFFERENCE),
        *(Function.SAME_CONTENT, Function.TIME_TEXT),
    )
    one = st.sampled_from([f for f in Function if f not in two])
    return st.one_of(
        st.builds(lambda f, a: Apply(f, (a,)), one, mixed | texts),
        st.builds(
            lambda f, a, k: Apply(f, (a, k)),
            of_lists,
            mixed,
            st.sampled_from(KEYS) | inner | TEXT,
        ),
        st.builds(
            lambda rows: Apply(Function.COUNT_FILES, (rows,)),
            st.lists(st.fixed_dictionaries({"Key": TEXT | URIS | inner}), max_size=3),
        ),
        st.builds(
            lambda rows, pattern, every, last: Apply(Function.PICKED, (rows, pattern, every, last)),
            st.lists(st.fixed_dictionaries({"Prefix": PREFIXES | inner}), max_size=6) | inner,
            st.sampled_from(["e-[^/]*[/]$", "(^|[/])e-[0-9]*1[/]$", "[/]$"]),
            st.integers(1, 3),
            st.integers(0, 3),
        ),
        st.builds(
            lambda rows, key, direction, count: Apply(Function.TOP, (rows, key, direction, count)),
            mixed | ROWS | st.lists(st.fixed_dictionaries({"a": st.integers(0, 3)}), max_size=6),
            st.sampled_from(KEYS),
            st.sampled_from(["max", "min"]),
            st.integers(1, 3),
        ),
        st.builds(
            lambda values: Apply(Function.FIRST_OF, tuple(values)),
            st.lists(inner | SCALARS, min_size=1, max_size=3),
        ),
        st.builds(
            lambda rows, key, op, value: Apply(Function.WHERE, (rows, key, op, value)),
            mixed
            | ROWS
            | st.lists(inner, max_size=2).map(
                lambda rows: Apply(Function.WHERE, (rows, "a", "gt", 0))
            ),
            st.sampled_from(KEYS),
            st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]),
            inner | st.integers(-9, 9) | TEXT | st.none(),
        ),
        st.builds(
            lambda rows, key, fields: Apply(
                Function.MISFITS, (rows, key, *(part for pair in fields.items() for part in pair))
            ),
            mixed | ROWS | st.lists(st.fixed_dictionaries({"a": TEXT, "b": inner}), max_size=4),
            st.just("a"),
            st.dictionaries(st.sampled_from(["b", "and", "Size"]), KINDS, max_size=2).map(
                lambda fields: {"a": "string", **fields}
            ),
        ),
        st.builds(
            lambda tags, key: Apply(Function.TAG, (tags, key)),
            mixed | st.lists(st.fixed_dictionaries({"Key": TAGS, "Value": TEXT | inner})),
            TAGS | inner,
        ),
        st.builds(lambda f, a, p: Apply(f, (a, p)), texts_only, texts, texts),
        st.builds(
            lambda time, minus_s, format: Apply(Function.TIME_TEXT, (time, minus_s, format)),
            TIMES | texts,
            SECONDS,
            FORMATS,
        ),
        st.builds(
            lambda arn: Apply(Function.ARN_NAME, (arn,)),
            texts | st.text(alphabet="a:/", max_size=6),
        ),
        st.builds(
            lambda a, b: Apply(Function.DIFFERENCE, (a, b)),
            mixed | st.lists(OBJECTS, max_size=3),
            mixed | st.lists(OBJECTS, max_size=3),
        ),
        st.builds(
            lambda source, copy, stored: Apply(Function.SAME_CONTENT, (source, copy, stored)),
            DESCRIBED | inner,
            DESCRIBED,
            ENCRYPTIONS,
        ),
        st.builds(
            lambda before, rows: Apply(Function.FINGERPRINT, (before, rows)),
            texts,
            mixed | st.lists(OBJECTS | st.fixed_dictionaries({"Key": inner}), max_size=3),
        ),
        st.builds(
            lambda f, parts: Apply(f, (join("s3://", *parts),)),
            st.sampled_from([Function.S3_BUCKET, Function.S3_KEY, Function.DIRECTORY]),
            st.lists(TEXT | URIS | inner, max_size=3),
        ),
        st.builds(
            lambda f, parts: Apply(f, (Apply(Function.DIRECTORY, (join("s3://", *parts),)),)),
            st.sampled_from([Function.S3_BUCKET, Function.S3_KEY]),
            st.lists(TEXT | URIS | inner, max_size=3),
        ),
    )


def _nodes(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, max_size=3).map(tuple)
    mixed = inner | SCALARS
    ops = st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"])
    return st.one_of(
        st.lists(TEXT | inner, max_size=3).map(lambda parts: join(*parts)),
        st.builds(Field, inner, st.sampled_from(KEYS)),
        st.builds(Compare, ops, mixed, mixed),
        st.builds(All, several),
        st.builds(nodes.Any, several),
        st.builds(Not, inner),
        st.builds(Best, inner, st.sampled_from(KEYS), st.sampled_from(["max", "min"])),
        _apply(inner),
    )


EXPRESSIONS = st.recursive(LEAVES, _nodes, max_leaves=6)


@dataclass(frozen=True)
class OneRun:
    """The values of one run."""

    values: Values
    known: bool
    """Whether the kinds of the values are told to what renders."""

    @property
    def scope(self) -> Scope:
        results = self.values.results
        kinds = {(s, o): _kind(v) for s, outputs in results.items() for o, v in outputs.items()}
        parameters = {name: _kind(value) for name, value in self.values.parameters.items()}
        facts = Facts(
            kinds=kinds if self.known else {},
            parameters=parameters if self.known else {},
            readers={},
            rows={},
        )
        item = Code("$item", _kind(self.values.current) if self.known else "any", "item")
        return Scope(facts, {step: f"${variable(step)}" for step in STEPS}, item)

    @property
    def bindings(self) -> dict[str, Any]:
        return {
            **{variable(step): outputs for step, outputs in self.values.results.items()},
            "parameters": self.values.parameters,
            "run": self.values.run_token,
            "item": self.values.current,
        }


def _kind(value: Json) -> Kind:
    match value:
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case Mapping():
            return "object"
        case None:
            return "any"
        case _:
            return "array"


RUNS = st.builds(
    OneRun,
    st.builds(
        Values,
        st.fixed_dictionaries(
            {step: st.fixed_dictionaries(dict.fromkeys(OUTPUTS, VALUES)) for step in STEPS}
        ),
        st.fixed_dictionaries(dict.fromkeys(PARAMETERS, SCALARS)),
        st.just("0123456789ab"),
        VALUES,
    ),
    st.booleans(),
)


def plain(value: Any) -> Any:
    """A value as JSONata has it: every number is a double."""
    return json.loads(json.dumps(value), parse_int=float)
