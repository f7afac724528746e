"""A script or a container over data in S3, as a SageMaker processing job.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateProcessingJob.html
"""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar, Literal

from pydantic import Field
from typing_extensions import override

from orchestration.checks import places
from orchestration.errors import PipelineError, Problem
from orchestration.expressions import Result, Tree, join
from orchestration.graph import Call, Output, Read, Step
from orchestration.stages.capacity import Hours, fallback
from orchestration.stages.outputs import NamedOutputs, Outputs
from orchestration.stages.processing import request
from orchestration.stages.processing.fields import (
    MOST,
    Input,
    ProcessingCluster,
    ProcessingResult,
    Report,
)
from orchestration.stages.processing.gate import gate
from orchestration.stages.processing.request import Job
from orchestration.stages.stage import SAMPLE, Context, Fragment, Stage
from orchestration.stages.training.cluster import Candidate
from orchestration.stages.training.container import Framework
from orchestration.stages.values import Extra, Name, Seconds, Source, StandIn, Text, Vpc


class _Results(NamedOutputs):
    """The outputs of a processing job: what it is called, what it writes, what it reports."""

    @override
    def written(self, stage: object) -> tuple[str, ...]:
        """Return the names of the results, whose values are the S3 URIs that the job writes to."""
        return tuple(getattr(stage, "results", ()))


class ProcessingJob(Stage):
    """Runs a script, or a container's own program, over data in S3, on any number of machines.

    A ``source`` is started as ``python3 <entry_point> <arguments>`` in a ``framework`` of AWS's or
    an ``image`` of your own; without one, the image's own program runs, or ``command``. Each input
    lies in ``/opt/ml/processing/input/<name>`` when the job begins; each folder
    ``/opt/ml/processing/output/<name>`` is uploaded, and its S3 URI is an output of the stage.
    """

    kind: Literal["processing_job"] = "processing_job"
    image: Text | None = None
    """The container, by its registry path."""
    framework: Framework | None = None
    """Instead: AWS's own container of a framework: ``sklearn``, ``pytorch``, ``spark``, …"""
    source: Source | None = None
    """The script and what it imports, in ``/opt/ml/processing/input/code``."""
    command: tuple[Text, ...] = Field(default=(), max_length=100)
    """The program that starts the source's entry point, by default ``python3`` (with Spark
    ``smspark-submit``); without a source the container's entry point, which must be given with a
    framework and is else the image's own."""
    arguments: tuple[Text, ...] = Field(default=(), max_length=100)
    """Arguments of the script, or of the container's entry point."""
    inputs: dict[Name, Input] = {}
    """The data, by names of yours."""
    results: dict[Name, ProcessingResult] = {}
    """The folders to upload, by names of yours: each is an output of the stage."""
    report: Report | None = None
    """A JSON file of a result, whose values become outputs."""
    cluster: ProcessingCluster
    """The job's machines."""
    environment: dict[str, Text] = Field(default={}, max_length=100)
    """Variables of the script."""
    max_runtime_s: Seconds = Field(default=86_400, le=9 * 86_400)
    """Seconds after which SageMaker stops the job."""
    wait_for_capacity_h: Hours | None = None
    """Hours, from the first request on, in which the cluster and its fallbacks are requested again
    and again where there is no capacity or quota. ``None``: each is requested once."""
    output_kms_key: Text | None = None
    """Encrypts the results."""
    vpc: Vpc | None = None
    """Subnets and security groups of the job."""
    enable_network_isolation: bool = False
    """The container reaches no network."""
    encrypt_inter_container_traffic: bool = False
    """Encrypt the traffic between the machines."""
    local: StandIn | None = None
    """The program that runs on the embedded AWS in the place of the image's own."""
    poll_interval_s: Seconds = 30
    """Seconds between two questions about the job's status."""
    extra_request: Extra = {}
    """Further fields of ``CreateProcessingJob``."""

    outputs: ClassVar[Outputs[Any]] = _Results("named_outputs")

    @property
    def named_outputs(self) -> tuple[str, ...]:
        """The outputs of this stage."""
        report = self.report
        reported = () if report is None else (*report.numbers, *report.texts)
        gated = report is not None and report.threshold is not None
        return ("job_name", *self.results, *reported, *(("passed",) if gated else ()))

    @override
    def check(self, context: Context = SAMPLE) -> Iterator[Problem]:
        yield from self._container()
        for name, data in self.inputs.items():
            yield from data.problems(f"inputs.{name}")
        for name, result in self.results.items():
            yield from result.problems(f"results.{name}")
        yield from self._places()
        if self.report is not None:
            for problem in self.report.problems(self.results):
                yield problem.within("report")
        for name in sorted({n for n in self.named_outputs if self.named_outputs.count(n) > 1}):
            yield Problem("results", f"two outputs of the stage are called {name!r}; rename one")
        try:
            for number, _ in enumerate(self.cluster.candidates()):
                self.job(context, number).request()
        except PipelineError as error:
            yield from error.problems
        except ValueError as error:
            yield Problem("extra_request", str(error))

    def _container(self) -> Iterator[Problem]:
        if (self.image is None) == (self.framework is None):
            yield Problem("image", "is needed; or a framework, not both")
        framework = self.framework
        if framework is not None and framework.model_dir is not None:
            yield Problem("framework.model_dir", "only training scripts receive this; remove it")
        if self.source is not None and self.source.archive_only:
            yield Problem(
                "source",
                "is an archive, which a processing job does not unpack; give it a directory, or "
                "the uri of a prefix that holds files/",
            )
        if framework is not None and self.source is None and not self.command:
            yield Problem("source", f"is needed: {framework.name}'s image runs nothing by itself")

    def _places(self) -> Iterator[Problem]:
        most = MOST if self.source is None else MOST - 1
        if len(self.inputs) > most:
            why = "" if self.source is None else ", the code being one more"
            yield Problem("inputs", f"has {len(self.inputs)} entries; the most is {most}{why}")
        if len(self.results) > MOST:
            yield Problem("results", f"has {len(self.results)} entries; the most is {MOST}")
        if self.source is not None and "code" in self.inputs:
            yield Problem("inputs.code", "is how the source gets there; choose another name")
        taken: dict[str, str] = {}
        folders = [(f"inputs.{name}", each.place(name)) for name, each in self.inputs.items()]
        folders += [(f"results.{name}", each.place(name)) for name, each in self.results.items()]
        for where, place in folders:
            if place in taken:
                yield Problem(f"{where}.path", f"{place} is the folder of {taken[place]}, too")
            taken.setdefault(place, where)

    @override
    def lower(self, context: Context) -> Fragment:
        step = f"{self.name}.job"
        outputs: dict[str, Tree] = {"job_name": Result(step, "job_name")}
        outputs |= {name: self._uri(name, context) for name in self.results}
        steps: list[Step] = [self._call(step, context)]
        report = self.report
        if report is None:
            return Fragment(steps=tuple(steps), outputs=outputs)
        read = self._read(report, step, context)
        steps.append(read)
        outputs |= {name: Result(read.name, name) for name in read.outputs}
        threshold = report.threshold
        if threshold is None:
            return Fragment(steps=tuple(steps), outputs=outputs)
        measured = Result(read.name, threshold.number)
        passed = threshold.reached(measured, threshold.direction)
        if threshold.on_miss == "fail":
            steps.append(
                threshold.stopper(
                    f"{self.name}.gate",
                    measured,
                    threshold.direction,
                    what=f"{threshold.number} of stage {self.name}",
                    after=read.name,
                )
            )
        return Fragment(
            steps=tuple(steps),
            outputs={**outputs, "passed": passed},
            gate=gate(passed, threshold.on_miss),
        )

    def _read(self, report: Report, step: str, context: Context) -> Read:
        number = {
            name: places.value_at(places.place(at), kind="number")
            for name, at in report.numbers.items()
        }
        text = {
            name: places.value_at(places.place(at), kind="string")
            for name, at in report.texts.items()
        }
        return Read(
            name=f"{self.name}.report",
            uri=join(self._uri(report.result, context), f"/{report.file}"),
            outputs={**number, **text},
            after=(step,),
        )

    def _call(self, step: str, context: Context) -> Call:
        candidates = self.cluster.candidates()
        name = Output(("ProcessingJobName",), kind="string")
        call = self.job(context).call(step, self.poll_interval_s, {"job_name": name})
        others = tuple(
            self.job(context, number).alternative(candidate.label)
            for number, candidate in enumerate(candidates)
            if number
        )
        instead = fallback(candidates[0].label, others, request.USAGE, self.wait_for_capacity_h)
        return replace(call, fallback=instead)

    def job(self, context: Context, number: int = 0) -> Job:
        """Return the job on one of the cluster's candidates.

        Raises :class:`~orchestration.errors.PipelineError` where the framework has no image for it.
        """
        candidate = self.cluster.candidates()[number]
        own = context.resource_name(self.name)
        inputs = [data.entry(name) for name, data in self.inputs.items()]
        if self.source is not None:
            inputs.insert(0, request.code(self.source, context))
        return Job(
            name=own if number == 0 else join(own, f"-{string.ascii_lowercase[number]}"),
            context=context,
            image=self._image(context, candidate),
            entrypoint=self._entrypoint(),
            arguments=self.arguments,
            inputs=inputs,
            outputs=[
                result.entry(name, self._uri(name, context))
                for name, result in self.results.items()
            ],
            output_kms_key=self.output_kms_key,
            cluster=self.cluster.request(candidate),
            max_runtime_s=self.max_runtime_s,
            tags=context.tag_list(self.name),
            environment=self.environment,
            network=self._network(),
            extra=self.extra_request,
        )

    def _image(self, context: Context, candidate: Candidate) -> Text:
        if self.framework is None:
            return "" if self.image is None else self.image
        return self.framework.registry_path(context.region, candidate.instance_type)

    def _entrypoint(self) -> tuple[Text, ...]:
        if self.source is None:
            return self.command
        spark = self.framework is not None and self.framework.name == "spark"
        program = self.command or (("smspark-submit",) if spark else ("python3",))
        return (*program, request.script(self.source))

    def _network(self) -> dict[str, Any]:
        network: dict[str, Any] = {}
        if self.encrypt_inter_container_traffic:
            network["EnableInterContainerTrafficEncryption"] = True
        if self.enable_network_isolation:
            network["EnableNetworkIsolation"] = True
        if self.vpc is not None:
            network["VpcConfig"] = self.vpc.request()
        return network

    def _uri(self, name: str, context: Context) -> Text:
        """Return the place of a result: none begins with the name of another one.

        S3 prefixes match by their text: as ``.../train``, a result would hold those of
        ``.../train_large``, too.
        """
        uri = self.results[name].uri if name in self.results else None
        return context.location(self.name, name, "files") if uri is None else uri
