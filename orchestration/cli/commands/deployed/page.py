"""The page about a run: one document without anything from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from orchestration.cli.commands.deployed.wording import dollars, duration, figures, took

if TYPE_CHECKING:
    from orchestration.runs import Snapshot, StageView

_STYLE: Final = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem;
  overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; } table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; vertical-align: top;
  border-bottom: 1px solid #8884; }
tr.job td { border: 0; font-size: .9em; opacity: .8; }
.running { color: #0072b2; } .succeeded { color: #007a57; } .failed { color: #c33; }
pre { background: #8881; padding: .6rem; overflow-x: auto; } #gone { color: #c33; }
"""
_SCRIPT: Final = """
const again = async () => {
  try {
    const page = new DOMParser().parseFromString(
      await (await fetch(location.href, {cache: "no-store"})).text(), "text/html");
    document.querySelector("main").replaceWith(page.querySelector("main"));
    document.title = page.title;
  } catch (error) {
    document.getElementById("gone").hidden = false;
    return;
  }
  if (document.querySelector("main").dataset.state === "running") setTimeout(again, EVERY);
};
setTimeout(again, EVERY);
"""


def policy(every_s: float) -> str:
    """Return what the page may load: itself, and its own script and style."""
    script, style = _digest(_script(every_s)), _digest(_STYLE)
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _script(every_s: float) -> str:
    return _SCRIPT.replace("EVERY", str(round(every_s * 1000)))


def page(snapshot: Snapshot | None, *, every_s: float) -> str:
    """Return the document; it asks for itself again as long as the run goes on."""
    title = "waiting" if snapshot is None else f"{snapshot.pipeline}: {snapshot.state}"
    state = "running" if snapshot is None else snapshot.state
    body = "" if snapshot is None else "\n".join(_body(snapshot))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n"
        f"<style>{_STYLE}</style>\n</head>\n<body>\n"
        f'<main data-state="{state}">\n{body}\n</main>\n'
        '<p id="gone" hidden>The command that serves this page has ended.</p>\n'
        f"<script>{_script(every_s)}</script>\n</body>\n</html>\n"
    )


def _body(snapshot: Snapshot) -> Iterator[str]:
    yield f"<h1>{escape(snapshot.pipeline)}, run {escape(snapshot.run)}</h1>"
    yield (
        f'<p><b class="{snapshot.state}">{snapshot.state}</b>, {duration(snapshot.elapsed_s)}, '
        f"{escape(dollars(snapshot))}</p>"
    )
    if snapshot.error:
        yield f'<p class="failed">{escape(snapshot.error)}: {escape(snapshot.cause)}</p>'
    yield "<table><tr><th>stage</th><th>now</th><th>took</th><th>metrics</th></tr>"
    for stage in snapshot.stages:
        yield from _rows(stage, snapshot)
    yield "</table>"
    for stage in snapshot.stages:
        for job in stage.jobs:
            yield from _log(job.name, job.log)
        for step, lines in stage.logs.items():
            yield from _log(step, lines)


def _rows(stage: StageView, snapshot: Snapshot) -> Iterator[str]:
    doing = ", ".join(stage.steps) or stage.state
    yield (
        f'<tr class="{escape(stage.state)}"><td>{escape(stage.name)}</td><td>{escape(doing)}</td>'
        f"<td>{took(stage, snapshot)}</td><td></td></tr>"
    )
    for job in stage.jobs:
        reason = f": {job.reason}" if job.reason else ""
        yield (
            f'<tr class="job"><td>{escape(job.name)}</td><td>{escape(job.phase + reason)}</td>'
            f"<td></td><td>{escape(figures(job.metrics))}</td></tr>"
        )


def _log(name: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield f"<h2>{escape(name)}</h2><pre>{escape(chr(10).join(lines))}</pre>"
