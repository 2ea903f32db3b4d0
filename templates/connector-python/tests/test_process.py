"""The built executable, as a master runs it. $CONNECTOR names another than build/mooncake-connector-sqlite.

Run with the Python of the build: build/venv/bin/python -m unittest discover tests
"""

import base64
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zipfile

HERE = pathlib.Path(__file__).parent
EXECUTABLE = os.environ.get("CONNECTOR") or str(HERE.parent / "build" / "mooncake-connector-sqlite")
sys.path.insert(0, EXECUTABLE)  # for the code made from connector.proto
sys.path.insert(0, str(HERE))

import grpc
from change_source import put
from grpc_health.v1 import health_pb2, health_pb2_grpc
from mooncake_connector.serving import _identity
from mooncake_connector.v1 import connector_pb2 as pb
from mooncake_connector.v1 import connector_pb2_grpc


class Master:
    """The other side: starts the executable and calls it."""

    def __init__(self, folder, **environment):
        key, certificate, _ = _identity()
        self.env = {
            "PATH": os.environ["PATH"], "MOONCAKE_CONNECTOR_PLUGIN": "policy-connector-v1", "PLUGIN_PROTOCOL_VERSIONS": "1",
            "PLUGIN_UNIX_SOCKET_DIR": folder, "PLUGIN_CLIENT_CERT": certificate.decode(), **environment,
        }  # fmt: skip
        self.process = subprocess.Popen([EXECUTABLE], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.log = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        line = self.process.stdout.readline().decode().strip()
        self.parts = line.split("|")
        if len(self.parts) != 6:
            self.close()
            raise AssertionError(f"handshake {line!r}, log {self.log}")
        der = base64.b64decode(self.parts[5] + "=" * (-len(self.parts[5]) % 4))
        self.trusted = ssl.DER_cert_to_PEM_cert(der).encode()
        self.options = [("grpc.ssl_target_name_override", "localhost")] + [
            (f"grpc.max_{way}_message_length", (64 << 20) + (64 << 10)) for way in ("receive", "send")
        ]
        self.channel = grpc.secure_channel(
            "unix:" + self.parts[3], grpc.ssl_channel_credentials(self.trusted, key, certificate), self.options
        )
        self.rpc = connector_pb2_grpc.ConnectorStub(self.channel)

    def _read(self):
        for line in self.process.stderr:
            self.log.append(line.decode())

    def close(self):
        """Kills the process if it lives, and returns what came on standard output after the handshake."""
        if hasattr(self, "channel"):
            self.channel.close()
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        rest = b"" if self.process.stdout.closed else self.process.stdout.read()
        self.process.stdout.close()
        self._reader.join()
        self.process.stderr.close()
        return rest


class ProcessTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="mc-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.database = os.path.join(self.folder, "policies.db")
        put(self.database, "blue", b"one")

    def start(self, **environment):
        master = Master(self.folder, **environment)
        self.addCleanup(master.close)
        return master

    def configured(self):
        master = self.start()
        answer = master.rpc.Configure(pb.ConfigureRequest(uri=self.database, cluster_id="blue"), timeout=5)
        self.assertEqual(list(answer.notes), [])
        return master

    def test_by_hand(self):
        ran = subprocess.run([EXECUTABLE], env={"PATH": os.environ["PATH"]}, capture_output=True, timeout=20, text=True)
        self.assertEqual((ran.returncode, ran.stdout), (1, ""))
        self.assertIn("tenant-quota connector 'sqlite'", ran.stderr)

    def test_only_our_code_is_in_the_executable(self):
        names = zipfile.ZipFile(EXECUTABLE).namelist()
        self.assertIn("source.py", names)
        self.assertIn("mooncake_connector/v1/connector_pb2.py", names)
        self.assertEqual([n for n in names if "test" in n or n.endswith(".pyc")], [])

    def test_handshake_and_health(self):
        master = self.start()
        self.assertEqual(master.parts[:3] + master.parts[4:5], ["1", "1", "unix", "grpc"])
        health = health_pb2_grpc.HealthStub(master.channel)
        answer = health.Check(health_pb2.HealthCheckRequest(service="plugin"), timeout=5)
        self.assertEqual(answer.status, health_pb2.HealthCheckResponse.SERVING)
        about = master.rpc.Describe(pb.DescribeRequest(), timeout=1)
        self.assertEqual((about.name, about.capabilities.writable, about.absent_means), ("sqlite", True, pb.ABSENT_MEANS_ERROR))
        self.assertEqual(json.loads(about.options_schema)["type"], "object")
        self.assertEqual(master.close(), b"")

    def test_strangers_are_refused(self):
        master = self.configured()
        key, certificate, _ = _identity()
        for credentials in (
            grpc.ssl_channel_credentials(master.trusted),
            grpc.ssl_channel_credentials(master.trusted, key, certificate),
        ):
            with grpc.secure_channel("unix:" + master.parts[3], credentials, master.options) as channel:
                with self.assertRaises(grpc.RpcError):
                    connector_pb2_grpc.ConnectorStub(channel).Load(pb.LoadRequest(), timeout=5)

    def test_another_protocol(self):
        """It ends with a line that the master can repeat: which two protocols do not fit."""
        ran = subprocess.run([EXECUTABLE], env={**self.start().env, "PLUGIN_PROTOCOL_VERSIONS": "8,9"}, capture_output=True, timeout=20)
        self.assertEqual((ran.returncode, ran.stdout), (1, b""))
        line = json.loads(ran.stderr)
        self.assertEqual(line["@level"], "error")
        self.assertIn("the master speaks connector protocol 8,9, the sqlite connector 1.0.0 speaks 1", line["@message"])

    def test_load_and_save(self):
        master = self.start()
        with self.assertRaises(grpc.RpcError) as caught:
            master.rpc.Load(pb.LoadRequest(), timeout=5)
        self.assertIn("not configured yet", caught.exception.details())
        notes = master.rpc.Configure(pb.ConfigureRequest(options={"pol": "1"}), timeout=5).notes
        self.assertEqual([n.field for n in notes], ["uri", "options.pol"])
        master.rpc.Configure(pb.ConfigureRequest(uri=self.database, cluster_id="blue"), timeout=5)
        first = master.rpc.Load(pb.LoadRequest(), timeout=5)
        self.assertEqual((first.present, first.document), (True, b"one"))
        saved = master.rpc.Save(pb.SaveRequest(document=b"two", expected_revision=first.revision), timeout=5)
        self.assertEqual(saved.outcome, pb.SAVE_OUTCOME_SAVED)
        self.assertEqual(master.rpc.Load(pb.LoadRequest(), timeout=5).revision, saved.revision)
        late = master.rpc.Save(pb.SaveRequest(document=b"three", expected_revision=first.revision), timeout=5)
        self.assertEqual(late.outcome, pb.SAVE_OUTCOME_CONFLICT)
        os.rename(self.database, self.database + ".away")
        gone = master.rpc.Load(pb.LoadRequest(), timeout=5)
        self.assertEqual((gone.present, gone.unavailable.kind), (False, pb.UNAVAILABLE_KIND_UNREACHABLE))
        unsaved = master.rpc.Save(pb.SaveRequest(document=b"x", expected_revision=saved.revision), timeout=5)
        self.assertEqual(unsaved.outcome, pb.SAVE_OUTCOME_UNAVAILABLE)
        self.assertIn(self.database, unsaved.reason)

    def test_the_largest_document(self):
        master = self.configured()
        document = b"#" * (64 << 20)
        now = master.rpc.Load(pb.LoadRequest(), timeout=5).revision
        saved = master.rpc.Save(pb.SaveRequest(document=document, expected_revision=now), timeout=30)
        self.assertEqual(saved.outcome, pb.SAVE_OUTCOME_SAVED)
        self.assertEqual(master.rpc.Load(pb.LoadRequest(), timeout=30).document, document)

    def test_watch(self):
        master = self.configured()
        stream = master.rpc.Watch(pb.WatchRequest(), timeout=60)
        self.assertEqual(next(stream).WhichOneof("event"), "heartbeat")
        snapshot = next(stream).snapshot
        self.assertEqual((snapshot.document, snapshot.sha256), (b"one", hashlib.sha256(b"one").digest()))
        put(self.database, "blue", b"two")
        self.assertEqual(next(stream).snapshot.document, b"two")
        os.rename(self.database, self.database + ".away")
        self.assertEqual(next(stream).unavailable.kind, pb.UNAVAILABLE_KIND_UNREACHABLE)
        os.rename(self.database + ".away", self.database)
        self.assertEqual(next(stream).snapshot.document, b"two")
        other = self.database + ".other"
        put(other, "blue", b"other")
        master.rpc.Configure(pb.ConfigureRequest(uri=other, cluster_id="blue"), timeout=5)
        self.assertEqual(next(stream).snapshot.document, b"other")
        stream.cancel()
        again = master.rpc.Watch(pb.WatchRequest(from_revision=hashlib.sha256(b"other").hexdigest()), timeout=60)
        self.assertEqual(next(again).WhichOneof("event"), "heartbeat")
        put(other, "blue", b"more")
        self.assertEqual(next(again).snapshot.document, b"more")
        again.cancel()

    def test_nothing_is_left_of_ended_watches(self):
        master = self.configured()
        folder = f"/proc/{master.process.pid}"
        if not os.path.isdir(folder):
            self.skipTest("needs /proc")

        def size():
            return len(os.listdir(folder + "/fd")), len(os.listdir(folder + "/task"))

        def cycle():
            stream = master.rpc.Watch(pb.WatchRequest(), timeout=20)
            next(stream)
            next(stream)
            stream.cancel()

        for _ in range(70):  # the pool of threads has filled up then
            cycle()
        settled = size()
        for _ in range(50):
            cycle()
        end = time.monotonic() + 10
        while any(now > before + 2 for now, before in zip(size(), settled)):
            self.assertLess(time.monotonic(), end, f"descriptors and threads: {settled} became {size()}")
            time.sleep(0.05)

    def test_stop(self):
        master = self.configured()
        stream = master.rpc.Watch(pb.WatchRequest(), timeout=60)
        next(stream)
        master.rpc.Stop(pb.StopRequest(), timeout=5)
        self.assertEqual(master.process.wait(5), 0)

    def test_it_ends_with_the_master(self):
        """A process between us starts it and is killed."""
        code = (
            "import sys; sys.path[:0] = sys.argv[1:3]\n"
            "import test_process, time\n"
            "print(test_process.Master(sys.argv[3]).process.pid, flush=True); time.sleep(60)"
        )
        between = subprocess.Popen(
            [sys.executable, "-c", code, str(HERE), EXECUTABLE, self.folder], stdout=subprocess.PIPE, text=True
        )
        with contextlib.closing(between.stdout):
            pid = int(between.stdout.readline())
        between.send_signal(signal.SIGKILL)
        between.wait()
        end = time.monotonic() + 5
        while _running(pid):
            self.assertLess(time.monotonic(), end, "it outlives the master")
            time.sleep(0.05)


def _running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


if __name__ == "__main__":
    unittest.main()
