"""The model and the configuration of a deployment, and their common name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from orchestration.expressions import Function, Result, Tree, apply, join
from orchestration.graph import Adopt, Call, Operation, Step
from orchestration.refs import Expression
from orchestration.stages.answers.script import Judging, JudgingJob
from orchestration.stages.endpoints import identity, sharing
from orchestration.stages.endpoints.fields import DeploymentFields
from orchestration.stages.registry import packages
from orchestration.stages.serving.model import EXISTS, MODEL_VISIBLE_LATER, ServedModel
from orchestration.stages.stage import Context
from orchestration.stages.values import Text

VARIANT: Final = "main"
"""The variant of a new endpoint."""


@dataclass(frozen=True, slots=True)
class Made:
    """The model and the configuration that a deployment makes for its endpoint."""

    stage: DeploymentFields
    context: Context

    @property
    def endpoint(self) -> Text:
        """The endpoint's name."""
        return self.stage.endpoint(self.context)

    @property
    def component(self) -> Text:
        """The name of the inference component, where the stage has one."""
        own = self.stage.inference_component
        if own is not None and own.name is not None:
            return own.name
        return self.context.name_prefix(self.stage.name).removesuffix("-")

    @property
    def name(self) -> Expression[str]:
        """The name of the configuration and, but for several variants, of the model.

        It follows from what they are made of, so that the same again changes nothing.
        """
        stage = self.stage
        if stage.variants:
            models = [self.model_name, *(sharing.model_of(stage, name) for name in stage.variants)]
            content: Text = join(*(part for model in models for part in (" ", model)))
            return identity.named_after(self.prefix, content, [self._config_request("").request])
        requests = [self._model_request("").request, self._placed()]
        return identity.named_after(self.prefix, self._content(), requests)

    @property
    def model_name(self) -> Expression[str]:
        """The name of the model.

        Beside other variants, which may serve it, too, it follows from what it is made of alone.
        """
        if not self.stage.variants:
            return self.name
        request = self._model_request("").request
        return identity.named_after(self.prefix, self._content(), [request])

    @property
    def alarm_name(self) -> Expression[str]:
        """The beginning of the names of alarms: no two endpoints, or components, share it.

        The same model has one name on all those whose own names only a run knows.
        """
        component = self.stage.inference_component
        place = self.endpoint if component is None else self.component
        if isinstance(place, str):
            return self.name
        return join(self.prefix, apply(Function.HASH, join(self.name, " ", place)))

    @property
    def prefix(self) -> str:
        """The beginning of all such names: no two endpoints, or components, share it if known."""
        prefix, place = self.context.name_prefix(self.stage.name), self.endpoint
        component = self.stage.inference_component
        if not isinstance(place, str):
            return prefix
        if component is not None and isinstance(component.name, str):
            place = f"{place}/{component.name}"
        # As many characters as the names of stages leave room for.
        return f"{prefix}{hashlib.sha256(place.encode()).hexdigest()[:4]}-"

    def judging(self, kind: str) -> Judging | None:
        """Return the script that judges answers, if there is one; ``kind``: ``trial``, ``check``.

        Its container is by default that of the model.
        """
        stage, trial = self.stage, self.stage.update.trial
        if stage.judge is None or trial is None:
            return None
        return Judging(
            source=stage.judge,
            asked=trial.job or JudgingJob(),
            context=self.context,
            stage=stage.name,
            name=f"{stage.name}.{kind}",
            image=stage.registry_path(self.context),
            interval_s=stage.poll_interval_s,
        )

    @property
    def variant(self) -> Tree:
        """The variant's name: guardrails and scaling go by the one that the endpoint has."""
        named = self.stage.variant
        return Result(self.first_asked, "variant") if named is None else named

    @property
    def first_asked(self) -> str:
        """The step that asks first what the endpoint serves."""
        refuses = self.stage.update.while_busy == "refuse"
        return f"{self.stage.name}.{'busy' if refuses else 'look'}"

    def found(self, after: tuple[str, ...]) -> tuple[Step, ...]:
        """Return the steps that find what is deployed, and tell it from other models."""
        stage = self.stage
        if stage.model_data is None:
            return packages.found(stage, after)
        steps: list[Step] = []
        others = [each.model_data for _, each in stage.others if each.model_data is not None]
        for call, data in zip(self._fingerprint()[0], (stage.model_data, *others), strict=True):
            steps.append(replace(call, after=(steps[-1].name,) if steps else after))
            if call.pages is not None:
                steps.append(identity.not_empty(stage.name, call, data))
        return tuple(steps)

    def model(self, after: tuple[str, ...]) -> Call:
        """Return the call that makes the model."""
        return Call(
            name=f"{self.stage.name}.model",
            operation=self._model_request(self.model_name),
            adopt=Adopt(exists=EXISTS),
            after=after,
        )

    def trial_model(self, step: str, name: Tree) -> Call:
        """Return the call that makes the model with the network that its endpoint does not give."""
        return Call(
            name=f"{self.stage.name}.{step}",
            operation=self._model_request(name, is_trial=True),
            adopt=Adopt(exists=EXISTS),
        )

    def config(self) -> Call:
        """Return the call that makes the configuration."""
        return Call(
            name=f"{self.stage.name}.config",
            operation=self._config_request(self.name, self.model_name),
            adopt=Adopt(exists=EXISTS),
            retry=MODEL_VISIBLE_LATER,
            after=(f"{self.stage.name}.model",),
        )

    def _placed(self) -> Mapping[str, Tree]:
        """Return what says where the model is placed: its configuration, or its component."""
        component = self.stage.inference_component
        if component is None:
            return self._config_request("").request
        extra = self.stage.extra_request
        asked = self.stage.specification("")
        if component.autoscaling is None:
            asked["CopyCount"] = component.copies
        # How it is updated is no property of the component.
        updated = {
            k: v for k, v in extra.UpdateInferenceComponent.items() if k != "DeploymentConfig"
        }
        further = [each for each in (extra.CreateInferenceComponent, updated) if each]
        return {**asked, "further": further} if further else asked

    def _content(self) -> Text:
        """Return what tells the model from others: its files, or the version that it is."""
        package = packages.package(self.stage)
        return self._fingerprint()[1] if package is None else package

    def _fingerprint(self) -> tuple[tuple[Call, ...], Text]:
        stage = self.stage
        data = "" if stage.model_data is None else stage.model_data
        return stage.fingerprint(data, is_archive=stage.model_archive)

    def _model_request(self, name: Tree, *, is_trial: bool = False) -> Operation:
        stage = self.stage
        # An endpoint of components has its network in its configuration.
        networked = is_trial or stage.inference_component is None
        served = ServedModel(
            data="" if stage.model_data is None else stage.model_data,
            package=packages.package(stage),
            is_archive=stage.model_archive,
            image=stage.registry_path(self.context),
            source=stage.source,
            environment=stage.environment,
            vpc=stage.vpc if networked else None,
            is_isolated=stage.enable_network_isolation and networked,
        )
        whole = stage.around(served, self.context, stage.deciding_type)
        request = {**whole.request(stage.name, self.context), "ModelName": name}
        return stage.extra_request.merged("CreateModel", request)

    def _config_request(self, name: Tree, model: Tree = "") -> Operation:
        stage = self.stage
        variant: dict[str, Any] = {
            "VariantName": self.variant,
            "ModelName": model,
            **stage.machines(stage.instance_count),
            "InitialVariantWeight": sharing.own_weight(stage),
        }
        request: dict[str, Any] = {
            "EndpointConfigName": name,
            **sharing.placed(stage, variant),
            **stage.volume_key,
            "Tags": self.context.tag_list(stage.name),
        }
        if stage.data_capture is not None:
            request["DataCaptureConfig"] = stage.data_capture.request()
        if stage.asynchronous is not None:
            request["AsyncInferenceConfig"] = stage.asynchronous.request()
        return stage.extra_request.merged("CreateEndpointConfig", request)
