"""Faster loading of moto's engine and of definitions.

In moto 5.2.5 the engine imports `moto.batch` for one enumeration, and with it the tables of EC2:
1.1 CPU seconds in every server that runs a state machine. It also parses a definition when the
state machine is created and again at every start, a quarter of a second each time.
`tests/local/engine/test_loading.py` fails when either changes.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from orchestration.local.engine.seams import replace

_BATCH = "moto.batch"
_LONGEST_REMEMBERED = 64


def import_engine() -> None:
    """Import moto's engine without the package `moto.batch` and all that it imports."""
    if _BATCH not in sys.modules and (found := importlib.util.find_spec(_BATCH)):
        # A package without its `__init__`, only during the import.
        package = ModuleType(_BATCH)
        package.__path__ = list(found.submodule_search_locations or ())
        sys.modules[_BATCH] = package
        try:
            importlib.import_module("moto.stepfunctions.parser.models")
        finally:
            for name in [n for n in sys.modules if n == _BATCH or n.startswith(f"{_BATCH}.")]:
                del sys.modules[name]
    importlib.import_module("moto.stepfunctions.parser.models")


def remember(definition: str) -> None:
    """Parse a definition, for accounts that are forked from this process."""
    import_engine()
    _tree(definition)


def install() -> None:
    """Make the engine parse each definition once.

    Every execution gets a program of its own, because a program holds the state of a run.
    """
    from moto.stepfunctions.parser.asl.parse import asl_parser
    from moto.stepfunctions.parser.asl.parse.preprocessor import Preprocessor

    _stock()
    # The program that it would make beside the tree is nobody's.
    replace(asl_parser, "Preprocessor", _NoProgram)

    def parse(definition: str) -> tuple[Any, Any]:
        parsed = _tree(definition)
        return Preprocessor().visit(parsed), parsed

    replace(asl_parser.AmazonStateLanguageParser, "parse", staticmethod(parse))


class _NoProgram:
    def visit(self, tree: Any) -> None:
        """Make no program of a tree."""


@functools.cache
def _stock() -> Callable[[str], tuple[Any, Any]]:
    """Return moto's own method, which is asked for before it is replaced."""
    from moto.stepfunctions.parser.asl.parse import asl_parser

    return asl_parser.AmazonStateLanguageParser.parse


@functools.lru_cache(maxsize=_LONGEST_REMEMBERED)
def _tree(definition: str) -> Any:
    return _stock()(definition)[1]
