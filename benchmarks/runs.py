"""Count what a run of each example asks of AWS, and what its state machine costs in a month."""

import argparse
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Final, get_args

from benchmarks.definitions import measured
from orchestration import Pipeline
from orchestration.backends import stepfunctions
from orchestration.backends.stepfunctions import events
from orchestration.catalog import rates
from orchestration.local import EmbeddedAws
from orchestration.local.run import On, run

ROOT = Path(__file__).parents[1]
RUNS_A_MONTH = 30
IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/any:1"
EXAMPLES: Final[dict[str, dict[str, Any]]] = {
    "digits": {"training_image": IMAGE, "inference_image": IMAGE},
    "llm_fsx": {
        "training_image": IMAGE,
        "subnet": "subnet-0123abcd",
        "security_group": "sg-0123abcd",
        "layers": 1,
        "width": 16,
        "heads": 2,
        "context": 16,
        "batch_size": 1,
        "max_steps": 2,
        "checkpoint_every": 1,
    },
}
"""The parameters of each; the language model is as small as it can be."""


def data(example: str, folder: Path) -> Path:
    for path in (ROOT / "examples" / example / "data").iterdir():
        for part in ("train", "holdout"):
            if path.name.startswith(part):
                (folder / part).mkdir(exist_ok=True)
                (folder / part / path.name).write_bytes(path.read_bytes())
    return folder


def transitions(aws: EmbeddedAws) -> int:
    """Return the states that executions entered, and the tasks that were tried again."""
    client: Any = aws.client("stepfunctions")
    seen: Counter[str] = Counter()
    for machine in client.list_state_machines()["stateMachines"]:
        arn = machine["stateMachineArn"]
        for execution in client.list_executions(stateMachineArn=arn)["executions"]:
            seen.update(event["type"] for event in aws.events(execution["executionArn"]))
    entered = sum(count for kind, count in seen.items() if kind.endswith("StateEntered"))
    return entered + seen["TaskScheduled"] - seen["TaskStateEntered"]


def told(example: str) -> None:
    """Print what is known without a run."""
    workflow = Pipeline.load(ROOT / f"dags/{example}.yaml").lower()
    definition = stepfunctions.render(workflow)
    count = events.counted(definition, workflow)
    print(
        f"{example}: {measured(definition).states} states; at the most {count.once} events with "
        f"each job polled once, {count.total(count.most_polls)} with all polls"
    )


def ran(example: str, on: On) -> None:
    """Run an example and print the calls, the transitions and their price."""
    pipeline = Pipeline.load(ROOT / f"dags/{example}.yaml")
    parameters = {"bucket": "workspace", "data": f"s3://incoming/{example}", **EXAMPLES[example]}
    with tempfile.TemporaryDirectory() as folder, EmbeddedAws() as aws:
        uploads = {parameters["data"]: data(example, Path(folder))}
        report = run(pipeline, on=on, aws=aws, parameters=parameters, uploads=uploads)
        reading = ("Describe", "List", "Get", "Head", "Invoke")
        changing = sum(not call.operation.startswith(reading) for call in report.calls)
        print(f"{example} {on}: {report.state}, {len(report.calls)} API calls, {changing} change")
        if on == "step-functions":
            count = transitions(aws)
            rates_by_region = rates()["transitions"].values()
            prices = [count * RUNS_A_MONTH * rate.usd / 1000 for rate in rates_by_region]
            low, high = min(prices), max(prices)
            print(f"  {count} transitions; run daily: {low:.2f} to {high:.2f} dollars a month")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--on", choices=get_args(On), action="append")
    parser.add_argument("--example", choices=EXAMPLES, action="append")
    arguments = parser.parse_args()
    for example in arguments.example or EXAMPLES:
        told(example)
        for on in arguments.on or get_args(On):
            ran(example, on)


if __name__ == "__main__":
    main()
