"""The process: standard output, log lines, and the end of the master.

Importing this takes file descriptor 1 for the contract when a master started the process; what is
printed afterwards goes to standard error.
"""

import ctypes
import json
import logging
import os
import signal
import sys
import threading
import time

COOKIE_KEY, COOKIE_VALUE = "MOONCAKE_CONNECTOR_PLUGIN", "policy-connector-v1"
HOST_PID_KEY = "MOONCAKE_CONNECTOR_HOST_PID"

HOSTED = os.environ.get(COOKIE_KEY) == COOKIE_VALUE


def _take_stdout() -> int:
    if not HOSTED:
        return 1
    contract = os.dup(1)  # not inherited by children
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)
    return contract


CONTRACT = _take_stdout()


def say(line: str) -> None:
    """Writes the one line of the contract to the real standard output."""
    data = (line + "\n").encode()
    while data:
        data = data[os.write(CONTRACT, data) :]


class _Lines(logging.Formatter):
    """Log records as the master reads them: JSON with @level and @message; further keys are shown with it."""

    LEVELS = {"DEBUG": "debug", "INFO": "info", "WARNING": "warn", "ERROR": "error", "CRITICAL": "error"}
    _usual = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}

    def format(self, record: logging.LogRecord) -> str:
        fields = {"@level": self.LEVELS.get(record.levelname, "info"), "@message": record.getMessage(), "@module": record.name}
        # What was given with extra={...}.
        fields.update((k, v) for k, v in vars(record).items() if k not in self._usual)
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        return json.dumps(fields, default=str)


def log_to_master() -> None:
    """Sends log records of all levels to standard error; the master decides which are seen."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.basicConfig(level=logging.DEBUG, handlers=[handler], force=True)


def end_with_master() -> None:
    """Ends the process when the master has ended, however that happened."""
    parent = os.getppid()
    host = int(os.environ.get(HOST_PID_KEY) or 0)
    if sys.platform == "linux":
        # Also when this process hangs. A parent that is gone already sends no signal: the thread below sees it.
        ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the master, which tells us

    def look() -> None:
        while os.getppid() == parent and (host == 0 or _lives(host)):
            time.sleep(0.5)
        os._exit(0)

    threading.Thread(target=look, daemon=True).start()


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
