"""Values that are not known yet.

An :class:`Expression` stands for a value that a run will have; a :class:`Ref` is the one users
meet: an output of another stage. Neither pretends to be its value: ``str()``, ``format()``,
``bool()``, ordering and iteration are refused with the way out in the message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from orchestration.errors import ReferenceUseError

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

T_co = TypeVar("T_co", covariant=True)

STAGE_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
"""Names of stages, steps, outputs and parameters: snake case, no double underscore, so that they
can be joined without collisions in Step Functions states, JSONata variables and Airflow task
ids."""


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
        self._refuse("tested for truth", "give the condition to a gate (Threshold) of the stage")

    def __iter__(self) -> NoReturn:
        self._refuse("iterated over", "pass it on whole")

    def __contains__(self, item: object) -> NoReturn:
        # Without this, `in` turns the refusal of __iter__ into a message of its own.
        self._refuse("searched", "pass it on whole")

    def __getitem__(self, key: object) -> NoReturn:
        self._refuse("taken apart", "pass it on whole")

    def __lt__(self, other: object) -> NoReturn:
        self._refuse("compared in Python", "give the comparison to a gate (Threshold) of the stage")

    __le__ = __gt__ = __ge__ = __lt__

    def __add__(self, other: object) -> NoReturn:
        self._refuse("added to", "put text together with join(<reference>, '/data')")

    __radd__ = __add__

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from orchestration.expressions.syntax import core_schema

        return core_schema()

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        from orchestration.expressions.syntax import json_schema

        return json_schema()


# No slots: with them Python 3.11's frozen dataclasses can't be made as Ref[str](…).
@dataclass(frozen=True, repr=False)
class Ref(Expression[T_co]):
    """An output of another stage; in YAML ``{ref: train.checkpoints}``."""

    stage: str
    output: str

    def __repr__(self) -> str:
        return f"<reference to {self.stage}.{self.output}>"
