"""Runs one file of tests: run.py test_session.py [unittest's arguments]. Ends with
77, which ctest takes for skipped, where NumPy is missing."""

import os
import sys
import unittest

try:
    import numpy  # noqa: F401
except ImportError:
    print(f"skipped: {sys.executable} has no NumPy (package python3-numpy)")
    sys.exit(77)

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, here)
sys.dont_write_bytecode = True
name = os.path.splitext(os.path.basename(sys.argv[1]))[0]
program = unittest.main(module=name, argv=[name] + sys.argv[2:], exit=False, verbosity=2)
result = program.result
if result.testsRun and len(result.skipped) == result.testsRun and result.wasSuccessful():
    sys.exit(77)
sys.exit(0 if result.wasSuccessful() else 1)
