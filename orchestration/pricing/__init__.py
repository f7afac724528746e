"""The dollars that a run of a pipeline costs: expected and at most before it, billed after it.

It reads the steps of a workflow, whatever stages they are from, and the prices of the catalog.
Nothing without a price is zero: it is named.
"""

from orchestration.pricing.assumptions import Assumptions, Expected
from orchestration.pricing.estimating import estimate
from orchestration.pricing.lines import Estimate, Line, Sum

__all__ = ["Assumptions", "Estimate", "Expected", "Line", "Sum", "estimate"]
