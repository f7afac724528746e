"""Jobs that run, as arguments of a trigger, and their ends, as its event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from orchestration.execution.effects import Ended, Failed, Place, Request, Verdict, Watch
from orchestration.graph.codec import decode, encode


def watch_to_json(watch: Watch) -> dict[str, Any]:
    """Return a watch as JSON."""
    return {
        "path": watch.path,
        "subject": watch.subject,
        "call": encode(watch.call),
        "poll": asdict(watch.poll),
        "stop": None if watch.stop is None else asdict(watch.stop),
        "outputs": dict(watch.outputs),
        "adopted": watch.adopted,
        "deadline": watch.deadline,
        "shared": watch.shared,
        "doubt": None if watch.doubt is None else asdict(watch.doubt),
        "place": place_to_json(watch.place),
    }


def watch_from_json(document: Mapping[str, Any]) -> Watch:
    """Return the watch that :func:`watch_to_json` wrote down."""
    stop, doubt = document["stop"], document.get("doubt")
    return Watch(
        path=document["path"],
        subject=document["subject"],
        call=decode(document["call"]),
        poll=Request(**document["poll"]),
        stop=None if stop is None else Request(**stop),
        outputs=document["outputs"],
        adopted=document["adopted"],
        deadline=document["deadline"],
        shared=document.get("shared", False),
        place=place_from_json(document["place"]),
        doubt=None if doubt is None else Failed(**doubt),
    )


def place_to_json(place: Place) -> dict[str, Any]:
    """Return the place in a list of requests as JSON."""
    return {**asdict(place), "lacking": list(place.lacking)}


def place_from_json(document: Mapping[str, Any]) -> Place:
    """Return the place that :func:`place_to_json` wrote down."""
    return Place(**{**document, "lacking": tuple(document["lacking"])})


def verdict_to_json(verdict: Verdict) -> dict[str, Any]:
    """Return the end of a job as JSON."""
    match verdict:
        case Ended(outputs):
            return {"outputs": dict(outputs)}
        case Failed():
            return asdict(verdict)


def verdict_from_json(document: Mapping[str, Any]) -> Verdict:
    """Return the end that :func:`verdict_to_json` wrote down."""
    if "outputs" in document:
        return Ended(document["outputs"])
    return Failed(**document)
