"""Values that are not known before a run, and how users write them.

An :class:`Expression` stands for a value that a run will have. Users write an output of another
stage (:class:`Ref`), a parameter, the run's identity, text joined with any of these, the first of
several that is there (:class:`FirstOf`), and the name in an ARN (:class:`ArnName`). In YAML each is
a mapping with one key: ``{ref: train.checkpoints}``, ``{parameter: bucket}``, ``{run: id}``,
``{join: ["s3://", {parameter: bucket}, "/digits"]}``, ``{first_of: [{ref: full.model}, …]}``,
``{arn_name: {ref: ask.topic}}``, ``{time_text: {of: {parameter: until}, format: "%Y"}}``. Text is
never searched for references.

No expression pretends to be its value: ``str()``, ``format()``, ``bool()``, ordering and iteration
are refused with the way out in the message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    NoReturn,
    TypeVar,
    cast,
)

from orchestration.errors import ExpressionError, ReferenceUseError, near
from orchestration.refs import times
from orchestration.refs.forms import (
    EXAMPLES,
    FORMS,
    OUTCOME_FIELDS,
    STAGE_NAME,
    WHOLE,
    OutcomeField,
    json_schema,
)

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

T_co = TypeVar("T_co", covariant=True)


class Expression(Generic[T_co]):
    """A value of type ``T_co`` that is known only while a run goes on."""

    __slots__ = ()

    def _refuse(self, use: str, instead: str) -> NoReturn:
        raise ReferenceUseError(
            f"{self!r} is not known before the run, so it can't be {use}; {instead}"
        )

    def __str__(self) -> NoReturn:
        self._refuse(
            "turned into text", "put it into text with join('s3://', <reference>, '/data')"
        )

    def __format__(self, spec: str) -> NoReturn:
        self._refuse(
            "formatted (an f-string or str.format around it)",
            "use join('s3://', <reference>, '/data') instead of f's3://{<reference>}/data'",
        )

    def __bool__(self) -> NoReturn:
        self._refuse(
            "tested for truth", "give the condition to a stage: when={'equal': [<reference>, 1]}"
        )

    def __iter__(self) -> NoReturn:
        self._refuse("iterated over", "pass it on whole")

    def __contains__(self, item: object) -> NoReturn:
        # Without this, `in` turns the refusal of __iter__ into a message of its own.
        self._refuse("searched", "pass it on whole")

    def __getitem__(self, key: object) -> NoReturn:
        self._refuse("taken apart", "pass it on whole")

    def __lt__(self, other: object) -> NoReturn:
        self._refuse(
            "compared in Python", "give the comparison to a stage: when={'less': [<reference>, 1]}"
        )

    __le__ = __gt__ = __ge__ = __lt__

    def __add__(self, other: object) -> NoReturn:
        self._refuse("added to", "put text together with join(<reference>, '/data')")

    __radd__ = __add__

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(
            parse, serialization=core_schema.plain_serializer_function_ser_schema(written)
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return json_schema()


# No slots: with them Python 3.11's frozen dataclasses can't be made as Ref[str](…).
@dataclass(frozen=True, repr=False)
class Ref(Expression[T_co]):
    """An output of another stage; in YAML ``{ref: train.checkpoints}``."""

    stage: str
    """Name of the stage."""
    output: str
    """Name of its output, as the stage's class has it."""

    def __repr__(self) -> str:
        return f"<reference to {self.stage}.{self.output}>"


@dataclass(frozen=True, slots=True)
class Parameter(Expression[object]):
    """A parameter of the pipeline: execution input in Step Functions, a DAG param in Airflow."""

    name: str


@dataclass(frozen=True, slots=True)
class Run(Expression[str]):
    """The run's identity as 12 hexadecimal digits, equal for every attempt of one run."""


@dataclass(frozen=True, slots=True)
class RunAttempt(Expression[str]):
    """The run's identity, with the number of a later attempt behind it: ``0123456789ab-2``."""


@dataclass(frozen=True, slots=True)
class Join(Expression[str]):
    """Texts joined without a separator; numbers are written as :attr:`Function.TEXT` does."""

    parts: tuple[str | Expression[object], ...]


def join(*parts: str | Expression[object]) -> Expression[str]:
    """Join text and references: ``join("s3://", parameter("bucket"), "/digits")``.

    >>> join("a", "b", join("c", run_id()))
    Join(parts=('abc', Run()))
    """
    flat: list[str | Expression[object]] = []
    for part in parts:
        for piece in part.parts if isinstance(part, Join) else (part,):
            if not isinstance(piece, str | Expression):
                raise ExpressionError(
                    f"join takes text and references, not {type(piece).__name__}: {piece!r}"
                )
            if isinstance(piece, str) and flat and isinstance(flat[-1], str):
                flat[-1] += piece
            elif piece != "":
                flat.append(piece)
    return Join(tuple(flat))


@dataclass(frozen=True)
class FirstOf(Expression[T_co]):
    """The first of several values that is there: outputs of stages that may be skipped.

    In YAML ``{first_of: [{ref: full.model}, {ref: quick.model}]}``.
    """

    parts: tuple[bool | int | float | str | Expression[object], ...]


@dataclass(frozen=True, slots=True)
class ArnName(Expression[str]):
    """The name at the end of an ARN, in YAML ``{arn_name: {parameter: pipeline}}``."""

    of: Expression[object]


@dataclass(frozen=True, slots=True)
class TimeText(Expression[str]):
    """A time, or one before it, as text: ``{time_text: {of: …, minus_days: 7, format: "%Y"}}``."""

    of: Expression[object]
    minus_s: int
    format: str


@dataclass(frozen=True, slots=True)
class Each(Expression[Any]):
    """The element that a stage with ``for_each`` is at, or a field of it: ``{each: market}``."""

    field: str = WHOLE


@dataclass(frozen=True, slots=True)
class RunOutcome(Expression[str]):
    """The state, error or cause of the run, once it has ended; in YAML ``{outcome: error}``."""

    field: OutcomeField


def run_outcome(field: OutcomeField) -> Expression[str]:
    """Refer to how the run ended: its ``state``, ``error`` or ``cause``.

    The state is ``succeeded`` or ``failed``; error and cause are empty texts where it succeeded.
    In YAML ``{outcome: error}``. Only the stages of ``on_failure``, ``on_success`` and ``always``
    can read it.
    """
    if field not in OUTCOME_FIELDS:
        raise ExpressionError(f"a run's outcome has no {field!r}{near(str(field), OUTCOME_FIELDS)}")
    return RunOutcome(field)


def each_item(field: str = WHOLE) -> Expression[Any]:
    """Refer to the element that a stage with ``for_each`` is at; in YAML ``{each: item}``.

    Where elements are objects, name a field of them: ``{each: market}``.
    """
    if STAGE_NAME.fullmatch(field) is None:
        raise ExpressionError(f"expected the name of a field in snake case, got {field!r}")
    return Each(field)


def first_of(*parts: T_co | Expression[T_co]) -> Expression[T_co]:
    """Take the first value that is there: ``first_of(full.outputs.model, quick.outputs.model)``."""
    for part in parts:
        if not isinstance(part, str | bool | int | float | Expression):
            raise ExpressionError(
                f"first_of takes references, text, numbers, true and false, not {part!r}"
            )
    if len(parts) < 2:
        raise ExpressionError(f"first_of takes two values or more, got {len(parts)}")
    return FirstOf(cast("Any", parts))


def arn_name(of: Expression[Any]) -> Expression[str]:
    """Take the name out of an ARN: all behind its last slash or colon.

    Of ``arn:aws:sagemaker:us-east-1:111122223333:pipeline/churn`` that is ``churn``. In YAML
    ``{arn_name: {parameter: pipeline}}``.
    """
    if not isinstance(of, Expression):
        raise ExpressionError(f"arn_name takes a reference; write the name itself for {of!r}")
    return ArnName(of)


def time_text(
    of: Expression[Any], *, minus_days: int = 0, minus_hours: int = 0, format: str = times.ISO
) -> Expression[str]:
    """Write a time, or one before it, in UTC: ``time_text(parameter("until"), format="%Y/%m/%d")``.

    The time is a text like ``2027-03-01T06:00:00Z`` or ``2027-03-01``, as a schedule gives it to
    its ``time_parameter``. ``format`` has ``%Y``, ``%m``, ``%d``, ``%H``, ``%M`` and ``%S`` as
    :meth:`datetime.datetime.strftime` does, and any other text.
    """
    if not isinstance(of, Expression):
        raise ExpressionError(f"time_text takes a reference; write the text itself for {of!r}")
    wrong = times.problem(minus_days=minus_days, minus_hours=minus_hours, format=format)
    if wrong:
        raise ExpressionError(f"time_text: {wrong}")
    return TimeText(of, times.seconds(minus_days, minus_hours), format)


def parameter(name: str) -> Expression[str]:
    """A parameter of the pipeline, by name; in YAML ``{parameter: bucket}``."""
    return cast("Expression[str]", Parameter(name))


def run_id() -> Expression[str]:
    """The run's identity as 12 hexadecimal digits; in YAML ``{run: id}``."""
    return Run()


def run_attempt() -> Expression[str]:
    """The run's identity, with the attempt's number from the second on.

    It tells apart what each attempt acquires anew; on Airflow it is the run's identity alone.
    """
    return RunAttempt()


def is_given(value: object) -> bool:
    """Return whether a field holds anything: a reference counts, whatever its value will be."""
    return isinstance(value, Expression) or bool(value)


def parse(value: object) -> Expression[object]:
    """An expression from its written form; a ``ValueError`` says what is wrong."""
    if isinstance(value, Expression):
        return value
    if not isinstance(value, Mapping) or len(value) != 1:
        raise ValueError(f"expected a reference, got {value!r}; write one of {EXAMPLES}")
    [(form, argument)] = value.items()
    match form, argument:
        case "ref", str():
            return _ref(argument)
        case "parameter", str():
            return parameter(argument)
        case (
            ("run", "id")
            | ("each", str())
            | ("outcome", "state" | "error" | "cause")
            | ("arn_name", Mapping() | Expression())
            | ("time_text", Mapping())
        ):
            return _of_run(form, argument)
        case "join", list() | tuple():
            return join(*(part if isinstance(part, str) else parse(part) for part in argument))
        case "first_of", list() | tuple():
            return first_of(*(parse(p) if isinstance(p, Mapping) else p for p in argument))
    unlike = f"expected a reference, got {dict(value)!r}"
    if form == "outcome":
        raise ValueError(f"{unlike}; a run's outcome has {', '.join(OUTCOME_FIELDS)}")
    if form not in FORMS and get_close_matches(str(form), FORMS, n=1):
        raise ValueError(f"{unlike}{near(str(form), FORMS)}")
    raise ValueError(f"{unlike}; write one of {EXAMPLES}")


def _of_run(form: object, argument: Any) -> Expression[object]:
    match form:
        case "run":
            return run_id()
        case "each":
            return each_item(argument)
        case "arn_name":
            return arn_name(parse(argument))
        case "time_text":
            return _time_text(argument)
        case _:
            return run_outcome(argument)


def _time_text(argument: Mapping[str, Any]) -> Expression[str]:
    given = dict(argument)
    unknown = [name for name in given if name not in times.FIELDS]
    if unknown:
        name = str(unknown[0])
        raise ValueError(f"time_text has no {name!r}{near(name, times.FIELDS)}")
    if "of" not in given:
        raise ValueError("time_text: of: is required: the parameter or output that holds the time")
    try:
        return time_text(parse(given.pop("of")), **given)
    except ExpressionError as error:
        raise ValueError(str(error)) from None


def _ref(text: str) -> Ref[object]:
    stage, dot, output = text.partition(".")
    if not dot or not STAGE_NAME.fullmatch(stage) or not STAGE_NAME.fullmatch(output):
        raise ValueError(f"expected a reference, got {text!r}; write {{ref: <stage>.<output>}}")
    return Ref(stage, output)


def written(node: Expression[object]) -> object:
    """An expression as a user would write it in YAML, where the syntax has a form for it."""
    match node:
        case Ref(stage, output):
            return {"ref": f"{stage}.{output}"}
        case Parameter(name):
            return {"parameter": name}
        case Run():
            return {"run": "id"}
        case Each(field):
            return {"each": field}
        case RunOutcome(field):
            return {"outcome": field}
        case Join(parts):
            return {"join": [p if isinstance(p, str) else written(p) for p in parts]}
        case ArnName(of):
            return {"arn_name": written(of)}
        case TimeText(of, minus_s, format):
            return {"time_text": {"of": written(of), **times.written(minus_s, format)}}
        case FirstOf(parts):
            return {"first_of": [written(p) if isinstance(p, Expression) else p for p in parts]}
        case _:
            raise ValueError(f"{node!r} has no written form")
