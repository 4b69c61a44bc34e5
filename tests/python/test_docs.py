"""What the documents promise: README's lines run when pasted, and the table of
docs/python.md lists every method of the modules with its state."""

import inspect
import os
import re
import subprocess
import sys
import tempfile
import unittest

import support

import rknnd

rknnd.install_shims()
from rknn.api import RKNN  # noqa: E402
from rknnlite.api import RKNNLite  # noqa: E402

PAGE = os.path.join(support.SOURCE, "docs", "python.md")


def public(kind):
    """Names of a class that are for programs, its constructor as the class's own."""
    names = {kind.__name__: kind}
    for parent in reversed(kind.__mro__):
        if not parent.__module__.startswith(("rknn", "rknnlite")):
            continue
        for name, value in vars(parent).items():
            if not name.startswith("_") and (inspect.isfunction(value) or isinstance(
                    value, (property, classmethod, staticmethod))):
                names[f"{kind.__name__}.{name}"] = value
    return names


def modules():
    """Everything that the table must have: its name and what it is."""
    there = {}
    for name in rknnd.__all__:
        value = getattr(rknnd, name)
        if inspect.isclass(value) and issubclass(value, BaseException):
            continue  # in a table of their own
        if inspect.isclass(value):
            there.update({"rknnd." + key: item for key, item in public(value).items()})
        elif callable(value):
            there["rknnd." + name] = value
    there.update({"rknnlite." + key: item for key, item in public(RKNNLite).items()})
    there.update({"rknn." + key: item for key, item in public(RKNN).items()})
    return there


class DocumentsTest(unittest.TestCase):
    def rows(self):
        with open(PAGE, encoding="utf-8") as page:
            section = page.read().split("## Every method")[1].split("\n## ")[0]
        rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", section, re.M)
        self.assertEqual(len(rows), len(dict(rows)), "a method stands there twice")
        return dict(rows)

    def test_the_table_has_every_method(self):
        self.assertEqual(set(self.rows()), set(modules()))

    def test_each_state_is_the_methods_own(self):
        there = modules()
        for name, state in self.rows().items():
            words = (inspect.getdoc(there[name]) or "")
            refused = "not in this version" in words and "Raises" in words
            self.assertEqual(state.strip(), "not in this version" if refused else "works", name)

    def test_exceptions_have_a_row(self):
        with open(PAGE, encoding="utf-8") as page:
            text = page.read()
        for name in rknnd.__all__:
            value = getattr(rknnd, name)
            if inspect.isclass(value) and issubclass(value, BaseException):
                self.assertIn(f"`{'rknnd.' if value is rknnd.Error else ''}{name}`", text)

    def test_every_method_has_words(self):
        for name, value in modules().items():
            self.assertTrue(inspect.getdoc(value), name)

    def test_readmes_lines_run(self):
        with open(os.path.join(support.SOURCE, "README.md"), encoding="utf-8") as page:
            section = page.read().split("## Ten lines of Python")[1].split("\n## ")[0]
        lines = re.search(r"```sh\n(.*?)```", section, re.S).group(1)
        self.assertIn("rknnd.Session(", lines)
        self.assertLessEqual(len(lines.strip().split("\n")), 12)
        lines = lines.replace("build/release", os.path.relpath(support.BUILD, support.SOURCE))
        done = subprocess.run(["sh", "-c", lines], cwd=support.SOURCE, capture_output=True,
                              text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("scores_8 (1, 2, 18, 32)", done.stdout)

    def test_one_version(self):
        with open(os.path.join(support.SOURCE, "CMakeLists.txt")) as file:
            version = re.search(r"VERSION (\d+\.\d+\.\d+)", file.read()).group(1)
        self.assertEqual(rknnd.__version__, version)
        with open(os.path.join(support.SOURCE, "python", "pyproject.toml")) as file:
            self.assertIn(f'version = "{version}"', file.read())

    def test_the_wheel_has_all_and_serves_programs(self):
        try:
            import setuptools  # noqa: F401
            import wheel  # noqa: F401
        except ImportError:
            self.skipTest("there are no setuptools or wheel (package python3-wheel)")
        import shutil
        import zipfile
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(os.path.join(support.SOURCE, "python"), folder + "/python",
                            symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            done = subprocess.run(
                [sys.executable, "-c",
                 "from setuptools import build_meta\nbuild_meta.build_wheel('..')"],
                cwd=folder + "/python", capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            name = f"rknnd-{rknnd.__version__}-py3-none-any.whl"
            with zipfile.ZipFile(os.path.join(folder, name)) as archive:
                archive.extractall(folder + "/site")
            out, _ = support.run_python(
                "import rknnd\nrknnd.install_shims()\nfrom rknnlite.api import RKNNLite\n"
                "from rknn.api import RKNN\nimport rknn\n"
                "print(rknnd.__file__, RKNNLite.__module__, open(rknn.__path__[0] + '/VERSION')"
                ".read())", path=folder + "/site")
            self.assertTrue(out.startswith(folder + "/site/rknnd/__init__.py"), out)


if __name__ == "__main__":
    unittest.main()
