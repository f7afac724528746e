"""The rule: which model is the best, and whether it is good enough."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Iterator, Mapping, Sequence

from .bootstrap import FEWEST, Interval, improvement
from .reports import Evaluation, NotUsable, Scores, scores

PROMOTED = "promoted"
CHAMPION_KEPT = "champion_kept"
BELOW_THRESHOLD = "below_threshold"
BOUNDS_MISSED = "bounds_missed"
NO_CHECKPOINT = "no_checkpoint"
# These three fail the run, whatever the stage says about misses.
EVALUATIONS_FAILED = "evaluations_failed"
NOT_FINITE = "not_finite"
CHAMPION_NOT_EVALUATED = "champion_not_evaluated"


@dataclass(frozen=True)
class Verdict:
    """The decision, with what it was made by."""

    outcome: str
    explanation: str
    best: Evaluation | None = None
    improvement: float | None = None
    """Of the best over the champion, in the direction that is better."""
    interval: Interval | None = None


def misses(evaluation: Evaluation, request: Mapping[str, Any]) -> list[str]:
    """Return the bounds that an evaluation does not keep, for people."""
    missed: list[str] = []
    for name, rule in request["metrics"].items():
        missed += _outside(name, evaluation.metrics[name], rule)
    for group, rule in request.get("slices", {}).items():
        for name, value in evaluation.slices[group].items():
            missed += _outside(f"{group} {name}", value, rule)
    return missed


def _outside(name: str, value: float | None, rule: Mapping[str, Any]) -> Iterator[str]:
    minimum, maximum = rule.get("minimum"), rule.get("maximum")
    if minimum is None and maximum is None:
        return
    if value is None:
        yield f"{name} is NaN or infinite"
    elif minimum is not None and value < minimum:
        yield f"{name} is {value:.6g} and must be at least {minimum:.6g}"
    elif maximum is not None and value > maximum:
        yield f"{name} is {value:.6g} and must be at most {maximum:.6g}"


def decide(
    evaluations: Sequence[Evaluation], champion: Evaluation | None, request: Mapping[str, Any]
) -> Verdict:
    """Return the verdict over all evaluations, in the order of their names."""
    if not evaluations:
        return Verdict(NO_CHECKPOINT, "there is no checkpoint to evaluate")
    usable = [each for each in evaluations if not each.problem]
    failed = [each for each in evaluations if each.problem]
    allowed = request["failures_allowed"]
    if len(failed) > allowed or not usable:
        first = failed[0]
        words = f"{len(failed)} of {len(evaluations)} evaluations failed, {allowed} may fail"
        return Verdict(EVALUATIONS_FAILED, f"{words}; the first is {first.name}: {first.problem}")
    metric = request["metric"]
    finite = [each for each in usable if each.metrics[metric] is not None]
    if not finite:
        return Verdict(NOT_FINITE, f"{metric} is NaN or infinite in every evaluation")
    eligible = [each for each in finite if not misses(each, request)]
    best = _best(eligible or finite, request)
    if not eligible:
        words = "; ".join(misses(best, request)[:3])
        return Verdict(
            BOUNDS_MISSED, f"none of {len(finite)} keeps all bounds; of {best.name} {words}"
        )
    value, threshold = _deciding(best, request), request.get("threshold")
    if threshold is not None and _sign(request) * value < _sign(request) * threshold:
        needed = "at least" if request["direction"] == "max" else "at most"
        words = f"the best {metric} is {value:.6g}; it must be {needed} {threshold:.6g}"
        return Verdict(BELOW_THRESHOLD, words, best)
    if champion is None:
        words = "; there is no champion yet" if "champion" in request else ""
        return Verdict(PROMOTED, f"{best.name} is the best: {metric} {value:.6g}{words}", best)
    return _against(champion, best, eligible, request)


def _against(
    champion: Evaluation,
    best: Evaluation,
    eligible: Sequence[Evaluation],
    request: Mapping[str, Any],
) -> Verdict:
    metric, rule = request["metric"], request["champion"]
    if champion.problem or champion.metrics[metric] is None:
        words = champion.problem or f"its {metric} is NaN or infinite"
        return Verdict(CHAMPION_NOT_EVALUATED, f"the champion {champion.uri}: {words}", best)
    better = _sign(request) * (_deciding(best, request) - _deciding(champion, request))
    try:
        interval = _interval(champion, best, eligible, request)
    except NotUsable as problem:
        return Verdict(CHAMPION_NOT_EVALUATED, f"it cannot be compared: {problem}", best)
    margin = rule["margin"]
    wins = better > margin
    words = _difference(best, metric, better)
    if interval is not None:
        better, wins = interval.mean, interval.low > margin
        words = (
            f"{_difference(best, metric, better)}, the improvement being between "
            f"{interval.low:.6g} and {interval.high:.6g} with {rule['confidence']:g} confidence"
        )
    if wins:
        return Verdict(PROMOTED, words, best, better, interval)
    needed = "the lower end" if interval is not None else "the improvement"
    words = f"{words}; {needed} must be above {margin:g}"
    return Verdict(CHAMPION_KEPT, words, best, better, interval)


def _difference(best: Evaluation, metric: str, better: float) -> str:
    if better == 0:
        return f"{metric} of {best.name} is that of the champion"
    word = "better" if better > 0 else "worse"
    return f"{metric} of {best.name} is {word} than the champion's by {abs(better):.6g}"


def _interval(
    champion: Evaluation,
    best: Evaluation,
    eligible: Sequence[Evaluation],
    request: Mapping[str, Any],
) -> Interval | None:
    """Compare example by example, where all of them have written their scores."""
    every = [champion, *eligible]
    without = [each for each in every if each.examples is None]
    if len(without) == len(every):
        return None
    if without:
        raise NotUsable(f"{without[0].name} has no scores of single examples, and others have")
    sign, metric = _sign(request), request["metric"]
    own = _scores(champion, metric)
    if len(own) < FEWEST:
        raise NotUsable(f"{FEWEST} examples are needed at the least; {len(own)} were scored")
    names = sorted(own)
    differences = []
    for each in eligible:
        theirs = _scores(each, metric)
        if theirs.keys() != own.keys():
            raise NotUsable(f"{each.name} was not evaluated on the examples of the champion")
        differences.append([sign * (theirs[name] - own[name]) for name in names])
    number = [each.name for each in eligible].index(best.name)
    confidence = request["champion"]["confidence"]
    return improvement(differences, number, confidence)


def _scores(evaluation: Evaluation, metric: str) -> Scores:
    assert evaluation.examples is not None  # noqa: S101 (its callers have looked)
    try:
        found = scores(evaluation.examples, metric)
    except NotUsable as problem:
        raise NotUsable(f"{evaluation.name}: {problem}") from problem
    reported, mean = evaluation.metrics.get(metric), math.fsum(found.values()) / max(1, len(found))
    if reported is not None and not math.isclose(reported, mean, rel_tol=0.01, abs_tol=0.001):
        raise NotUsable(
            f"{evaluation.name}: {metric} is {reported:g} in its report, and {mean:g} in the mean "
            "of its examples"
        )
    return found


def _best(evaluations: Sequence[Evaluation], request: Mapping[str, Any]) -> Evaluation:
    """Return the best by the deciding metric; of equals the first."""
    return max(evaluations, key=lambda each: _sign(request) * _deciding(each, request))


def _deciding(evaluation: Evaluation, request: Mapping[str, Any]) -> float:
    value = evaluation.metrics[request["metric"]]
    assert value is not None  # noqa: S101 (only finite ones are compared)
    return value


def _sign(request: Mapping[str, Any]) -> int:
    return 1 if request["direction"] == "max" else -1
