"""Laws of step graphs: edges, order, visibility, rewriting."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.errors import GraphError
from orchestration.expressions import Compare, Item, Result, parameter, substitute
from orchestration.graph import (
    Alternative,
    Call,
    Choose,
    ErrorPattern,
    Fail,
    Fallback,
    ForEach,
    Graph,
    Guarded,
    Operation,
    Output,
    Parallel,
    Read,
    Step,
    Until,
    Wait,
    all_steps,
    bodies,
    candidates,
    operations,
    ordered,
    reads,
    rewrite,
    trees,
    upstream,
    visible,
)


def call(name: str, *read: str, after: tuple[str, ...] = ()) -> Call:
    request = {"Values": [Result(step, "out") for step in read]}
    return Call(
        name=name,
        operation=Operation("s3", "GetObject", request),
        outputs={"out": Output(("ETag",))},
        after=after,
    )


def every_kind() -> Graph:
    """One step of each kind, with something to read in each place that holds a tree."""
    seen = parameter("p")
    op = Operation("fsx", "DescribeFileSystems", {"x": seen})
    until = Until(poll=op, status=("a",), success=frozenset(), failure=frozenset(), stop=op)
    acquire = replace(call("guard.acquire"), operation=op, until=until)
    other = Alternative(label=seen, operation=op, poll=op, stop=op)
    fallback = Fallback(label=seen, alternatives=(other, replace(other, stop=None)))
    return Graph(
        (
            replace(call("call"), operation=op, until=until, fallback=fallback),
            Read(name="read", uri=seen, outputs={}),
            Choose(
                name="choose",
                condition=Compare("eq", seen, 1),
                then=Graph((Wait(name="wait", seconds=seen),)),
                otherwise=Graph((Fail(name="fail", error="E", cause=seen),)),
            ),
            ForEach(
                name="each",
                items=seen,
                body=Graph((replace(call("each.call"), operation=op),)),
                collect={"x": seen, "y": Item()},
                max_concurrency=1,
            ),
            Parallel(name="both", branches=(Graph((call("one"),)), Graph((call("two"),)))),
            Guarded(
                name="guard",
                acquire=acquire,
                body=Graph((call("guard.body", "guard.acquire"),)),
                cleanup=Graph((replace(call("guard.release"), until=until),)),
            ),
        )
    )


@st.composite
def dags(draw: st.DrawFn) -> Graph:
    """Steps that read earlier ones or wait for them, in any order."""
    names = [f"s{n}" for n in range(draw(st.integers(0, 8)))]
    steps: list[Step] = []
    for index, name in enumerate(names):
        earlier = st.lists(st.sampled_from(names[:index]), max_size=3) if index else st.just([])
        steps.append(call(name, *draw(earlier), after=tuple(draw(earlier))))
    return Graph(tuple(draw(st.permutations(steps))))


@given(dags())
def test_upstream_is_what_is_read_and_waited_for(graph: Graph) -> None:
    assert upstream(graph) == {step.name: reads(step) for step in graph.steps}


@given(dags())
def test_order_is_a_permutation_that_respects_every_edge(graph: Graph) -> None:
    order = [step.name for step in ordered(graph)]
    assert sorted(order) == sorted(step.name for step in graph.steps)
    edges = [(a, b) for b, before in upstream(graph).items() for a in before]
    assert all(order.index(a) < order.index(b) for a, b in edges)


@given(dags())
def test_ordering_twice_changes_nothing_more(graph: Graph) -> None:
    once = ordered(graph)
    assert ordered(Graph(once)) == once


@given(dags(), st.data())
def test_an_edge_back_is_reported_as_a_cycle_by_its_members(
    graph: Graph, data: st.DataObject
) -> None:
    first, *_, last = [call("first"), *graph.steps, call("last", "first")]
    closed = Graph((replace(first, after=("last",)), *graph.steps, last))
    with pytest.raises(GraphError, match=r"first -> last -> first|last -> first -> last"):
        ordered(closed)


def test_independent_steps_have_no_edge() -> None:
    assert set(upstream(Graph((call("a"), call("b")))).values()) == {frozenset()}


def test_what_reads_inside_a_guard_waits_for_the_whole_guard() -> None:
    guard = Guarded(
        name="guard",
        acquire=call("create"),
        body=Graph((call("inner", "outer"),)),
        cleanup=Graph((call("delete", "create"),)),
    )
    graph = Graph((call("outer"), guard, call("later", "inner")))
    assert upstream(graph) == {
        "outer": frozenset(),
        "guard": frozenset(["outer"]),
        "later": frozenset(["guard"]),
    }


@pytest.mark.parametrize(
    ("name", "seen"),
    [
        ("choose", {"choose"}),
        ("each", {"each"}),
        ("both", {"both", "one", "two"}),
        ("guard", {"guard", "guard.acquire", "guard.body", "guard.release"}),
    ],
)
def test_results_inside_branches_and_loops_stay_there(name: str, seen: set[str]) -> None:
    [step] = [s for s in every_kind().steps if s.name == name]
    assert visible(step) == seen


def test_rewriting_with_the_identity_changes_nothing() -> None:
    assert [rewrite(step, lambda tree: tree) for step in every_kind().steps] == list(
        every_kind().steps
    )


def test_rewriting_reaches_every_tree() -> None:
    def known(tree: Any) -> Any:
        return substitute(tree, lambda node: "known" if node == parameter("p") else node)

    after = Graph(tuple(rewrite(step, known) for step in every_kind().steps))
    left = [tree for step in all_steps(after) for tree in trees(step)]
    assert "Parameter" not in repr(left)
    assert repr(left).count("known") == 23


def test_what_a_call_asks_for_in_order_is_itself_and_each_alternative() -> None:
    step = every_kind().steps[0]
    assert isinstance(step, Call)
    asked = candidates(step)
    assert [c.fallback.alternatives for c in asked if c.fallback is not None] == [(), (), ()]
    assert [c.until.stop is None for c in asked if c.until is not None] == [False, False, True]
    assert {c.name for c in asked} == {"call"}
    assert len(list(operations(step))) == 3 + 3 + 2
    assert candidates(asked[1]) == (asked[1],)


def test_only_the_beginning_of_a_reason_tells_of_want_of_capacity() -> None:
    fallback = Fallback(label="", alternatives=(), reasons=("CapacityError",))
    assert fallback.lacks("CapacityError: Unable to provision")
    assert not fallback.lacks("AlgorithmError: CapacityError: Unable to provision")
    assert not fallback.lacks(None)


def test_all_steps_goes_into_every_body() -> None:
    graph = every_kind()
    inner = [s for step in all_steps(graph) for body in bodies(step) for s in body.steps]
    names = [step.name for step in all_steps(graph)]
    assert sorted(names) == sorted(step.name for step in (*graph.steps, *inner))
    assert {"wait", "fail", "each.call", "one", "two", "guard.acquire", "guard.release"} < set(
        names
    )


def test_an_output_without_a_default_stays_without_one_when_copied() -> None:
    for output in (Output(("a",)), Output(("a",), default=None)):
        for copied in (copy.deepcopy(output), pickle.loads(pickle.dumps(output))):
            assert (copied, copied.optional) == (output, output.optional)


@pytest.mark.parametrize(
    ("code", "message", "matches"),
    [
        ("ResourceInUse", "it exists already", True),
        ("ResourceInUseException", "it exists already", True),
        ("ResourceInUse", "another text", False),
        ("ResourceLimitExceeded", "it exists already", False),
    ],
)
def test_an_error_is_recognised_by_code_and_text(code: str, message: str, matches: bool) -> None:
    assert ErrorPattern("ResourceInUse", "exists").matches(code, message) is matches
