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
import re
import sys
from types import ModuleType
from typing import Any

from orchestration.local.engine.seams import replace

_BATCH = "moto.batch"
_LONGEST_REMEMBERED = 64
# A text as it stands, or the exponent of a number with zeros in front.
_PADDED_EXPONENT = re.compile(r'("(?:[^"\\]|\\.)*")|(?<=\d)([eE][+-]?)0+(?=\d)')


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

    def parse(definition: str) -> tuple[Any, Any]:
        parsed = _tree(definition)
        return asl_parser.Preprocessor().visit(parsed), parsed

    replace(asl_parser.AmazonStateLanguageParser, "parse", staticmethod(parse))


@functools.lru_cache(maxsize=_LONGEST_REMEMBERED)
def _tree(definition: str) -> Any:
    from antlr4 import PredictionMode
    from moto.stepfunctions.parser.asl.parse.asl_parser import ASLParserException

    try:
        # What this way accepts, it reads as the other does, in a fraction of the time.
        return _parsed(definition, PredictionMode.SLL)
    except ASLParserException:
        return _parsed(definition, PredictionMode.LL)


def _parsed(definition: str, mode: int) -> Any:
    """Parse a definition as moto does, with a mode of ANTLR's, and make no program of it."""
    from antlr4 import CommonTokenStream, InputStream

    # Without annotations.
    asl_parser: Any = importlib.import_module("moto.stepfunctions.parser.asl.parse.asl_parser")
    listener = asl_parser.SyntaxErrorListener()
    # JSON has 1e-05, as Python writes it; moto's grammar knows 1e-5 only.
    text = _PADDED_EXPONENT.sub(lambda found: found[1] or found[2], definition)
    lexer = asl_parser.ASLLexer(InputStream(text))
    parser = asl_parser.ASLParser(CommonTokenStream(lexer))
    parser._interp.predictionMode = mode
    parser.removeErrorListeners()
    parser.addErrorListener(listener)
    tree = parser.state_machine()
    if listener.errors:
        raise asl_parser.ASLParserException(errors=listener.errors)
    return tree
