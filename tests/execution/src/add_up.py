"""Joins the others as its launcher told it to, adds up with them, and tells who it was."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

from orchestration_runtime import cluster


def told() -> dict[str, Any]:
    """Who this process is, by what its launcher alone sets."""
    given = os.environ
    if "OMPI_COMM_WORLD_RANK" in given:
        words = {"rank": "RANK", "world": "SIZE", "local_rank": "LOCAL_RANK"}
        numbers = {key: int(given[f"OMPI_COMM_WORLD_{word}"]) for key, word in words.items()}
        return {"launcher": "mpirun", **numbers}
    if "TORCHELASTIC_RUN_ID" in given:
        words = {"rank": "RANK", "world": "WORLD_SIZE", "local_rank": "LOCAL_RANK"}
        return {"launcher": "torchrun", **{key: int(given[word]) for key, word in words.items()}}
    hosts = json.loads(given["SM_HOSTS"])
    rank = hosts.index(given["SM_CURRENT_HOST"])
    return {"launcher": "plain", "rank": rank, "world": len(hosts), "local_rank": 0}


def totals(rank: int, world: int) -> dict[str, float]:
    """The sum of 1, 2, ..., world, as every way to reduce gets at it."""
    import torch
    from torch import distributed

    distributed.init_process_group("gloo", rank=rank, world_size=world)
    mine = torch.tensor([float(rank + 1)])
    distributed.all_reduce(mine)
    distributed.barrier()
    distributed.destroy_process_group()
    found = {"gloo": mine.item()}
    if "OMPI_COMM_WORLD_RANK" in os.environ:
        from mpi4py import MPI

        found["mpi"] = MPI.COMM_WORLD.allreduce(float(rank + 1))
    return found


def main() -> None:
    """Add up, unless this host's group only stands by."""
    me = told()
    group = os.environ["SM_CURRENT_INSTANCE_GROUP"]
    # mpirun gives every process the first host's SM_ variables; a name of one's own remains.
    me |= {"host": socket.gethostname(), "sm_host": os.environ["SM_CURRENT_HOST"], "group": group}
    me |= {"hosts": json.loads(os.environ["SM_HOSTS"]), "arguments": sys.argv[1:]}
    me |= {"colour": os.environ.get("COLOUR")}
    me |= {"resources": json.loads(os.environ["SM_RESOURCE_CONFIG"])}
    told_of = json.loads(os.environ["SM_HPS"])
    me |= {"program": os.environ.get("STAND_IN", ""), "mp": told_of.get("mp_parameters")}
    here = cluster()
    me |= {"runtime": [here.launcher, here.rank, here.world_size, here.current_host]}
    stands_by = group == os.environ.get("STANDS_BY")
    me["totals"] = {} if stands_by else totals(me["rank"], me["world"])
    name = f"{group}-{me['launcher']}-{me['rank']}-{me['sm_host']}-{os.getpid()}.json"
    Path(os.environ["SEEN"], name).write_text(json.dumps(me))


if __name__ == "__main__":
    main()
