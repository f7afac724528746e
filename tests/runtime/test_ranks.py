"""Every launcher's variables, as tables."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.runtime import Cluster, ClusterError, tf_config

Environ = dict[str, str]


def sagemaker(hosts: Iterable[str], current: str, **more: object) -> Environ:
    given = {"SM_HOSTS": json.dumps(list(hosts)), "SM_CURRENT_HOST": current}
    return given | {name: str(value) for name, value in more.items()}


def torchrun(rank: int, world_size: int, local_size: int) -> Environ:
    return {
        "RANK": str(rank),
        "WORLD_SIZE": str(world_size),
        "LOCAL_RANK": str(rank % local_size),
        "LOCAL_WORLD_SIZE": str(local_size),
        "GROUP_RANK": str(rank // local_size),
        "GROUP_WORLD_SIZE": str(world_size // local_size),
        "MASTER_ADDR": "algo-1",
        "MASTER_PORT": "7777",
        "TORCHELASTIC_RUN_ID": "none",
    }


def open_mpi(rank: int, world_size: int, local_rank: int, local_size: int) -> Environ:
    return {
        "OMPI_COMM_WORLD_RANK": str(rank),
        "OMPI_COMM_WORLD_SIZE": str(world_size),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(local_rank),
        "OMPI_COMM_WORLD_LOCAL_SIZE": str(local_size),
        # Not the rank of the node, whatever its name says.
        "OMPI_COMM_WORLD_NODE_RANK": str(local_rank),
    }


TWO = ("algo-1", "algo-2")
GROUPS = [
    {"instance_group_name": "cpu", "instance_type": "ml.c5.xlarge", "hosts": ["algo-1"]},
    {
        "instance_group_name": "gpu",
        "instance_type": "ml.p4d.24xlarge",
        "hosts": ["algo-2", "algo-3"],
    },
]


def heterogeneous(current: str, groups: Iterable[str]) -> Environ:
    hosts = ["algo-1", "algo-2", "algo-3"]
    resources = {"current_host": current, "hosts": hosts, "instance_groups": GROUPS}
    return sagemaker(
        hosts,
        current,
        SM_RESOURCE_CONFIG=json.dumps(resources),
        SM_DISTRIBUTION_INSTANCE_GROUPS=json.dumps(list(groups)),
    )


def tensorflow(kind: str, index: int, **members: list[str]) -> Environ:
    return {"TF_CONFIG": json.dumps({"cluster": members, "task": {"type": kind, "index": index}})}


PARAMETER_SERVERS = {
    "master": ["algo-1:2222"],
    "worker": ["algo-2:2222"],
    "ps": ["algo-1:2223", "algo-2:2223"],
}
DMLC = {"DMLC_NUM_WORKER": "2", "DMLC_NUM_SERVER": "2"}
DMLC_ROOT = {"DMLC_PS_ROOT_URI": "10.0.0.1", "DMLC_PS_ROOT_PORT": "8000"}
XLA = {
    "XRT_HOST_ORDINAL": "1",
    "XRT_WORKERS": "localservice:0;algo-1:43857|localservice:1;algo-2:43857",
    "XRT_MESH_SERVICE_ADDRESS": "algo-1:53957",
    "GPU_NUM_DEVICES": "4",
}

# Launcher, rank of world size, local rank of local size, node rank of hosts, and this host.
Seen = tuple[str, int, int, int, int, int, int, str | None]
TABLE: list[tuple[str, Environ, Seen]] = [
    ("laptop", {}, ("none", 0, 1, 0, 1, 0, 1, "localhost")),
    ("empty values", {"RANK": "", "SM_HOSTS": ""}, ("none", 0, 1, 0, 1, 0, 1, "localhost")),
    ("one host", sagemaker(["algo-1"], "algo-1"), ("sagemaker", 0, 1, 0, 1, 0, 1, "algo-1")),
    ("plain", sagemaker(TWO, "algo-2"), ("sagemaker", 1, 2, 0, 1, 1, 2, "algo-2")),
    (
        "resource config alone",
        {"SM_RESOURCE_CONFIG": json.dumps({"hosts": list(TWO), "current_host": "algo-2"})},
        ("sagemaker", 1, 2, 0, 1, 1, 2, "algo-2"),
    ),
    (
        "torchrun",
        sagemaker(TWO, "algo-2") | torchrun(5, 8, 4),
        ("torchrun", 5, 8, 1, 4, 1, 2, "algo-2"),
    ),
    ("torchrun, no SageMaker", torchrun(1, 2, 2), ("torchrun", 1, 2, 1, 2, 0, 1, "localhost")),
    ("torchrun, hosts unknown", torchrun(3, 4, 2), ("torchrun", 3, 4, 1, 2, 1, 2, None)),
    (
        "torch variables by hand",
        sagemaker(TWO, "algo-2") | {"RANK": "1", "WORLD_SIZE": "2"},
        ("torchrun", 1, 2, 0, 1, 1, 2, "algo-2"),
    ),
    (
        "trainium: torchrun below XLA's own variables",
        sagemaker(TWO, "algo-1", SM_NUM_NEURONS=2)
        | torchrun(1, 4, 2)
        | {"XRT_SHARD_ORDINAL": "1", "XRT_SHARD_LOCAL_ORDINAL": "1", "XRT_SHARD_WORLD_SIZE": "4"},
        ("torchrun", 1, 4, 1, 2, 0, 2, "algo-1"),
    ),
    (
        "torchrun in a heterogeneous cluster",
        heterogeneous("algo-3", ["gpu"]) | torchrun(3, 4, 2),
        ("torchrun", 3, 4, 1, 2, 1, 2, "algo-3"),
    ),
    (
        "the group that does not train",
        heterogeneous("algo-1", ["gpu"]),
        ("sagemaker", 0, 1, 0, 1, 0, 1, "algo-1"),
    ),
    (
        "both groups train",
        heterogeneous("algo-2", ["cpu", "gpu"]) | torchrun(1, 3, 1),
        ("torchrun", 1, 3, 0, 1, 1, 3, "algo-2"),
    ),
    (
        # mpirun hands the first host's SM_CURRENT_HOST to all.
        "mpirun",
        sagemaker(TWO, "algo-1") | open_mpi(5, 8, 1, 4),
        ("mpirun", 5, 8, 1, 4, 1, 2, "algo-2"),
    ),
    (
        "mpirun by node",
        sagemaker(TWO, "algo-1") | open_mpi(3, 8, 1, 4),
        ("mpirun", 3, 8, 1, 4, 1, 2, "algo-2"),
    ),
    (
        "mpich",
        {"PMI_RANK": "3", "PMI_SIZE": "4", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}
        | sagemaker(TWO, "algo-1"),
        ("mpirun", 3, 4, 1, 2, 1, 2, "algo-2"),
    ),
    (
        "pmi without local ranks",
        {"PMI_RANK": "3", "PMI_SIZE": "4"} | sagemaker(TWO, "algo-1"),
        ("mpirun", 3, 4, 1, 2, 1, 2, "algo-2"),
    ),
    (
        "smddp",
        sagemaker(TWO, "algo-1")
        | open_mpi(9, 16, 1, 8)
        | {"SMDATAPARALLEL_USE_HOMOGENEOUS": "1", "SMDATAPARALLEL_SERVER_ADDR": "algo-1"}
        | {"RANK": "9", "WORLD_SIZE": "16", "LOCAL_RANK": "1"},
        ("smddp", 9, 16, 1, 8, 1, 2, "algo-2"),
    ),
    (
        "smddp on one host",
        sagemaker(["algo-1"], "algo-1")
        | open_mpi(1, 8, 1, 8)
        | {"SMDATAPARALLEL_USE_SINGLENODE": "1"},
        ("smddp", 1, 8, 1, 8, 0, 1, "algo-1"),
    ),
    (
        "torchrun inside mpirun",
        sagemaker(TWO, "algo-2") | open_mpi(1, 2, 0, 1) | torchrun(3, 4, 2),
        ("torchrun", 3, 4, 1, 2, 1, 2, "algo-2"),
    ),
    (
        "xla",
        sagemaker(TWO, "algo-2")
        | XLA
        | {"XRT_SHARD_ORDINAL": "6", "XRT_SHARD_LOCAL_ORDINAL": "2", "XRT_SHARD_WORLD_SIZE": "8"},
        ("xla", 6, 8, 2, 4, 1, 2, "algo-2"),
    ),
    (
        "xla before it spawns",
        sagemaker(TWO, "algo-2") | XLA | {"XRT_SHARD_WORLD_SIZE": "2"},
        ("xla", 1, 2, 0, 1, 1, 2, "algo-2"),
    ),
    (
        "lightning's own processes",
        sagemaker(TWO, "algo-2") | {"LOCAL_RANK": "3", "NODE_RANK": "1", "WORLD_SIZE": "8"},
        ("lightning", 7, 8, 3, 4, 1, 2, "algo-2"),
    ),
    (
        "mirrored workers",
        sagemaker(TWO, "algo-2") | tensorflow("worker", 1, worker=["algo-1:8890", "algo-2:8890"]),
        ("tensorflow", 1, 2, 0, 1, 1, 2, "algo-2"),
    ),
    (
        "two workers on each host",
        tensorflow("worker", 3, worker=["a:1", "a:2", "b:1", "b:2"]),
        ("tensorflow", 3, 4, 1, 2, 1, 2, "b"),
    ),
    (
        "parameter servers: master",
        sagemaker(TWO, "algo-1") | tensorflow("master", 0, **PARAMETER_SERVERS),
        ("tensorflow", 0, 2, 0, 1, 0, 2, "algo-1"),
    ),
    (
        "parameter servers: worker",
        sagemaker(TWO, "algo-2") | tensorflow("worker", 0, **PARAMETER_SERVERS),
        ("tensorflow", 1, 2, 0, 1, 1, 2, "algo-2"),
    ),
    (
        "parameter servers: server",
        sagemaker(TWO, "algo-1") | tensorflow("ps", 0, **PARAMETER_SERVERS),
        ("tensorflow", -1, 2, -1, 1, 0, 2, "algo-1"),
    ),
    (
        "evaluator",
        tensorflow("evaluator", 0, chief=["a:1"]),
        ("tensorflow", -1, 1, -1, 1, -1, 1, None),
    ),
    (
        "mxnet worker",
        sagemaker(TWO, "algo-2") | DMLC | DMLC_ROOT | {"DMLC_ROLE": "worker"},
        ("mxnet", 1, 2, 0, 1, 1, 2, "algo-2"),
    ),
    (
        "mxnet server",
        sagemaker(TWO, "algo-1") | DMLC | DMLC_ROOT | {"DMLC_ROLE": "server"},
        ("mxnet", -1, 2, -1, 1, 0, 2, "algo-1"),
    ),
]


@pytest.mark.parametrize(
    ("environ", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_place_of_a_process(environ: Environ, expected: Seen) -> None:
    seen = Cluster.from_environment(environ)
    assert (
        seen.launcher,
        seen.rank,
        seen.world_size,
        seen.local_rank,
        seen.local_size,
        seen.node_rank,
        seen.host_count,
        seen.current_host,
    ) == expected


MASTERS: list[tuple[str, Environ, tuple[str, int]]] = [
    ("laptop", {}, ("127.0.0.1", 29500)),
    ("plain", sagemaker(TWO, "algo-2"), ("algo-1", 7777)),
    ("toolkit", {"MASTER_ADDR": "x", "MASTER_PORT": "5"} | sagemaker(TWO, "algo-2"), ("x", 5)),
    ("mpirun", sagemaker(TWO, "algo-1") | open_mpi(1, 2, 0, 1), ("algo-1", 7777)),
    ("tensorflow", tensorflow("ps", 0, **PARAMETER_SERVERS), ("algo-1", 2222)),
    ("mxnet", DMLC | DMLC_ROOT | {"DMLC_ROLE": "scheduler"}, ("10.0.0.1", 8000)),
    ("group", heterogeneous("algo-3", ["gpu"]), ("algo-2", 7777)),
]


@pytest.mark.parametrize(
    ("environ", "expected"), [row[1:] for row in MASTERS], ids=[row[0] for row in MASTERS]
)
def test_master(environ: Environ, expected: tuple[str, int]) -> None:
    seen = Cluster.from_environment(environ)
    assert (seen.master_address, seen.master_port) == expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"SM_NUM_GPUS": 8, "SM_NUM_NEURONS": 0}, ("gpu", 8)),
        ({"SM_NUM_GPUS": 0, "SM_NUM_NEURONS": 2}, ("neuron", 2)),
        ({"SM_NUM_GPUS": 0}, ("none", 0)),
    ],
)
def test_devices(more: dict[str, object], expected: tuple[str, int]) -> None:
    seen = Cluster.from_environment(sagemaker(["algo-1"], "algo-1", **more))
    assert (seen.accelerator, seen.devices_per_host) == expected


def test_groups_tell_who_else_is_there() -> None:
    seen = Cluster.from_environment(heterogeneous("algo-3", ["gpu"]))
    assert seen.hosts == ("algo-2", "algo-3")
    assert seen.group == "gpu"
    assert [group.instance_type for group in seen.groups] == ["ml.c5.xlarge", "ml.p4d.24xlarge"]


@pytest.mark.parametrize(
    ("kind", "role"), [("master", "worker"), ("ps", "server"), ("worker", "worker")]
)
def test_roles(kind: str, role: str) -> None:
    seen = Cluster.from_environment(tensorflow(kind, 0, **PARAMETER_SERVERS))
    assert seen.role == role
    assert seen.is_first is (kind == "master")


BAD: list[tuple[str, Environ, list[str]]] = [
    ("no number", torchrun(0, 2, 2) | {"RANK": "first"}, ["RANK='first'"]),
    ("negative", torchrun(0, 2, 2) | {"LOCAL_RANK": "-1"}, ["LOCAL_RANK=-1"]),
    ("half", {"RANK": "0"}, ["RANK=0", "WORLD_SIZE"]),
    ("half of mpirun", {"OMPI_COMM_WORLD_RANK": "0"}, ["OMPI_COMM_WORLD_SIZE"]),
    ("rank too great", torchrun(0, 2, 2) | {"RANK": "2"}, ["RANK=2", "WORLD_SIZE=2"]),
    (
        "local rank of another rank",
        torchrun(3, 4, 2) | {"LOCAL_RANK": "0"},
        ["RANK=3", "LOCAL_RANK=0", "GROUP_RANK=1"],
    ),
    (
        "two launchers, two ranks",
        open_mpi(0, 2, 0, 2) | {"RANK": "1", "WORLD_SIZE": "2"},
        ["RANK=1", "OMPI_COMM_WORLD_RANK=0"],
    ),
    (
        "two launchers, two sizes",
        open_mpi(1, 2, 1, 2) | {"RANK": "1", "WORLD_SIZE": "4"},
        ["WORLD_SIZE=4", "OMPI_COMM_WORLD_SIZE=2"],
    ),
    (
        "hosts that would train by themselves",
        sagemaker(TWO, "algo-2") | torchrun(1, 2, 2),
        ["WORLD_SIZE=2", "algo-1, algo-2", "by themselves"],
    ),
    ("stranger", sagemaker(TWO, "algo-3"), ["SM_CURRENT_HOST=algo-3", "SM_HOSTS"]),
    ("who am I", {"SM_HOSTS": json.dumps(TWO)}, ["SM_HOSTS", "SM_CURRENT_HOST"]),
    (
        "two lists of hosts",
        sagemaker(TWO, "algo-1", SM_RESOURCE_CONFIG=json.dumps({"hosts": ["algo-1"]})),
        ["SM_HOSTS", "SM_RESOURCE_CONFIG"],
    ),
    (
        "two current hosts",
        sagemaker(TWO, "algo-1", SM_RESOURCE_CONFIG='{"current_host": "algo-2"}'),
        ["SM_CURRENT_HOST=algo-1", "'algo-2'"],
    ),
    ("hosts are no JSON", {"SM_HOSTS": "algo-1,algo-2"}, ["SM_HOSTS"]),
    ("hosts are no list", {"SM_HOSTS": '"algo-1"'}, ["SM_HOSTS"]),
    ("resources are no object", {"SM_RESOURCE_CONFIG": "[]"}, ["SM_RESOURCE_CONFIG"]),
    ("groups are no list", {"SM_RESOURCE_CONFIG": '{"instance_groups": 1}'}, ["instance_groups"]),
    (
        "group of strangers",
        sagemaker(["algo-2"], "algo-2", SM_RESOURCE_CONFIG=json.dumps({"instance_groups": GROUPS})),
        ["'cpu'", "algo-1"],
    ),
    ("no local ranks", {"PMI_RANK": "0", "PMI_SIZE": "4"}, ["PMI_SIZE=4", "how many processes"]),
    (
        "uneven",
        sagemaker(TWO, "algo-1") | {"PMI_RANK": "0", "PMI_SIZE": "3"},
        ["PMI_SIZE=3", "evenly"],
    ),
    ("task out of range", tensorflow("worker", 1, worker=["a:1"]), ["TF_CONFIG", "1"]),
    ("task unknown", tensorflow("boss", 0, worker=["a:1"]), ["TF_CONFIG", "'boss'"]),
    ("no workers", tensorflow("ps", 0, ps=["a:1"]), ["TF_CONFIG", "no workers"]),
    ("no port", tensorflow("worker", 0, worker=["a"]), ["cluster.worker", "'a'"]),
    ("no task", {"TF_CONFIG": '{"cluster": {"worker": ["a:1"]}}'}, ["'task'"]),
    (
        "TensorFlow's host is not SageMaker's",
        sagemaker(TWO, "algo-1") | tensorflow("worker", 1, worker=["algo-1:1", "algo-2:1"]),
        ["TF_CONFIG", "algo-2", "SM_CURRENT_HOST=algo-1"],
    ),
    ("mxnet without hosts", DMLC | {"DMLC_ROLE": "worker"}, ["DMLC_WORKER_ID"]),
    ("mxnet's role", DMLC | {"DMLC_ROLE": "boss", "DMLC_WORKER_ID": "0"}, ["DMLC_ROLE='boss'"]),
    ("mxnet without a size", {"DMLC_ROLE": "server"}, ["DMLC_NUM_WORKER"]),
    (
        "lightning on a host too many",
        {"LOCAL_RANK": "0", "NODE_RANK": "1", "WORLD_SIZE": "2"},
        ["NODE_RANK=1", "WORLD_SIZE=2"],
    ),
    ("xla without a size", {"XRT_HOST_ORDINAL": "0"}, ["XRT_SHARD_WORLD_SIZE"]),
]


@pytest.mark.parametrize(
    ("environ", "named"), [row[1:] for row in BAD], ids=[row[0] for row in BAD]
)
def test_contradictions_are_named(environ: Environ, named: list[str]) -> None:
    with pytest.raises(ClusterError) as raised:
        Cluster.from_environment(environ)
    assert [word for word in named if word not in str(raised.value)] == []


def test_all_problems_are_reported_at_once() -> None:
    environ = {"RANK": "x", "WORLD_SIZE": "y", "SM_HOSTS": "z"}
    with pytest.raises(ClusterError) as raised:
        Cluster.from_environment(environ)
    assert len(raised.value.problems) == 3


def test_placements_that_tell_no_host_are_refused() -> None:
    environ = sagemaker([*TWO, "algo-3"], "algo-1") | open_mpi(1, 6, 1, 2)
    assert Cluster.from_environment(environ).node_rank == 0
    with pytest.raises(ClusterError, match="which host"):
        Cluster.from_environment(environ | {"OMPI_COMM_WORLD_RANK": "2"})


@given(hosts=st.integers(1, 5), local_size=st.integers(1, 4), by=st.sampled_from(("torch", "mpi")))
def test_ranks_of_a_cluster_are_each_there_once(hosts: int, local_size: int, by: str) -> None:
    names = [f"algo-{index}" for index in range(1, hosts + 1)]
    world_size = hosts * local_size
    seen = []
    for rank in range(world_size):
        environ = (
            sagemaker(names, names[rank // local_size]) | torchrun(rank, world_size, local_size)
            if by == "torch"
            else sagemaker(names, names[0])
            | open_mpi(rank, world_size, rank % local_size, local_size)
        )
        seen.append(Cluster.from_environment(environ))
    assert [one.rank for one in seen] == list(range(world_size))
    places = [(one.node_rank, one.local_rank) for one in seen]
    assert places == list(product(range(hosts), range(local_size)))
    assert [one.current_host for one in seen] == [names[place[0]] for place in places]
    assert sum(one.is_first for one in seen) == 1
    assert sum(one.is_first_on_host for one in seen) == hosts


@given(hosts=st.integers(1, 5), parameter_servers=st.booleans(), data=st.data())
def test_tf_config_describes_the_same_cluster(
    hosts: int, parameter_servers: bool, data: st.DataObject
) -> None:
    names = [f"algo-{index}" for index in range(1, hosts + 1)]
    environ = sagemaker(names, data.draw(st.sampled_from(names)))
    plain = Cluster.from_environment(environ)
    config: dict[str, Any] = tf_config(plain, parameter_servers=parameter_servers)
    seen = Cluster.from_environment(environ | {"TF_CONFIG": json.dumps(config)})
    assert seen.launcher == "tensorflow"
    assert (seen.rank, seen.world_size, seen.hosts) == (plain.rank, plain.world_size, plain.hosts)


def test_tf_config_wants_names() -> None:
    with pytest.raises(ValueError, match="names of the hosts are unknown"):
        tf_config(Cluster.from_environment(torchrun(3, 4, 2)))
