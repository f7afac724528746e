"""The arithmetic of samples, steps and epochs."""

from __future__ import annotations


def cluster_size(instances: int, devices_per_instance: int) -> int:
    """Count the devices of a cluster: the number of replicas if each device holds one.

    >>> cluster_size(4, 8)
    32
    """
    _positive(instances=instances, devices_per_instance=devices_per_instance)
    return instances * devices_per_instance


def global_batch(replicas: int, per_replica: int, accumulation: int = 1) -> int:
    """Compute the number of samples per step of the optimiser.

    `per_replica`: samples in one forward pass of a replica. `accumulation`: forward and backward
    passes before a step.

    >>> global_batch(32, 8, accumulation=2)
    512
    """
    _positive(replicas=replicas, per_replica=per_replica, accumulation=accumulation)
    return replicas * per_replica * accumulation


def accumulation(batch: int, replicas: int, per_replica: int) -> int:
    """Compute how many passes each replica accumulates to make up a global batch.

    Raises ValueError if no whole number of passes gives exactly that batch.

    >>> accumulation(512, replicas=16, per_replica=8)
    4
    """
    _positive(batch=batch, replicas=replicas, per_replica=per_replica)
    times, rest = divmod(batch, replicas * per_replica)
    if rest or not times:
        raise ValueError(
            f"a global batch of {batch} is not a multiple of {replicas} replicas x {per_replica} "
            f"samples; {max(1, times) * replicas * per_replica} is"
        )
    return times


def iterations_per_epoch(samples: int, batch: int, *, drop_last: bool) -> int:
    """Count the steps of the optimiser in which each sample is seen once.

    `drop_last`: leave out the samples that don't fill a batch (rounds down, and raises ValueError
    if there is not one whole batch); otherwise the last step takes fewer (rounds up).

    >>> iterations_per_epoch(1_281_167, 8192, drop_last=True)
    156
    >>> iterations_per_epoch(1_281_167, 8192, drop_last=False)
    157
    """
    _positive(samples=samples, batch=batch)
    if not drop_last:
        return -(-samples // batch)
    if samples < batch:
        raise ValueError(f"{samples} samples don't fill one batch of {batch}: an epoch has no step")
    return samples // batch


def _positive(**numbers: int) -> None:
    bad = [f"{name}={number}" for name, number in numbers.items() if number < 1]
    if bad:
        raise ValueError(f"{', '.join(bad)}: must be at least 1")
