"""Pictures of workflows: every step once, every edge, and user strings that stay text."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pydot
import pytest

from orchestration import Pipeline
from orchestration.backends.picture import dot, mermaid
from orchestration.expressions import Compare
from orchestration.graph import (
    Call,
    Choose,
    Fail,
    ForEach,
    Graph,
    Guarded,
    Operation,
    Parallel,
    Step,
    Wait,
    Workflow,
    all_steps,
    ordered,
    upstream,
)
from tests.airflow.workflows import falling_back
from tests.cli.conftest import ROOT

# pydot 4 calls pyparsing by names that pyparsing 3.3 has deprecated.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

NASTY = 'a"b\n#;`x` <b>&lt;{{ y }}\\n\\ | end ü ]) %%{init}%% \u2028'


def call(name: str, *after: str) -> Call:
    return Call(name=name, operation=Operation("s3", "ListObjectsV2", {}), after=after)


def every_kind() -> Workflow:
    steps: tuple[Step, ...] = (
        call("end.end"),
        Fail(name="graph.subgraph", error=NASTY, cause="c", after=("end.end",)),
        Parallel(name="x.par", branches=(Graph((call("x.a"),)), Graph((call("o.b"),)), Graph())),
        Guarded(
            name="g.guard",
            acquire=call("g.acquire"),
            body=Graph((call("g.use"), call("other.use", "g.use"))),
            cleanup=Graph((call("g.release"),)),
            after=("x.par",),
        ),
        ForEach(
            name="e.each", items=[], body=Graph(), collect={}, max_concurrency=2, after=("g.guard",)
        ),
        Choose(
            name="c.choose",
            condition=Compare("eq", 1, 1),
            then=Graph((call("c.first"), Wait(name="c.pause", seconds=3, after=("c.first",)))),
            otherwise=Graph((Fail(name="c.failed", error="x", cause="y"),)),
            after=("e.each",),
        ),
        call("z.last", "c.choose"),
    )
    return Workflow(name='end" --- # `x`', graph=Graph(steps))


def workflows() -> list[Workflow]:
    files = ("digits", "llm_fsx")
    return [every_kind(), *(Pipeline.load(ROOT / f"dags/{f}.yaml").lower() for f in files)]


@pytest.mark.parametrize("workflow", workflows(), ids=lambda workflow: workflow.name[:6])
def test_every_step_is_drawn_once(workflow: Workflow) -> None:
    leaves = [
        step
        for step in all_steps(workflow.graph)
        if not isinstance(step, ForEach | Parallel | Guarded)
    ]
    drawn = Counter(re.findall(r"^ *(step_\w+)[\[{(]", mermaid(workflow), re.MULTILINE))
    assert drawn == Counter(f"step_{step.name.replace('.', '__')}" for step in leaves)
    drawn = Counter(re.findall(r"^ *(step_\w+) \[", dot(workflow), re.MULTILINE))
    assert drawn == Counter(f"step_{step.name.replace('.', '__')}" for step in leaves)


@pytest.mark.parametrize("workflow", workflows(), ids=lambda workflow: workflow.name[:6])
def test_edges_lead_to_everything_that_waits(workflow: Workflow) -> None:
    """Every step that waits for others is reached, whatever edges were left out as implied."""
    edges = re.findall(r"^ *(\w+) -->(?:\|\w+\|)? *(?:\|\w+\| )?(\w+)$", mermaid(workflow), re.M)
    targets = {target for _, target in edges}
    before = upstream(workflow.graph)
    for step in ordered(workflow.graph):
        name = step.name.replace(".", "__")
        if before[step.name]:
            assert targets & {f"step_{name}", f"box_{name}"}, step.name


@pytest.mark.parametrize("draw", [mermaid, dot])
def test_boxes_close(draw: object) -> None:
    for workflow in workflows():
        text = mermaid(workflow) if draw is mermaid else dot(workflow)
        bare = re.sub(r'"(\\.|[^"\\])*"', '""', text)
        if draw is dot:
            assert bare.count("{") == bare.count("}")
        else:
            lines = [line.strip() for line in bare.splitlines()]
            opened = sum(line.startswith("subgraph ") for line in lines)
            assert opened == lines.count("end")


def test_what_users_write_stays_text_in_mermaid() -> None:
    [line] = [line for line in mermaid(every_kind()).splitlines() if "graph__subgraph{{" in line]
    label = line.partition('{{"')[2].removesuffix('"}}').partition("<br/>")[2]
    # Mermaid's entities are code points; nothing that it reads as markup is left.
    assert re.sub(r"#(\d+);", lambda match: chr(int(match[1])), label) == f"fail: {NASTY}"
    assert re.search(r'["<>{}`|\\\]]', label) is None


def test_what_a_job_falls_back_on_is_drawn() -> None:
    drawn = mermaid(Workflow(name="w", graph=Graph((falling_back("train.job"),))))
    label = "1 x ml.p5.48xlarge<br/>else 1 x ml.p4d.24xlarge<br/>else 1 x ml.g5.48xlarge"
    assert label in drawn


def parsed(text: str) -> Any:
    graphs = pydot.graph_from_dot_data(text)
    assert graphs is not None
    [graph] = graphs
    return graph


def test_what_users_write_stays_text_in_dot() -> None:
    graph = parsed(dot(every_kind()))
    assert graph.get_name() == '"end\\" --- # `x`"'
    [stage] = graph.get_subgraph("cluster_stage_graph")
    [node] = stage.get_node("step_graph__subgraph")
    text = node.get("label")[1:-1].replace("\\n", "\n", 2)
    unescaped = re.sub(r"\\(.)", r"\1", text).replace("&amp;", "&")
    assert unescaped.split("\n", 1)[1] == f"fail: {NASTY}"


@pytest.mark.parametrize("workflow", workflows(), ids=lambda workflow: workflow.name[:6])
def test_dot_is_read_by_a_parser_of_others(workflow: Workflow) -> None:
    graph = parsed(dot(workflow))
    assert len(graph.get_edges()) == mermaid(workflow).count(" --> ")


def test_drawing_twice_gives_the_same() -> None:
    for workflow in workflows():
        assert mermaid(workflow) == mermaid(workflow)
        assert dot(workflow) == dot(workflow)
