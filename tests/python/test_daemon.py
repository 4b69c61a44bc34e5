"""What a daemon tells of itself, logging, and an import that touches nothing."""

import os
import unittest

import numpy as np

import support
import tiny_onnx

import rknnd


class DaemonReportsTest(support.DaemonTest):
    def test_status_doctor_and_lists(self):
        session = rknnd.Session(tiny_onnx.relu())
        session.run(np.ones((1, 16), np.float32))
        self.assertEqual(rknnd.status()["device"]["soc"], "rk3588")
        findings = {row["check"]: row["severity"] for row in rknnd.doctor()}
        self.assertTrue(findings)
        self.assertTrue(set(findings.values()) <= {"ok", "note", "warning", "error"})
        self.assertIn(os.getpid(), [row["pid"] for row in rknnd.sessions()])
        loaded = len(rknnd.models())  # with the doctor's own
        self.assertGreater(loaded, 0)
        self.assertEqual(len(rknnd.contexts()), 1)
        seen = 0
        for now in rknnd.watch(0):
            seen += 1
            self.assertEqual(now["models"], loaded)
            if seen == 2:
                break
        with self.assertRaises(rknnd.Unavailable):
            rknnd.status(target="unix:/no/such.sock")

    def test_import_opens_nothing_and_leaves_logging_alone(self):
        out, _ = support.run_python(
            "import logging, os\n"
            "names = dict(logging._levelToName); handlers = list(logging.root.handlers)\n"
            "import rknnd\n"
            "assert logging._levelToName == names and logging.root.handlers == handlers\n"
            "assert 'librknnrt' not in open('/proc/self/maps').read()\n"
            "print(rknnd.__version__ == rknnd.version())\n")
        self.assertEqual(out.strip(), "True")

    def test_a_library_of_others_is_told_apart(self):
        support.run_python(
            "import rknnd\n"
            "try:\n"
            "    rknnd.version()\n"
            "except rknnd.LibraryMissing as error:\n"
            "    assert 'rknnd' in str(error) and 'librknnd1' in str(error), error\n"
            "else:\n"
            "    raise SystemExit(1)\n",
            environment={"RKNND_LIBRARY": "libm.so.6"})


if __name__ == "__main__":
    unittest.main()
