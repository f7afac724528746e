"""Amounts of data in a request for a plan."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from orchestration.planning.search.asked.fields import Above, Asked, Positive
from orchestration.planning.search.task import Batch, evened


class _Amount(Asked):
    samples: Positive | None = None
    """In samples."""
    tokens: Above | None = None
    """Instead: in tokens."""

    @model_validator(mode="after")
    def _one_unit(self) -> Self:
        if (self.samples is None) == (self.tokens is None):
            raise ValueError("give samples or tokens")
        return self


class BatchRequest(_Amount):
    """The batch of one optimizer step, in samples or tokens: a number or a range.

    A number of tokens is rounded by at most 5 %, so that the batch can be halved often.
    """

    up_to_samples: Positive | None = None
    """Largest batch that the planner may choose."""
    up_to_tokens: Above | None = None
    """The same in tokens."""
    critical_samples: Above | None = None
    """Batch beyond which more samples per step hardly save steps: the gradient's noise scale."""

    @model_validator(mode="after")
    def _range(self) -> Self:
        pairs = ((self.samples, self.up_to_samples), (self.tokens, self.up_to_tokens))
        if any(least and most and most < least for least, most in pairs):
            raise ValueError("the largest batch is smaller than the batch; raise it")
        if (self.samples and self.up_to_tokens) or (self.tokens and self.up_to_samples):
            unit = "samples" if self.samples else "tokens"
            raise ValueError(f"give both ends in one unit: {unit} with up_to_{unit}")
        return self

    def batch(self, sequence: int) -> Batch:
        """Return the batch in samples."""
        least = self.samples or evened((self.tokens or 0) / sequence)
        most = self.up_to_samples or evened((self.up_to_tokens or 0) / sequence)
        return Batch(least=least, most=max(most, least), critical=self.critical_samples)


class DataRequest(_Amount):
    """The training data, in samples or tokens, times epochs."""

    epochs: Above = 1
    """Times that the training reads the data."""

    def total(self, sequence: int) -> int:
        """Return the number of samples in the whole training."""
        return max(1, round((self.samples or (self.tokens or 0) / sequence) * self.epochs))
