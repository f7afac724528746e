"""Count the statements of everyone's policy, the bytes of exports, and the seconds of a deployment.

python -m benchmarks.deploying [--pipeline NAME] [--without-removals]
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from orchestration import Pipeline
from orchestration.deploy import step_functions
from orchestration.deploy.exporting import cloudformation, export, terraform
from orchestration.deploy.identities import WHO, identities
from orchestration.local import EmbeddedAws
from tests.conformance import pipelines as conformance
from tests.deploy import pipelines
from tests.deploy.law import account, obeyed
from tests.deploy.pipelines import ACCOUNT, PARAMETERS

PIPELINES: dict[str, Callable[[Path], Pipeline]] = {
    "served": lambda _: conformance.served(),
    "file_system": lambda _: conformance.file_system(),
    "worked": lambda _: pipelines.worked(),
    "digits": lambda folder: pipelines.digits(pipelines.source_folder(folder)),
    "lustre": lambda _: pipelines.lustre(),
}
REMOVED = ("served", "file_system", "worked")
"""Those that are run under the policies, and without each statement of them."""


def statements(pipeline: Pipeline) -> str:
    """Return how many statements each identity has, roles of one kind together."""
    every = identities(pipeline, ACCOUNT, parameters=PARAMETERS)
    counts = {who: [len(i.statements) for i in every if i.who == who] for who in WHO}
    return ", ".join(f"{who} {sum(n)}" for who, n in counts.items() if n)


def sizes(pipeline: Pipeline) -> str:
    """Return the kilobytes of both exports."""
    made = export(pipeline, parameters=PARAMETERS, account=ACCOUNT.id, region=ACCOUNT.region)
    texts = cloudformation.template(made).text(), terraform.text(made)
    return ", ".join(f"{len(text.encode()) / 1000:.0f} kB" for text in texts)


def seconds(pipeline: Pipeline) -> str:
    """Return the seconds of a deployment to the embedded AWS, and of a second one, of no change."""
    with EmbeddedAws() as aws:
        account(aws)
        took = []
        for _ in range(2):
            begun = time.perf_counter()
            step_functions(pipeline, session=aws, parameters=PARAMETERS)
            took.append(f"{time.perf_counter() - begun:.1f} s")
    return ", ".join(took)


def removals(pipeline: Pipeline) -> str:
    """Return without how many statements something is denied, and how much is with all of them."""
    with EmbeddedAws(enforce_iam=True, time_scale=0.003) as aws:
        law = obeyed(pipeline, aws)
    held = sum(len(each.statements) for each in law.identities if each.who != "doctor")
    needed = held - sum(map(len, law.superfluous().values()))
    return f"{needed} of {held}; {len(law.refused())}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pipeline", choices=PIPELINES)
    parser.add_argument("--without-removals", action="store_true")
    given = parser.parse_args()
    print(
        "| pipeline | statements | CloudFormation, Terraform | deployed, again | needed; denied |"
    )
    print("|---|---|---|---|---|")
    for name in [given.pipeline] if given.pipeline else PIPELINES:
        with tempfile.TemporaryDirectory() as folder:
            pipeline = PIPELINES[name](Path(folder))
            run = name in REMOVED and not given.without_removals
            needed = removals(pipeline) if run else ""
            cells = (name, statements(pipeline), sizes(pipeline), seconds(pipeline), needed)
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
