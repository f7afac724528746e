"""moto's engine is loaded without what no state machine here needs, and reads a text once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

LOADED = """
import json, sys
from orchestration.local.account.activity import Activity
from orchestration.local.account.clock import Clock
from orchestration.local.account.faults import Faults
from orchestration.local import engine
engine.install(Clock(1), Activity(), Faults(), "http://127.0.0.1:9")
after = sorted(name for name in sys.modules if name.startswith(("moto.batch", "moto.ec2")))
import moto.batch
print(json.dumps([after, hasattr(moto.batch, "batch_backends")]))
"""

PARSED = """
import json
from orchestration.local.account.activity import Activity
from orchestration.local.account.clock import Clock
from orchestration.local.account.faults import Faults
from orchestration.local import engine
engine.install(Clock(1), Activity(), Faults(), "http://127.0.0.1:9")
from moto.stepfunctions.parser.asl.antlr.runtime.ASLParser import ASLParser
from moto.stepfunctions.parser.asl.parse.asl_parser import AmazonStateLanguageParser
from moto.stepfunctions.parser.asl.parse.preprocessor import Preprocessor
read, made = [], []
stock, program = ASLParser.state_machine, Preprocessor.visitState_machine
ASLParser.state_machine = lambda self: read.append(1) or stock(self)
Preprocessor.visitState_machine = lambda self, tree: made.append(1) or program(self, tree)
text = '{"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}'
programs = [AmazonStateLanguageParser.parse(text)[0] for _ in range(3)]
print(json.dumps([len(read), len(made), programs[0] is programs[1]]))
"""

AS_MOTO = """
import json, sys
from pathlib import Path
from moto.stepfunctions.parser.asl.parse.asl_parser import (
    AmazonStateLanguageParser,
    ASLParserException,
)
from orchestration.local.engine import loading
stock = AmazonStateLanguageParser.parse
def read(parse, text):
    try:
        return parse(text).toStringTree()
    except ASLParserException as error:
        return error.errors
wrong = '{"StartAt": "A", "States": {"A": {"Type": "Wrong"}}}'
texts = [Path(sys.argv[1]).read_text(), wrong, '{"a"']
print(json.dumps([read(loading._tree, t) == read(lambda t: stock(t)[1], t) for t in texts]))
"""


def _said(script: str, *arguments: str) -> list[object]:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
    )
    said: list[object] = json.loads(done.stdout)
    return said


def test_the_engine_loads_no_tables_of_ec2_and_leaves_batch_to_whoever_asks_for_it() -> None:
    assert _said(LOADED) == [[], True]


def test_a_definition_is_read_once_and_each_run_has_a_program_of_its_own() -> None:
    assert _said(PARSED) == [1, 3, False]


def test_a_definition_is_read_as_moto_reads_it_and_refused_in_its_words() -> None:
    machine = Path(__file__).parents[3] / "statemachines" / "digits.companion.asl.json"
    assert _said(AS_MOTO, str(machine)) == [True, True, True]
