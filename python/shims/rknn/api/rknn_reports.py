"""eval_perf, eval_memory and accuracy_analysis, as texts and dictionaries."""

import os
import tempfile

import numpy as np

from rknnd import _abi, _reports
from rknnd.daemon import rknnctl
from rknnlite.api.rknn_inputs import PLAIN


def perf_text(runtime, detailed):
    """Runs on zeros; the table of layers, or the time of a whole run."""
    zeros = []
    for index in range(runtime.n_inputs):
        attr = runtime.get_tensor_attr(index)
        zeros.append(np.zeros(tuple(attr.dims[:attr.n_dims]), PLAIN.get(attr.type, np.float32)))
    for _ in range(2):
        runtime.inference(zeros)
    if detailed:
        detail = _abi.PerfDetail()
        runtime._query(_abi.QUERY_PERF_DETAIL, detail)
        return (detail.perf_data or b"").decode("utf-8", "replace")
    duration = max(1, runtime.get_run_perf().run_duration)
    line = "=" * 67
    return (f"{line}\n                         Performance\n{line}\n"
            f"Total Time(us): {duration}\nFPS: {1e6 / duration:.2f}\n{line}\n")


def memory_profile(runtime):
    """Bytes: weight_memory, internal_memory, other_memory, total_memory."""
    told = _reports.memory(runtime.context, runtime.n_inputs, runtime.n_outputs)
    return {"weight_memory": told["weight"], "internal_memory": told["internal"],
            "other_memory": told["io"], "total_memory": told["total"]}


def memory_text(profile, model_size):
    mib = 1024 * 1024
    line = "=" * 54
    return (f"{line}\n            Memory Profile Info Dump\n{line}\n"
            "NPU model memory detail(bytes):\n"
            f"    Weight Memory: {profile['weight_memory'] / mib:.2f} MiB\n"
            f"    Internal Tensor Memory: {profile['internal_memory'] / mib:.2f} MiB\n"
            f"    Other Memory: {profile['other_memory'] / mib:.2f} MiB\n"
            f"    Total Memory: {profile['total_memory'] / mib:.2f} MiB\n\n"
            "INFO: When evaluating memory usage, we need consider\n"
            f"the size of model, current model size is: {model_size / mib:.2f} MiB\n{line}\n")


def analyse(model, inputs, output_dir, target):
    """`rknnctl accuracy`; its table, from error_analysis.txt."""
    files = [inputs] if isinstance(inputs, str) else list(inputs)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        with open(path, "wb") as file:
            file.write(model)
        arguments = ["accuracy", path, "--output-dir", output_dir]
        for name in files:
            arguments += ["--input", os.fspath(name)]
        rknnctl(arguments, target)
    with open(os.path.join(output_dir, "error_analysis.txt"), encoding="utf-8") as table:
        return table.read()
