"""What Python costs beside the C API, on daemons of its own:

    main.py [--out FILE] [--quick]

Runs in rounds, the C side and Python by turns, and takes the least of the
rounds' medians, so that a busy machine hurts both alike.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.normpath(os.path.join(HERE, "..", ".."))
os.environ.setdefault("RKNND_SOURCE", TREE)
os.environ.setdefault("RKNND_BUILD", os.path.join(TREE, "build", "release"))
os.environ["LD_LIBRARY_PATH"] = os.path.join(os.environ["RKNND_BUILD"], "lib")
sys.path.insert(0, os.path.join(TREE, "tests", "python"))

import numpy as np  # noqa: E402
import support  # noqa: E402
import tiny_onnx  # noqa: E402

import rknnd  # noqa: E402

ROUNDS = 7
IMPORTS = 9


def median(times):
    return sorted(times)[len(times) // 2] * 1e6


def timed(runs, call):
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return median(times)


def calls(daemon, runs):
    """session.run beside rknn_run."""
    model = os.path.join(daemon.folder, "model.onnx")
    with open(model, "wb") as file:
        file.write(tiny_onnx.model([("Relu", ["x"], ["y"])],
                                   [("x", (1, 65536), np.float32)],
                                   [("y", (1, 65536), np.float32)]))
    bound = rknnd.Session(model)
    bound.bind()
    copied = rknnd.Session(model)
    array = np.ones((1, 65536), np.float32)
    other = np.empty_like(array)
    rows = []
    for _ in range(ROUNDS):
        c = json.loads(subprocess.run(
            [os.path.join(support.BUILD, "bin", "rknnd-bench-python"), model, str(runs)],
            check=True, capture_output=True,
            env=dict(os.environ, RKNND_TARGET=daemon.target)).stdout)
        rows.append((c["bound_us"], timed(runs, bound.run), c["copied_us"],
                     timed(runs, lambda: copied.run({"x": array})),
                     timed(runs, lambda: np.copyto(other, array))))
    least = [min(column) for column in zip(*rows)]
    return {"c_bound_us": least[0], "python_bound_us": least[1],
            "bound_more_us": least[1] - least[0], "c_copied_us": least[2],
            "python_copied_us": least[3], "copied_more_us": least[3] - least[2],
            "memcpy_us": least[4]}


_THREADS = r"""
import sys, threading, time
import numpy as np
import rknnd, tiny_onnx
nodes = [("Relu" if n % 2 else "Neg", [f"t{n}"], [f"t{n + 1}"]) for n in range(400)]
model = tiny_onnx.model(nodes, [("t0", (1, 16), np.float32)], [("t400", (1, 16), np.float32)])
sessions = [rknnd.Session(model) for _ in range(4)]
for session in sessions:
    session.bind()
    session.run()

def rate(count, seconds):
    done = [0] * count
    stop = threading.Event()
    def work(n):
        while not stop.is_set():
            sessions[n].run()
            done[n] += 1
    threads = [threading.Thread(target=work, args=(n,)) for n in range(count)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    stop.set()
    for thread in threads:
        thread.join()
    return sum(done) / (time.monotonic() - begin)

best = 0
for _ in range(5):
    one, four = rate(1, float(sys.argv[1])), rate(4, float(sys.argv[1]))
    best = max(best, four / one)
    print(f"{one:.1f} {four:.1f} {best:.3f}")
"""


def threads(seconds):
    """Four threads with a session each on three paced cores, beside one."""
    daemon = support.Daemon("--pace", "on")
    try:
        out, _ = support.run_python(_THREADS, str(seconds), environment={
            "RKNND_TARGET": daemon.target})
    finally:
        daemon.end()
    one, four, best = out.strip().split("\n")[-1].split()
    return {"one_thread_hz": float(one), "four_threads_hz": float(four), "ratio": float(best)}


def imports():
    """Beyond NumPy's own: of the CPU, as a busy machine makes an import wait."""
    def least(code):
        times = []
        for _ in range(IMPORTS):
            done = subprocess.run(
                [sys.executable, "-c", "import numpy, time; t = time.process_time(); " + code +
                 "; print(time.process_time() - t)"], capture_output=True, check=True,
                env=dict(os.environ, PYTHONPATH=support.MODULES))
            times.append(float(done.stdout))
        return min(times) * 1000

    return {"import_ms": least("import rknnd") - least("pass")}


def dropped(times):
    """Sessions, memories and runs that nobody closes."""
    model = tiny_onnx.relu()
    array = np.ones((1, 16), np.float32)

    def churn(count):
        for number in range(count):
            session = rknnd.Session(model)
            if number % 3 == 0:
                session.bind()
                session.run()
            elif number % 3 == 1:
                session.run(array)
            else:
                session.submit(array)
            rknnd.Memory(4096)

    churn(500)
    gc.collect()
    before = support.descriptors(), support.resident()
    churn(times)
    gc.collect()
    support.eventually(lambda: support.descriptors() <= before[0], 5)
    return {"dropped": times, "descriptors_more": support.descriptors() - before[0],
            "resident_more_kib": (support.resident() - before[1]) // 1024}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--out")
    parser.add_argument("--quick", action="store_true", help="a tenth of each")
    options = parser.parse_args()
    part = 10 if options.quick else 1
    os.environ["RKNN_LOG_LEVEL"] = "0"
    daemon = support.Daemon()
    os.environ["RKNND_TARGET"] = daemon.target
    try:
        figures = imports()
        figures.update(calls(daemon, 20000 // part))
        figures.update(dropped(100000 // part))
    finally:
        daemon.end()
    figures.update(threads(3 / part))
    asked = [
        ("bound run: C {c_bound_us:.1f} us, Python {python_bound_us:.1f} us, more: us",
         figures["bound_more_us"], "at most", 15),
        ("arrays copied: C {c_copied_us:.1f} us, Python {python_copied_us:.1f} us, one memcpy "
         "{memcpy_us:.1f} us, more: us", figures["copied_more_us"], "at most",
         15 + 2 * figures["memcpy_us"]),
        ("four threads {four_threads_hz:.0f} Hz on three paced cores, one thread "
         "{one_thread_hz:.0f} Hz: times", figures["ratio"], "at least", 2.9),
        ("{dropped} sessions, memories and runs dropped without close: descriptors more",
         figures["descriptors_more"], "at most", 0),
        ("the same: KiB more", figures["resident_more_kib"], "at most", 1024),
        ("import beyond NumPy's: ms of the CPU", figures["import_ms"], "at most", 60),
    ]
    missed = 0
    for text, value, side, bound in asked:
        met = value <= bound if side == "at most" else value >= bound
        missed += not met
        print(f"{text.format(**figures)} {value:.2f}, asked {side} {bound:.1f}"
              f"{'' if met else ': MISSED'}")
    if options.out:
        with open(options.out, "w") as file:
            json.dump(figures, file, indent=2)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
