"""What each of the original's checks needs: its file in the checkout, the master's flags, the client's environment.

"{disk}" stands for an empty folder of the run. Every run has the network to itself, so the ports are the original's own.
"""

from typing import NamedTuple

MASTER, METADATA, ADMIN = "127.0.0.1:50051", "http://127.0.0.1:8080/metadata", "http://127.0.0.1:9003"
MASTER_PORTS = (50051, 8080, 9003)
CLIENT_PORT = 50052  # of the client that dummy clients go through

LOOPBACK = {"MC_TCP_BIND_ADDRESS": "127.0.0.1"}  # the only address of the run's network
# The two families of checks read different variables for the same things.
SCRIPT = {
    **LOOPBACK,
    "MOONCAKE_MASTER": MASTER,
    "MOONCAKE_TE_META_DATA_SERVER": METADATA,
    "MOONCAKE_PROTOCOL": "tcp",
    "MOONCAKE_LOCAL_HOSTNAME": "127.0.0.1",
    "MOONCAKE_MASTER_CONTROL_BASE": ADMIN,
}
WHEEL = {**LOOPBACK, "MASTER_SERVER": MASTER, "MC_METADATA_SERVER": METADATA, "DEFAULT_KV_LEASE_TTL": "500", "PROTOCOL": "tcp", "DEVICE_NAME": "", "LOCAL_HOSTNAME": "localhost"}
# Without these limits of a bucket so little data would never be written.
DISK = {
    "MOONCAKE_OFFLOAD_FILE_STORAGE_PATH": "{disk}",
    "MOONCAKE_OFFLOAD_BUCKET_KEYS_LIMIT": "10",
    "MOONCAKE_OFFLOAD_BUCKET_SIZE_LIMIT_BYTES": "10485760",
}
OFFLOAD = {"enable_offload": "true", "offload_on_evict": "true"}


class Check(NamedTuple):
    """One of the original's checks."""

    path: str  # in the checkout
    environment: dict
    flags: dict = {}
    real_client: bool = False  # a client of its own process that dummy clients go through
    together: tuple = ((),)  # argument lists; one process each, at the same time
    apart: tuple = ("",)  # classes that get a master each; "" stands for all that the file has
    seconds: int = 300  # time it may take
    plain: bool = False  # a program that tells its result by its exit status, not a unittest file


def script(name, **more):
    """A check of the folder scripts; its continuous integration keeps memory fuller than the default."""
    return Check(f"scripts/{name}.py", SCRIPT, {"eviction_high_watermark_ratio": "0.95", "cluster_id": "ci_test_cluster"}, **more)


def wheel(name, environment=None, flags=None, **more):
    """A check of the wheel."""
    return Check(f"mooncake-wheel/tests/{name}.py", {**WHEEL, **(environment or {})}, flags or {}, **more)


CHECKS = {
    "test_copy_move_api": script("test_copy_move_api"),
    "test_drain_http_api": script("test_drain_http_api", plain=True, together=(("--timeout-sec", "90"),)),
    "test_upsert_api": script("test_upsert_api"),
    "test_tensor_api": script("test_tensor_api", seconds=580),
    "test_distributed_object_store": wheel("test_distributed_object_store"),
    "test_replicated_distributed_object_store": wheel("test_replicated_distributed_object_store"),
    # Both classes open the same port and never close it; the metadata server takes it from one of them only.
    "test_batch_replica_clear": wheel("test_batch_replica_clear", apart=("TestBatchReplicaClearSingleStore", "TestBatchReplicaClearReplication")),
    "test_dummy_client": wheel("test_dummy_client", real_client=True),
    "test_multi_dummy_clients": wheel("test_multi_dummy_clients", real_client=True, together=(("--client-id", "client1"), ("--client-id", "client2"))),
    "test_offload_on_eviction": wheel("test_offload_on_eviction", DISK, OFFLOAD),
    # Memory is nearly full: on a busy machine any master may evict the promoted object again before the test looks.
    "test_promotion_on_hit": wheel("test_promotion_on_hit", DISK, {**OFFLOAD, "root_fs_dir": "{disk}", "promotion_on_hit": "true", "promotion_admission_threshold": "1"}),
    "test_ssd_offload_in_evict": wheel("test_ssd_offload_in_evict", {"MC_STORE_MEMCPY": "false"}, {"root_fs_dir": "{disk}"}, seconds=580),
}
