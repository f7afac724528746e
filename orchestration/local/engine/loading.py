"""What moto's engine does twice, or for nobody: loading EC2, and reading a definition again.

With moto 5.2.5, a server that runs one state machine spent 1.1 CPU seconds on tables of EC2 that
`moto.batch` loads, for one list of job states that the integration of AWS Batch asks for, and a
quarter of a second on each reading of a definition: when it is created and at every start.
`tests/local/engine/test_loading.py` fails when either is no longer so.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any

from orchestration.local.engine.seams import replace

_BATCH = "moto.batch"
_LONGEST_REMEMBERED = 64


def import_engine() -> None:
    """Import moto's engine, without the package `moto.batch` and the half of moto behind it."""
    if _BATCH not in sys.modules and (found := importlib.util.find_spec(_BATCH)):
        # The package without its `__init__`, for as long as the import takes.
        package = ModuleType(_BATCH)
        package.__path__ = list(found.submodule_search_locations or ())
        sys.modules[_BATCH] = package
        try:
            importlib.import_module("moto.stepfunctions.parser.models")
        finally:
            for name in [n for n in sys.modules if n == _BATCH or n.startswith(f"{_BATCH}.")]:
                del sys.modules[name]
    importlib.import_module("moto.stepfunctions.parser.models")


def install() -> None:
    """Make the engine parse a text once; the program that is made of it has a run's state."""
    from moto.stepfunctions.parser.asl.parse import asl_parser
    from moto.stepfunctions.parser.asl.parse.preprocessor import Preprocessor

    stock = asl_parser.AmazonStateLanguageParser.parse

    @functools.lru_cache(maxsize=_LONGEST_REMEMBERED)
    def tree(definition: str) -> Any:
        return stock(definition)[1]

    def parse(definition: str) -> tuple[Any, Any]:
        parsed = tree(definition)
        return Preprocessor().visit(parsed), parsed

    replace(asl_parser.AmazonStateLanguageParser, "parse", staticmethod(parse))
