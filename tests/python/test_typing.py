"""The package's hints hold under `mypy --strict`, and its syntax is Python 3.9's."""

import ast
import glob
import os
import shutil
import subprocess
import tempfile
import unittest

import support

PYTHON = os.path.join(support.SOURCE, "python")


class TypingTest(unittest.TestCase):
    def test_strictly_typed(self):
        mypy = shutil.which("mypy", path="/usr/bin:" + os.environ.get("PATH", ""))
        if mypy is None:
            self.skipTest("there is no mypy (package mypy)")
        with tempfile.TemporaryDirectory() as cache:
            done = subprocess.run([mypy, "--strict", "--cache-dir", cache, "rknnd"], cwd=PYTHON,
                                  capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_syntax_is_of_python_3_9(self):
        files = glob.glob(PYTHON + "/**/*.py", recursive=True)
        self.assertGreater(len(files), 20)
        for path in files:
            with open(path, encoding="utf-8") as file:
                ast.parse(file.read(), path, feature_version=(3, 9))


if __name__ == "__main__":
    unittest.main()
