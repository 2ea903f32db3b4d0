"""The way from an executable to a served connector: certificate, socket, handshake line."""

import base64
import datetime
import logging
import os
import pathlib
import secrets
import sys
import tempfile
import threading
import time
from concurrent import futures

from . import contract, process

PROTOCOL = 1
MAX_MESSAGE = contract.MAX_DOCUMENT + (64 << 10)

log = logging.getLogger("connector")


def serve(source: type) -> None:
    """Runs the connector until the master stops it or dies, and does not return. source is a subclass of Source."""
    if not process.HOSTED:
        print(_explanation(source.description), file=sys.stderr)
        sys.exit(1)
    process.log_to_master()
    process.end_with_master()
    offered = os.environ.get("PLUGIN_PROTOCOL_VERSIONS", str(PROTOCOL))
    if str(PROTOCOL) not in offered.split(","):
        log.error(
            "the master speaks connector protocol %s, the %s connector %s speaks %d; upgrade the older of the two",
            offered, source.description.name, source.description.version, PROTOCOL,
        )  # fmt: skip
        sys.exit(1)
    try:
        _server, stopped = _start(source)  # a server that nobody holds ends
    except Exception:
        log.exception("the connector can't be served")
        sys.exit(1)
    stopped.wait()
    time.sleep(0.1)  # the answer to Stop is on its way
    os._exit(0)


def _start(source: type) -> tuple:
    import grpc  # not needed to explain ourselves, and slow to load
    from grpc_health.v1 import health, health_pb2, health_pb2_grpc

    from .service import Service
    from .v1 import connector_pb2_grpc

    key, certificate, der = _identity()
    trusted = os.environ.get("PLUGIN_CLIENT_CERT", "")
    if not trusted:
        raise RuntimeError("the master sent no certificate (PLUGIN_CLIENT_CERT)")
    # Each stream of Watch keeps a thread.
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=64),
        options=[("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.max_send_message_length", MAX_MESSAGE)],
    )
    stopped = threading.Event()
    connector_pb2_grpc.add_ConnectorServicer_to_server(Service(source, stopped), server)
    states = health.HealthServicer()
    states.set("plugin", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(states, server)
    folder = pathlib.Path(os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or tempfile.mkdtemp(prefix="mooncake-connector-"))
    socket = folder / f"{os.getpid()}-{secrets.token_hex(4)}"
    credentials = grpc.ssl_server_credentials(
        [(key, certificate)], root_certificates=trusted.encode(), require_client_auth=True
    )
    if server.add_secure_port(f"unix:{socket}", credentials) == 0:
        raise RuntimeError(f"can't listen on {socket}")
    server.start()
    process.say(f"1|{PROTOCOL}|unix|{socket}|grpc|{base64.b64encode(der).decode().rstrip('=')}")
    return server, stopped


def _identity() -> tuple:
    """A new key and a self-signed certificate for it: key and certificate as PEM, certificate as DER.

    P-256, because gRPC's TLS for Python refuses P-521.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + datetime.timedelta(days=30 * 365))  # it lives as long as the process
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return (
        secret,
        certificate.public_bytes(serialization.Encoding.PEM),
        certificate.public_bytes(serialization.Encoding.DER),
    )


def _explanation(d: contract.Description) -> str:
    return (
        f"This is the tenant-quota connector {d.name!r}, version {d.version} (connector protocol {PROTOCOL}). It is not run by hand: "
        f"a Mooncake Store master starts it when its flags say --tenant_quota_connector_type={d.name} and finds it as "
        f"mooncake-connector-{d.name} in the folder given by --tenant_quota_connector_dir. It talks to the master over a socket and "
        f"logs to standard error."
    )
