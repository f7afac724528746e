"""Instance types, accelerators and prices of SageMaker and services around it: data with sources.

A value that no source states is ``None``, never a guess. The tables beside this module are read
on first use and then kept; nothing uses the network.
"""

from orchestration.catalog.instances import (
    Accelerator,
    Instance,
    accelerators,
    instance,
    instances,
    is_scarce,
    training_types,
)
from orchestration.catalog.prices import Price, best_known_region, price, prices
from orchestration.catalog.rates import Rate, rate, rates
from orchestration.catalog.tables import Source, sources

__all__ = [
    "Accelerator",
    "Instance",
    "Price",
    "Rate",
    "Source",
    "accelerators",
    "best_known_region",
    "instance",
    "instances",
    "is_scarce",
    "price",
    "prices",
    "rate",
    "rates",
    "sources",
    "training_types",
]
