"""What processes do: end in the middle of runs, fork, are interrupted, drop what
they made, and lose their daemon."""

import gc
import os
import signal
import unittest

import numpy as np

import support
import tiny_onnx

import rknnd

_SLOW = """
import sys, os, threading
import numpy as np
import rknnd, tiny_onnx
x = np.ones((256, 256), np.float32)
session = rknnd.Session(tiny_onnx.slow())
"""


class ProcessTest(support.DaemonTest):
    def nothing_is_left(self):
        mine = os.getpid()
        self.assertTrue(support.eventually(
            lambda: all(row["pid"] == mine for row in rknnd.sessions())), rknnd.sessions())

    def test_the_interpreter_ends_with_runs_in_flight(self):
        for way in ("runs = [session.submit(x) for _ in range(5)]",
                    "began = threading.Event()\n"
                    "def work():\n"
                    "    while True:\n"
                    "        began.set()\n"
                    "        session.run(x)\n"
                    "threading.Thread(target=work, daemon=True).start()\n"
                    "began.wait()",
                    "runs = [session.submit(x)]; sys.exit(0)",
                    "import asyncio\n"
                    "async def main():\n"
                    "    [asyncio.ensure_future(session.run_async(x)) for _ in range(9)]\n"
                    "    await asyncio.sleep(0)\n"
                    "asyncio.run(main())"):
            support.run_python(_SLOW + way)
            self.nothing_is_left()

    def test_ctrl_c_during_a_run(self):
        for call in ("session.run(x)", "session.submit(x).wait()"):
            out, _ = support.run_python(
                _SLOW + "try:\n"
                "    print('begun', flush=True)\n"
                "    while True:\n"
                f"        {call}\n"
                "except KeyboardInterrupt:\n"
                "    print(session.run(x)['y'].shape)\n", signal_after=signal.SIGINT)
            self.assertIn("(256, 256)", out)
        self.nothing_is_left()

    def test_fork_with_runs_in_flight(self):
        out, _ = support.run_python(_SLOW + """
runs = [session.submit(x) for _ in range(3)]
memory = rknnd.Memory(4096)
child = os.fork()
if child == 0:
    # A run that had ended before the fork may be waited for here, too.
    for call in (lambda: session.run(x), lambda: memory.fd, session.duplicate,
                 lambda: session.submit(x)):
        try:
            call()
            print("no error")
        except rknnd.Closed as error:
            assert "fork" in str(error), error
    own = rknnd.Session(tiny_onnx.relu())
    print("child", own.run(np.full((1, 16), 4, np.float32))["y"][0, 0], flush=True)
    del session, runs, memory
    sys.exit(0)
os.waitpid(child, 0)
for run in runs:
    assert run.wait()["y"].shape == (256, 256)
print("parent", memory.fd > 0)
""")
        self.assertEqual(out.split("\n")[:2], ["child 4.0", "parent True"])
        self.nothing_is_left()

    def test_multiprocessing(self):
        out, _ = support.run_python("""
import multiprocessing, sys
import numpy as np, rknnd, tiny_onnx

def work(number):
    with rknnd.Session(tiny_onnx.relu()) as session:
        return float(session.run(np.full((1, 16), number, np.float32))["y"][0, 0])

if __name__ == "__main__":
    session = rknnd.Session(tiny_onnx.relu())
    with multiprocessing.get_context("fork").Pool(3) as pool:
        print(sum(pool.map(work, range(20))))
""")
        self.assertEqual(out.strip(), "190.0")

    def test_what_is_dropped_is_freed(self):
        x = np.ones((1, 16), np.float32)
        model = tiny_onnx.relu()

        def churn(times):
            for number in range(times):
                session = rknnd.Session(model)
                session.run(x)
                if number % 4 == 0:
                    session.bind()
                    session.run()
                if number % 4 == 1:
                    session.submit(x)
                rknnd.Memory(4096).array()[:4] = 1

        churn(100)
        gc.collect()
        descriptors, resident = support.descriptors(), support.resident()
        churn(1000)
        gc.collect()
        self.assertTrue(support.eventually(lambda: support.descriptors() <= descriptors))
        self.assertLess(support.resident() - resident, 12 << 20)

    def test_the_daemon_dies_and_comes_back(self):
        daemon = support.Daemon()
        try:
            program = support.start_python("""
import sys
import numpy as np, rknnd, tiny_onnx
session = rknnd.Session(tiny_onnx.relu(), target=sys.argv[1])
for line in sys.stdin:
    runs = [session.submit(np.full((1, 16), n, np.float32)) for n in range(5)]
    print([float(run.wait()["y"][0, 0]) for run in runs], flush=True)
""", daemon.target)

            def answers():
                program.stdin.write("\n")
                program.stdin.flush()
                return program.stdout.readline()

            self.assertEqual(answers(), "[0.0, 1.0, 2.0, 3.0, 4.0]\n")
            daemon.kill()
            daemon.start()
            self.assertEqual(answers(), "[0.0, 1.0, 2.0, 3.0, 4.0]\n")
            support.end_python(program)
        finally:
            daemon.end()


if __name__ == "__main__":
    unittest.main()
