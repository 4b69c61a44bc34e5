"""Programs in the manner of those that others wrote run unmodified, in every way
to be given the modules: PYTHONPATH, rknnd-run --python, and on a newer Python if
one with NumPy is there."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import support
import tiny_onnx

import rknnd

HERE = os.path.dirname(os.path.abspath(__file__))
_MODELS = {
    "zoo_executor": tiny_onnx.picture(), "thread_pool": tiny_onnx.picture(),
    "immich_pool": tiny_onnx.picture(), "frigate_plugin": tiny_onnx.picture(),
    "notebook": tiny_onnx.picture(), "positional": tiny_onnx.picture(),
    "rk_transformers": tiny_onnx.tokens(),
    "sherpa_path": tiny_onnx.model(
        [("Add", ["ids", "one"], ["next"])], [("ids", (1, 6), "int64")],
        [("next", (1, 6), "int64")], [("one", __import__("numpy").ones((1,), "int64"))],
        options={"rknn.custom_string": "model_type=tokens;vocab=6"}),
}


def _has_numpy(python):
    try:
        return subprocess.run([python, "-c", "import numpy"], capture_output=True,
                              timeout=60).returncode == 0
    except (OSError, subprocess.SubprocessError):
        return False


class ProgramsTest(support.DaemonTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_program(self, name, command, environment):
        model = os.path.join(self.folder.name, name + ".onnx")
        with open(model, "wb") as file:
            file.write(_MODELS[name])
        values = dict(os.environ)
        values.pop("PYTHONPATH", None)
        values.update(environment)
        done = subprocess.run(
            command + [os.path.join(HERE, "programs", name + ".py"), model], env=values,
            capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, f"{name}:\n{done.stdout}\n{done.stderr}")
        self.assertEqual(done.stdout.strip().split("\n")[-1], "ok", done.stdout)
        self.assertNotIn("False", done.stdout, name)

    def test_every_program_is_run(self):
        there = {os.path.splitext(name)[0] for name in os.listdir(os.path.join(HERE, "programs"))
                 if name.endswith(".py")}
        self.assertEqual(there, set(_MODELS))

    def test_with_pythonpath(self):
        for name in _MODELS:
            with self.subTest(name):
                self.run_program(name, [sys.executable], {"PYTHONPATH": rknnd.shims_folder()})

    def test_with_rknnd_run(self):
        runner = os.path.join(support.BUILD, "bin", "rknnd-run")
        if not os.path.exists(runner):
            self.skipTest("rknnd-run is not built")
        for name in ("thread_pool", "immich_pool"):
            with self.subTest(name):
                self.run_program(name, [runner, "--python", "--", sys.executable],
                                 {"LD_LIBRARY_PATH": ""})

    def test_without_a_daemon(self):
        if not os.path.exists(os.path.join(support.BUILD, "lib", "librknnd-local.so")):
            self.skipTest("librknnd-local.so is not built")
        self.run_program("positional", [sys.executable],
                         {"PYTHONPATH": rknnd.shims_folder(), "RKNND_TARGET": "local:"})

    def test_on_a_newer_python(self):
        this = sys.version_info[1]
        others = (shutil.which(f"python3.{minor}") for minor in range(this + 1, this + 6))
        newer = [python for python in others if python and _has_numpy(python)]
        if not newer:
            self.skipTest("there is no newer Python with NumPy")
        for name in _MODELS:
            with self.subTest(name):
                self.run_program(name, [newer[-1]], {"PYTHONPATH": rknnd.shims_folder()})

    def tearDown(self):
        super().tearDown()
        self.assertTrue(support.eventually(lambda: not [
            row for row in rknnd.sessions() if row["pid"] != os.getpid()]))


if __name__ == "__main__":
    unittest.main()
