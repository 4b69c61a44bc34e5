"""What the tests of the Python modules share: a daemon of their own, a folder,
and looks into processes."""

import atexit
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

BUILD = os.environ["RKNND_BUILD"]
SOURCE = os.environ["RKNND_SOURCE"]
PATIENCE = 60.0

# The build tree's links to the modules, in the folders of an installation.
MODULES = os.path.join(BUILD, "lib", "python3", "dist-packages")
sys.path.insert(0, MODULES)


def eventually(what, patience=PATIENCE):
    """Looks until `what()` is true."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.01)  # between looks
    return bool(what())


class Daemon:
    """A daemon with a software NPU, in a folder of its own."""

    def __init__(self, *more):
        self.folder = tempfile.mkdtemp(prefix="rknnd-py-")
        self.socket = os.path.join(self.folder, "session.sock")
        self.target = "unix:" + self.socket
        self._more = more
        self.start()

    def start(self):
        environment = dict(os.environ)
        for name in ("NOTIFY_SOCKET", "JOURNAL_STREAM", "RKNND_TARGET"):
            environment.pop(name, None)
        self._log = open(os.path.join(self.folder, "log"), "ab")
        self.process = subprocess.Popen(
            [os.path.join(BUILD, "bin", "rknnd"), "--socket", self.socket, "--device", "soft",
             "--cache-dir", os.path.join(self.folder, "cache"), "--log-level", "2", *self._more],
            env=environment, stdout=self._log, stderr=self._log)
        if not eventually(self._listens):
            raise AssertionError("rknnd did not start: " + self.log())

    def _listens(self):
        if self.process.poll() is not None:
            raise AssertionError("rknnd ended: " + self.log())
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as probe:
            with contextlib.suppress(OSError):
                probe.connect(self.socket)
                return True
        with socket.socket(socket.AF_UNIX) as probe:
            with contextlib.suppress(OSError):
                probe.connect(self.socket)
                return True
        return False

    def log(self):
        with open(os.path.join(self.folder, "log"), errors="replace") as log:
            return log.read()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self._log.close()

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class DaemonTest(unittest.TestCase):
    """Tests on the daemon of this process (a process has one target), which must
    serve after each."""

    daemon = None

    @classmethod
    def setUpClass(cls):
        if DaemonTest.daemon is None:
            DaemonTest.daemon = Daemon()
            atexit.register(DaemonTest.daemon.end)
        os.environ["RKNND_TARGET"] = DaemonTest.daemon.target
        os.environ.setdefault("RKNN_LOG_LEVEL", "0")

    def tearDown(self):
        self.assertIsNone(self.daemon.process.poll(), "rknnd died: " + self.daemon.log())


def start_python(code, *arguments, environment=None, path=None):
    """A program of its own, whose input, output and errors are pipes."""
    values = dict(os.environ)
    values["PYTHONPATH"] = path or os.pathsep.join(
        [MODULES, os.path.dirname(os.path.abspath(__file__))])
    values.update(environment or {})
    return subprocess.Popen([sys.executable, "-X", "faulthandler", "-c", code, *arguments],
                            env=values, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def end_python(process, expect=0):
    """Waits for its end; what it printed."""
    out, words = process.communicate(timeout=PATIENCE * 2)
    if process.returncode != expect:
        raise AssertionError(f"ended with {process.returncode}, not {expect}:\n{out}\n{words}")
    return out, words


def run_python(code, *arguments, environment=None, expect=0, signal_after=None, path=None):
    """Runs a program of its own; returns what it printed. signal_after: it gets this
    signal when it has printed a line."""
    process = start_python(code, *arguments, environment=environment, path=path)
    if signal_after is not None:
        if process.stdout.readline() == "":
            raise AssertionError("the program ended early:\n" + process.stderr.read())
        process.send_signal(signal_after)
    return end_python(process, expect)


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def resident():
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
