"""Try what is promised on an Airflow as people run it.

    python -m tools.installation [--only kills|persons|versions] [--folder FOLDER]

Starts PostgreSQL, an embedded AWS, and Airflow's scheduler (LocalExecutor), triggerer, DAG
processor and API server, kills them and their workers at exact moments, does what persons do, and
prints what came of it. Everything that it started ends with it. It takes about half an hour on two
quiet cores; PostgreSQL has to be installed, and `tools/installation/requirements.txt`.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NoReturn

from orchestration.local import EmbeddedAws
from tools.installation import kills, persons, versions
from tools.installation.airflow import Airflow
from tools.installation.postgres import Postgres
from tools.installation.processes import adopt_orphans, end_all
from tools.installation.runs import install, unpause

_TIME_SCALE = 0.1
"""Below, a deferral would end before the executor has told of it; see the settings of Airflow."""
_WAYS = ("kills", "persons", "versions")
_broken: list[str] = []


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tools.installation")
    parser.add_argument("--only", choices=_WAYS, action="append")
    parser.add_argument("--folder", type=Path, help="for logs; kept, where it is given")
    options = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupted)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="installation-"))
    folder.mkdir(parents=True, exist_ok=True)
    adopt_orphans()
    postgres = Postgres(folder / "postgres")
    try:
        with EmbeddedAws(time_scale=_TIME_SCALE) as aws:
            postgres.start()
            airflow = Airflow(folder / "airflow", postgres, aws)
            airflow.start()
            _try(airflow, folder, options.only or _WAYS)
            airflow.close()
    finally:
        end_all()
        if options.folder is None:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"\n{len(_broken)} did not hold" if _broken else "\nall of it held")
    return 1 if _broken else 0


def _try(airflow: Airflow, folder: Path, ways: Iterable[str]) -> None:
    install(airflow, folder / "data")
    unpause(airflow, "served", "lustre", "held", "grouped")
    if "versions" in ways:
        print("| what | holds |\n|---|---|")
        _row(
            "no new version of a DAG after five parses and a new DAG processor",
            versions.unchanged(airflow),
        )
    if "kills" in ways:
        print("\n| killed | at | paid and made | left | end | holds |\n|---|---|---|---|---|---|")
        _side_by_side(
            [partial(_kill, airflow, m, f"killed-{n}") for n, m in enumerate(rounds)]
            for rounds in ([*kills.SERVED, *kills.HELD], kills.LUSTRE)
        )
    if "persons" in ways:
        print("\n| DAG | what is done | made | left | end | holds |\n|---|---|---|---|---|---|")
        _side_by_side(
            [
                partial(_do, airflow, d, f"done-{n}")
                for n, d in enumerate(persons.DEEDS)
                if d.watched and (d.dag_id == "lustre") == lustre
            ]
            for lustre in (False, True)
        )
        # By themselves: they need a time without a triggerer.
        for number, deed in enumerate(persons.DEEDS):
            if not deed.watched:
                _do(airflow, deed, f"done-{number}")


def _side_by_side(lanes: Iterable[list[Callable[[], None]]]) -> None:
    def go_through(lane: list[Callable[[], None]]) -> None:
        for each in lane:
            each()

    threads = [threading.Thread(target=go_through, args=(lane,)) for lane in lanes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _kill(airflow: Airflow, moments: list[kills.Moment], run_id: str) -> None:
    outcome = kills.survive(airflow, moments, run_id)
    end = ", ".join([outcome.state, *outcome.unfinished])
    for moment in moments:
        at = f"{moment}{' (never came)' if moment in outcome.missed else ''}"
        cells = [moment.victim, f"{moment.dag_id}: {at}", _counts(outcome.made)]
        _row(" | ".join([*cells, ", ".join(outcome.left) or "nothing", end]), outcome.holds)


def _do(airflow: Airflow, deed: persons.Deed, run_id: str) -> None:
    result = persons.done(airflow, deed, run_id)
    cells = [deed.dag_id, deed.name, _counts(result.made)]
    _row(" | ".join([*cells, ", ".join(result.left) or "nothing", result.state]), result.holds)


def _row(text: str, holds: bool) -> None:
    if not holds:
        _broken.append(text)
    print(f"| {text} | {'yes' if holds else '**no**'} |", flush=True)


def _counts(made: Mapping[str, int]) -> str:
    changes = {
        n: c for n, c in made.items() if n.startswith(("Create", "Update", "Delete", "Stop"))
    }
    return ", ".join(f"{count} {name}" for name, count in sorted(changes.items()))


def _interrupted(*_: object) -> NoReturn:
    sys.exit(130)


if __name__ == "__main__":
    sys.exit(main())
