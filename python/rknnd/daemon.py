"""What a daemon says of itself and its board, as rknnctl tells it in JSON.

The documents are described in docs/rknnctl.md. rknnctl is of package rknnctl; in
a build tree it lies beside the library.
"""

from __future__ import annotations

import os
import time
from typing import Any, Dict, Iterator, List, Optional

from . import _library
from .errors import Error, InvalidArgument, LibraryMissing, Timeout, Unavailable


def status(target: Optional[str] = None) -> Dict[str, Any]:
    """The daemon's device, cores, counts, jobs and memory: `rknnctl status`."""
    document: Dict[str, Any] = rknnctl(["status"], target)
    return document


def watch(interval: float = 1.0, target: Optional[str] = None) -> Iterator[Dict[str, Any]]:
    """`status` again and again, every `interval` seconds: `for now in rknnd.watch():`."""
    if not isinstance(interval, (int, float)) or not 0 <= interval < 1e9:
        raise InvalidArgument(f"interval {interval!r} is no number of seconds")
    while True:
        yield status(target)
        time.sleep(interval)


def doctor(target: Optional[str] = None) -> List[Dict[str, str]]:
    """What is wrong with the board and what to do: a list of findings, each with
    `check`, `severity` (ok, note, warning, error), `text` and `remedy`."""
    findings: List[Dict[str, str]] = rknnctl(["doctor"], target, good=(0, 1))["findings"]
    return findings


def sessions(target: Optional[str] = None) -> List[Dict[str, Any]]:
    """The processes that use the NPU."""
    told: List[Dict[str, Any]] = rknnctl(["sessions"], target)
    return told


def models(target: Optional[str] = None) -> List[Dict[str, Any]]:
    """The models that are loaded."""
    told: List[Dict[str, Any]] = rknnctl(["models"], target)
    return told


def contexts(target: Optional[str] = None) -> List[Dict[str, Any]]:
    """The contexts of all processes."""
    told: List[Dict[str, Any]] = rknnctl(["contexts"], target)
    return told


def rknnctl(arguments: List[str], target: Optional[str] = None, *, good: Any = (0,),
            timeout: float = 600.0) -> Any:
    """Runs rknnctl and returns its document. Raises Unavailable with its words,
    LibraryMissing where there is no rknnctl."""
    import json  # with subprocess, half of what importing this package would take
    import subprocess

    command = [_find(), "--json"]
    if target is not None:
        command += ["--target", target]
    try:
        done = subprocess.run(command + arguments, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout,
                              check=False)
    except subprocess.TimeoutExpired as error:
        raise Timeout(f"rknnctl {arguments[0]} did not end within {timeout} s") from error
    try:
        document = json.loads(done.stdout.decode("utf-8", "replace") or "null")
    except ValueError as error:
        raise Error(f"rknnctl {arguments[0]} told no JSON: {error}") from error
    if isinstance(document, dict) and "error" in document:
        raise Unavailable(str(document["error"]), function="rknnctl")
    if done.returncode not in good:
        words = done.stderr.decode("utf-8", "replace").strip()
        raise Unavailable(words or f"rknnctl ended with {done.returncode}", function="rknnctl")
    return document


def _find() -> str:
    # "" where the loader found the library by itself.
    folder = os.path.dirname(_library.library()._name)
    beside = os.path.normpath(os.path.join(folder, "..", "bin", "rknnctl"))
    if folder and os.access(beside, os.X_OK):
        return beside
    import shutil

    found = shutil.which("rknnctl")
    if found is None:
        raise LibraryMissing("rknnctl was not found: install package rknnctl")
    return found
