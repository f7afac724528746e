"""A model over data in S3, as a SageMaker batch transform job.

https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_CreateTransformJob.html
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from typing_extensions import override

from orchestration.checks import jsonpath
from orchestration.errors import Problem
from orchestration.expressions import All, Compare, Function, Result, Tree, apply, join
from orchestration.graph import (
    Adopt,
    Call,
    ErrorPattern,
    Operation,
    Output,
    Recovery,
    Require,
    Retry,
    Step,
    Until,
)
from orchestration.refs import Ref
from orchestration.stages.capacity import fallback
from orchestration.stages.listing import MOST_OBJECTS, counted, not_empty
from orchestration.stages.outputs import Outputs, output
from orchestration.stages.serving.containers import of_code
from orchestration.stages.serving.fields import LARGEST_MB, TransformFields
from orchestration.stages.serving.model import EXISTS, MODEL_VISIBLE_LATER, ServedModel
from orchestration.stages.stage import SAMPLE, Context, Fragment
from orchestration.stages.training.cluster import Candidate
from orchestration.stages.values import ABSENT, s3_problem

_PAGES: Final = 200
"""Pages of a listing: as many objects as are counted, of the data and of the predictions."""
_USAGE: Final = "transform job usage"
_FILTERED: Final = ("text/csv", "application/json", "application/jsonlines")
_GONE = ErrorPattern("ValidationException", "Could not find model")


@dataclass(frozen=True, slots=True)
class BatchTransformOutputs:
    """References to what a :class:`BatchTransform` gives."""

    job_name: Ref[str] = output(shown=True)
    location: Ref[str] = output(shown=True, written=True)
    """S3 URI of the predictions: for each object of the data one, its name with ``.out`` behind."""
    object_count: Ref[int] = output(shown=True)
    """Objects of the data, and of the predictions."""
    model_name: Ref[str] = output(
        exists=lambda stage: stage.model_name is not None or stage.keep_model,
        otherwise="its model is deleted at the end; give it keep_model: true",
        shown=True,
    )


class BatchTransform(TransformFields):
    """Sends data in S3 through a model, and checks that every object has been answered.

    The model is made of ``model_data`` and an ``image`` and deleted when the data is through (a run
    that fails leaves it, which costs nothing), or is one that exists (``model_name``).
    """

    outputs: ClassVar[Outputs[BatchTransformOutputs]] = Outputs(BatchTransformOutputs)

    @property
    def framework(self) -> None:
        """No container of AWS's, which would be in the place of the ``image``."""
        return None

    @override
    def check(self, context: Context = SAMPLE) -> Iterator[Problem]:
        for field in ("model_data", "data", "output_uri"):
            yield from s3_problem(field, getattr(self, field))
        yield from self._served()
        yield from of_code(self)
        yield from self.problems_of_sequence()
        yield from self.problems_of_model(self.extra_request.CreateModel)
        if self.strategy is not None and self.split == "none":
            yield Problem("strategy", "needs records; give split: line, record_io or tf_record")
        payload = 6 if self.max_payload_mb is None else self.max_payload_mb
        if self.max_concurrency and payload * self.max_concurrency > LARGEST_MB:
            yield Problem(
                "max_concurrency",
                f"{self.max_concurrency} requests of up to {payload} MB are "
                f"{self.max_concurrency * payload} MB at a time; the most is {LARGEST_MB}",
            )
        yield from self._filters()
        try:
            self.lower(SAMPLE)
        except ValueError as error:
            yield Problem("extra_request", str(error))

    def _served(self) -> Iterator[Problem]:
        own = ("model_data", "image", "source", "environment", "vpc", "enable_network_isolation")
        if self.model_name is None:
            for field in ("model_data", "image"):
                if getattr(self, field) is None:
                    yield Problem(field, "is needed; or the model_name of a model that exists")
            return
        for field in (*own, "model_archive", "keep_model", "preprocessing", "postprocessing"):
            if getattr(self, field) not in (None, False, {}, ()):
                yield Problem(field, "belongs to a model of the run's own; leave out model_name")

    def _filters(self) -> Iterator[Problem]:
        for field in ("input_filter", "output_filter"):
            path = getattr(self, field)
            try:
                jsonpath.parse("$" if path is None else path)
            except ValueError as error:
                yield Problem(field, f"expected a JSONPath, got {path!r}: {error}")
        is_filtered = self.join_input or self.input_filter or self.output_filter
        if is_filtered and self.content_type not in _FILTERED:
            kinds = ", ".join(_FILTERED)
            yield Problem(
                "content_type", f"expected one of {kinds} beside a filter, got {self.content_type}"
            )

    @override
    def lower(self, context: Context) -> Fragment:
        own = self.model_name is None
        steps: list[Step] = [self._listed(), self._usable()]
        if own:
            steps.append(self.model(context))
        steps += [self.job(context), self._written(context), self._verified()]
        if own and not self.keep_model:
            steps.append(self.deleted(context))
        outputs: dict[str, Tree] = {
            "job_name": Result(f"{self.name}.job", "job_name"),
            "location": self.location(context),
            "object_count": Result(f"{self.name}.list", "files"),
        }
        if not own or self.keep_model:
            outputs["model_name"] = self.made_name(context)
        return Fragment(steps=tuple(steps), outputs=outputs)

    def _listed(self) -> Call:
        return counted(f"{self.name}.list", self.data, most=_PAGES, one=self.one_file)

    def _usable(self) -> Require:
        files, more = (Result(f"{self.name}.list", output) for output in ("files", "more"))
        if self.one_file:
            return Require(
                name=f"{self.name}.usable",
                condition=Compare("eq", files, 1),
                error="DataNotUsable",
                cause=join(
                    f"stage {self.name} expected the object ",
                    *(self.data, " and none whose key begins so; saw ", files),
                ),
            )
        cause = join(
            f"stage {self.name} expected 1 to {_PAGES * MOST_OBJECTS} objects below ",
            *(apply(Function.DIRECTORY, self.data), "; saw ", files),
        )
        return not_empty(f"{self.name}.usable", files, more, error="DataNotUsable", cause=cause)

    def model(self, context: Context) -> Call:
        """Return the step that makes the model, maybe with code beside its files."""
        served = ServedModel(
            data="" if self.model_data is None else self.model_data,
            is_archive=self.model_archive,
            image="" if self.image is None else self.image,
            environment=self.environment,
            source=self.source,
            vpc=self.vpc,
            is_isolated=self.enable_network_isolation,
        )
        request = self.around(served, context, self.instance_type).request(self.name, context)
        return Call(
            name=f"{self.name}.model",
            operation=self.extra_request.merged("CreateModel", request),
            adopt=Adopt(exists=EXISTS),
            after=(f"{self.name}.usable",),
        )

    def job(self, context: Context) -> Call:
        """Return the step that runs the job to its end."""
        named = {"TransformJobName": context.resource_name(self.name)}
        before = "usable" if self.model_name is not None else "model"
        machines = Candidate(self.instance_type, self.instance_count).label
        return Call(
            name=f"{self.name}.job",
            operation=self.extra_request.merged("CreateTransformJob", self.request(context)),
            adopt=Adopt(exists=ErrorPattern("ResourceInUse"), name_field="TransformJobName"),
            retry=Retry() if self.model_name is not None else MODEL_VISIBLE_LATER,
            until=Until(
                poll=Operation("sagemaker", "DescribeTransformJob", named),
                status=("TransformJobStatus",),
                success=frozenset(["Completed"]),
                failure=frozenset(["Failed", "Stopped"]),
                reason=("FailureReason",),
                absent=ABSENT,
                interval_s=self.poll_interval_s,
                timeout_s=self.max_runtime_s,
                stop=Operation("sagemaker", "StopTransformJob", named),
                outputs={"job_name": Output(("TransformJobName",), kind="string")},
            ),
            fallback=fallback(machines, (), _USAGE, self.wait_for_capacity_h),
            after=(f"{self.name}.{before}",),
        )

    def _written(self, context: Context) -> Call:
        job = f"{self.name}.job"
        return counted(f"{self.name}.written", self.location(context), most=_PAGES, after=(job,))

    def _verified(self) -> Require:
        """The run's own place holds as many objects as the data; any other at least as many."""
        written, listed = f"{self.name}.written", f"{self.name}.list"
        predictions, wanted = Result(written, "files"), Result(listed, "files")
        alone = (
            Compare("eq", predictions, wanted),
            Compare("eq", Result(written, "more"), False),
        )
        return Require(
            name=f"{self.name}.verified",
            condition=(
                All(alone) if self.output_uri is None else Compare("ge", predictions, wanted)
            ),
            error="TransformIncomplete",
            cause=join("the data has ", wanted, " objects, the predictions ", predictions),
        )

    def deleted(self, context: Context) -> Call:
        """Return the step that deletes the model."""
        return Call(
            name=f"{self.name}.delete",
            operation=Operation(
                "sagemaker", "DeleteModel", {"ModelName": context.resource_name(self.name)}
            ),
            recoveries=(Recovery(_GONE, {}),),
            after=(f"{self.name}.verified",),
        )
