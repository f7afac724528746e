"""Write the table of framework images anew, from the SageMaker Python SDKs that are installed.

    python tools/images/refresh.py --date 2026-11-21 .venv-sdk-v2/bin/python .venv-sdk-v3/bin/python

Each argument is the interpreter of an environment with one SDK (``tools/sdk_venv.sh`` makes them).
Where two answer differently, the later one on the command line holds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tempfile
from datetime import date
from pathlib import Path
from typing import Any, TypeAlias

HERE = Path(__file__).parent
TABLE = HERE.parents[1] / "orchestration" / "strategies" / "images" / "table.json"
LICENCE = (
    "Account ids, versions, repositories and tags as the SageMaker Python SDK gives them. The SDK "
    "is Copyright Amazon.com, Inc. or its affiliates, under the Apache License, Version 2.0 "
    "(http://www.apache.org/licenses/LICENSE-2.0); this is a table made from its answers."
)

Row: TypeAlias = dict[str, Any]
Key: TypeAlias = tuple[str, str, str, str, str]


def answers(python: str) -> dict[str, Any]:
    """What the SDK of an environment knows."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "answers.json"
        quiet = os.environ | {"SAGEMAKER_SUPPRESS_V2_WARNING": "1"}
        command = [python, str(HERE / "answers.py"), str(out)]
        subprocess.run(command, check=True, env=quiet, stdout=subprocess.DEVNULL)
        found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
        return found


def merged(every: list[dict[str, Any]]) -> dict[Key, Row]:
    """All rows, those of later SDKs in place of those of earlier ones."""
    rows: dict[Key, Row] = {}
    for answer in every:
        for row in answer["rows"]:
            key = (row["framework"], row["scope"], row["version"], row["base"], row["python"])
            rows[key] = row
    return rows


def template(tag: str | None, row: Row) -> str | None:
    """A tag with names in place of what is asked, so that many versions share it."""
    if tag is None:
        return None
    asked = {
        "base": re.sub("^[a-z]+", "", row["base_shown"]),
        "version": row["version_shown"],
        "python": row["python"],
    }
    shape = tag.replace("{", "{{")
    for name, text in asked.items():
        if text:
            whole = rf"(?<![\d.{{]){re.escape(text)}(?![\w.])"
            shape = re.sub(whole, f"{{{name}}}", shape, count=1)
    if shape.format(**asked) != tag:
        raise ValueError(f"{tag} is not {shape} with {asked}")
    return shape


def name(asked: str, shown: str) -> str:
    """What is asked, and what stands for it in the tag."""
    return asked if asked == shown else f"{asked}={shown}"


def as_shown(row: Row) -> Row:
    """The row with what the tags say in place of what an alias stands for."""
    tags = [tag.partition(":")[2] for tag in row["tags"].values() if tag]

    def shown(asked: str, full: str, text: str) -> str:
        whole = re.compile(rf"(?<![\d.]){re.escape(text)}(?![\w.])")
        return full if asked != full and all(whole.search(tag) for tag in tags) else asked

    number = re.sub("^[a-z]+", "", row["base_shown"])
    return row | {
        "version_shown": shown(row["version"], row["version_shown"], row["version_shown"]),
        "base_shown": shown(row["base"], row["base_shown"], number),
    }


def grouped(rows: list[Row], registries: list[str]) -> list[dict[str, Any]]:
    """The rows of one scope, those that differ in one coordinate joined, one after another."""
    cells: list[tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], str]] = []
    for row in map(as_shown, rows):
        repositories = {tag.partition(":")[0] for tag in row["tags"].values() if tag}
        if len(repositories) != 1:
            raise ValueError(f"{row} is in {repositories}")
        tags = {
            processor: template(tag and tag.partition(":")[2], row)
            for processor, tag in row["tags"].items()
        }
        image = {
            "repository": repositories.pop(),
            "registry": registries.index(registry(row["accounts"])),
            "tags": tags,
        }
        cells.append(
            (
                (row["python"],),
                (name(row["version"], row["version_shown"]),),
                (name(row["base"], row["base_shown"]),),
                json.dumps(image),
            )
        )
    for coordinate in (0, 1, 2):
        joined: dict[tuple[Any, ...], list[str]] = {}
        for cell in cells:
            rest = (*cell[:coordinate], *cell[coordinate + 1 :])
            joined.setdefault(rest, []).extend(cell[coordinate])
        cells = [
            (*rest[:coordinate], tuple(names), *rest[coordinate:]) for rest, names in joined.items()
        ]
    return [
        {"versions": list(versions)}
        | ({"bases": list(bases)} if any(bases) else {})
        | ({"pythons": list(pythons)} if any(pythons) else {})
        | json.loads(image)
        for pythons, versions, bases, image in cells
    ]


def registry(accounts: dict[str, str]) -> str:
    """Accounts by region, the regions of one account together."""
    regions: dict[str, list[str]] = {}
    for region, account in sorted(accounts.items()):
        regions.setdefault(account, []).append(region)
    return json.dumps({account: " ".join(names) for account, names in sorted(regions.items())})


def table(every: list[dict[str, Any]], day: str) -> dict[str, Any]:
    """The whole table."""
    rows = merged(every)
    registries = sorted({registry(row["accounts"]) for row in rows.values()})
    frameworks: dict[str, dict[str, Any]] = {}
    for framework, scope in dict.fromkeys(key[:2] for key in rows):
        own = [row for key, row in rows.items() if key[:2] == (framework, scope)]
        images = grouped(own, registries)
        known = frameworks.setdefault(framework, {})
        same = next((other for other, rest in known.items() if rest == images), None)
        known[scope] = same or images
    suffixes: dict[str, list[str]] = {}
    for region, suffix in sorted(
        {
            region: suffix for answer in every for region, suffix in answer["suffixes"].items()
        }.items()
    ):
        suffixes.setdefault(suffix, []).append(region)
    return {
        "source": {
            "sdks": [answer["sdk"] for answer in every],
            "date": day,
            "licence": LICENCE,
        },
        "suffixes": {suffix: " ".join(regions) for suffix, regions in suffixes.items()},
        "registries": [json.loads(text) for text in registries],
        "frameworks": dict(sorted(frameworks.items())),
    }


def text(content: dict[str, Any]) -> str:
    """JSON with one line for each registry and each group of images, so that changes show."""
    lines = ["{", f'"source": {json.dumps(content["source"], indent=1)},']
    lines += [f'"suffixes": {json.dumps(content["suffixes"], indent=1)},', '"registries": [']
    lines += [",\n".join(json.dumps(entry) for entry in content["registries"]), "],"]
    lines += ['"frameworks": {']
    frameworks = []
    for framework, scopes in content["frameworks"].items():
        parts = []
        for scope, images in scopes.items():
            if isinstance(images, str):
                parts.append(f'  "{scope}": {json.dumps(images)}')
                continue
            inner = ",\n".join(f"   {json.dumps(image)}" for image in images)
            parts.append(f'  "{scope}": [\n{inner}\n  ]')
        frameworks.append(f' "{framework}": {{\n' + ",\n".join(parts) + "\n }")
    return "\n".join(lines) + "\n" + ",\n".join(frameworks) + "\n}\n}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "pythons", nargs="+", help="an interpreter with an SDK; the later one holds"
    )
    parser.add_argument("--date", default=date.today().isoformat(), help="what the table is dated")
    options = parser.parse_args()
    every = [answers(python) for python in options.pythons]
    TABLE.write_text(text(table(every, options.date)), encoding="utf-8")
    print(f"{TABLE.name}: {TABLE.stat().st_size // 1024} KiB from {len(every)} SDKs")


if __name__ == "__main__":
    main()
