"""Pictures of the documentation: ``make pictures`` draws them anew in ``docs/images``.

A pipeline is run on this machine, in Airflow itself, and its pages are opened in Chromium. Nothing
is drawn by hand, so what a picture shows is what this version makes.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from PIL import Image, PngImagePlugin

from orchestration.cli.commands import demo
from orchestration.local.airflow import LocalAirflow
from orchestration.local.airflow.home import variables_in
from orchestration.local.pages import page
from orchestration.local.run import RunReport, run
from orchestration.local.run.keeping import logged
from orchestration.local.server.embedded import EmbeddedAws
from orchestration.pipeline import Pipeline

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
SERVER = ROOT / "tests" / "cli" / "airflow_server.py"
RUN_ID = "friday"
COLOURS = 64
GRAPH = (70, 200, 1530, 430)
"""The part of Airflow's page that is the graph: left, top, right, bottom."""
SHOWN = f"orchestration {version('sagemaker-orchestration')}, Airflow {version('apache-airflow')}"
"""What the pictures show, which each says as its ``Software``."""
PLUGIN = """
import json
from airflow.plugins_manager import AirflowPlugin
from fastapi import FastAPI
from fastapi.responses import HTMLResponse

app = FastAPI()


@app.get("/{view}/{dag}/{run}", response_class=HTMLResponse)
def chosen(view: str, dag: str, run: str) -> str:
    kept = {"default_dag_view": view, f"{dag}/open-groups": ["evaluate"]}
    lines = (f"localStorage[{json.dumps(k)}] = {json.dumps(json.dumps(kept[k]))};" for k in kept)
    return f"<script>{''.join(lines)}location.replace('/dags/{dag}/runs/{run}')</script>"


class Views(AirflowPlugin):
    name = "views"
    fastapi_apps = [{"app": app, "url_prefix": "/views", "name": "views"}]
"""
"""A page of the same origin that chooses what Airflow's pages show, as a click would."""


def main() -> None:
    """Draw all pictures, or those whose names are given."""
    IMAGES.mkdir(exist_ok=True)
    wanted = set(sys.argv[1:])
    with tempfile.TemporaryDirectory() as scratch:
        if not wanted or wanted & {"stages", "plan"}:
            _drawn_by_commands(Path(scratch))
        if not wanted or wanted & {"run", "airflow"}:
            _drawn_of_a_run(Path(scratch))
    for path in sorted(IMAGES.glob("*.png")):
        sys.stdout.write(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1000} kB\n")


def _drawn_by_commands(scratch: Path) -> None:
    digits, chat = ROOT / "dags/digits.yaml", scratch / "chat.yaml"
    _orchestrate("graph", digits, "-o", IMAGES / "stages.png")
    text = (ROOT / "docs/planning.md").read_text("utf-8")
    chat.write_text(text.partition("```yaml\n# chat.yaml\n")[2].partition("```")[0], "utf-8")
    for script in ("train.py", "evaluate.py"):
        (scratch / "src").mkdir(exist_ok=True)
        (scratch / "src" / script).touch()
    _orchestrate("plan", chat, "--report", scratch / "plan.html")
    _photographed((scratch / "plan.html").as_uri(), "plan", width=900, height=1000)


def _drawn_of_a_run(scratch: Path) -> None:
    pipeline = Pipeline.load(ROOT / "dags/digits.yaml")
    with LocalAirflow() as airflow:

        def drawn(aws: EmbeddedAws, ended: RunReport) -> None:
            logs = {job: aws.logs(job) for _, job in logged(ended)}
            (scratch / "run.html").write_text(page(ended, pipeline, logs), "utf-8")

        ended = run(
            pipeline,
            on="airflow",
            parameters=demo._PARAMETERS,
            uploads=demo._uploads(ROOT / demo._DATA),
            run_id=RUN_ID,
            airflow=airflow,
            on_end=drawn,
        )
        if ended.state != "succeeded":
            raise SystemExit(f"{ended.error}: {ended.cause}")
        _photographed((scratch / "run.html").as_uri(), "run", width=900, height=1300)
        home = airflow._home
        if home is None:
            raise SystemExit("the local Airflow has no home")
        with _ui(home) as url:
            for view, width in (("graph", 2200), ("grid", 1300)):
                _photographed(f"{url}/views/{view}/digits/{RUN_ID}", f"airflow_{view}", width, 700)
        _cut("airflow_graph", GRAPH)


@contextlib.contextmanager
def _ui(home: Path) -> Iterator[str]:
    """Serve Airflow's pages over the database of a home; everybody is an administrator."""
    (home / "plugins").mkdir(exist_ok=True)
    (home / "plugins" / "views.py").write_text(PLUGIN, "utf-8")
    [dag_file] = (home / "dags").glob("*/dag.py")
    variables = variables_in(home, os.environ) | {
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__API_AUTH__JWT_SECRET": "made up, and longer than sixty-four bytes " * 2,
    }
    server = subprocess.Popen(
        [sys.executable, SERVER, dag_file],
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with server:
        lines = iter(server.stdout.readline, "") if server.stdout else ()
        port = next((line.strip() for line in lines if line.strip().isdigit()), None)
        if port is None:
            raise SystemExit("Airflow's API server did not start")
        yield f"http://127.0.0.1:{port}"


def _photographed(url: str, name: str, width: int, height: int) -> None:
    """Open a page in Chromium, and keep what it shows."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("chromium is missing: `make setup-chromium`")
    path = IMAGES / f"{name}.png"
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [
                *(chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
                *(f"--user-data-dir={profile}", f"--window-size={width},{height}"),
                *("--virtual-time-budget=60000", f"--screenshot={path}", url),
            ],
            check=True,
            capture_output=True,
            timeout=600,
        )
    whole = Image.open(path).convert("RGB")
    _saved(whole.quantize(COLOURS, dither=Image.Dither.NONE), path)


def _cut(name: str, box: tuple[int, int, int, int]) -> None:
    """Keep a part of a picture."""
    path = IMAGES / f"{name}.png"
    whole = Image.open(path)
    _saved(whole.crop(box), path)


def _saved(image: Image.Image, path: Path) -> None:
    """Write a picture in few colours, with what it shows."""
    said = PngImagePlugin.PngInfo()
    said.add_text("Software", SHOWN)
    image.save(path, optimize=True, pnginfo=said)


def _orchestrate(*arguments: object) -> None:
    command = [sys.executable, "-m", "orchestration.cli", *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    main()
