"""Machines and containers in a request for a plan."""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from orchestration.catalog import instances
from orchestration.errors import near
from orchestration.planning.search.asked.fields import Asked, Positive


class FrameworkRequest(Asked):
    """Framework of the training script."""

    name: Literal["pytorch", "huggingface", "tensorflow", "mxnet"] = "pytorch"
    """Its name."""
    version: str | None = None
    """Its version; ``None``: any."""
    image: str | None = None
    """A container of your own, by its registry path."""

    @model_validator(mode="after")
    def _known_version(self) -> FrameworkRequest:
        from orchestration.strategies.images.table import frameworks, scopes, versions

        version = self.version
        if version is None or self.image is not None:
            return self
        names = [name for name in frameworks() if name.startswith(self.name)]
        known = {each for name in names if "training" in scopes(name) for each in versions(name)}
        if version not in known:
            raise ValueError(
                f"AWS has no container of {self.name} {version} (one of your own is named by "
                f"image){near(version, known)}"
            )
        return self


class InstancesRequest(Asked):
    """Instances that may be rented."""

    types: tuple[str, ...] = ("ml.*",)
    """Instance types; ``*`` stands for any text."""
    counts: tuple[Positive, ...] = (1, 2, 4, 8, 16, 32)
    """Numbers of instances that may be chosen."""
    quotas: Mapping[str, Annotated[int, Field(ge=0)]] = {}
    """Largest number of instances by type; ``*`` stands for any text."""
    region: str | None = None
    """Region whose prices count; ``None``: the one with most listed prices."""
    spot: bool = False
    """Train on spot capacity."""
    spot_saving: Annotated[float, Field(ge=0, lt=1)] = 0.0
    """Fraction of the on-demand price that you expect spot to save."""

    @field_validator("region")
    @classmethod
    def _known_region(cls, value: str | None) -> str | None:
        from orchestration.strategies.images.table import suffixes  # long, and rarely needed

        if value is not None and value not in suffixes():
            raise ValueError(f"unknown region {value!r}{near(value, suffixes())}")
        return value

    @field_validator("counts")
    @classmethod
    def _some_counts(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value:
            raise ValueError("give one or more, for example [1, 2, 4], or leave it out")
        return value

    @field_validator("types")
    @classmethod
    def _types_that_train(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        names = [name for name, each in instances().items() if each.training]
        patterns = {f"{name.rpartition('.')[0]}.*" for name in names}
        wrong = [
            f"no instance type for training matches {pattern!r}"
            + near(pattern, patterns if "*" in pattern else names)
            for pattern in value
            if not any(fnmatchcase(name, pattern) for name in names)
        ]
        if wrong or not value:
            raise ValueError("; ".join(wrong) or "give one or more, for example ml.p5.*")
        return value

    @model_validator(mode="after")
    def _saving_of_spot(self) -> InstancesRequest:
        if self.spot_saving and not self.spot:
            raise ValueError("spot_saving counts with spot: true only; add it, or leave both out")
        return self

    @model_validator(mode="after")
    def _quotas_of_known_types(self) -> InstancesRequest:
        for pattern in self.quotas:
            if not any(fnmatchcase(name, pattern) for name in instances()):
                hint = near(pattern, instances())
                raise ValueError(f"quotas: no instance type matches {pattern!r}{hint}")
        return self
