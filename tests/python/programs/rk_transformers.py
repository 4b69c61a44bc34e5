# In the manner of rk-transformers: found by find_spec, the file's platforms
# asked for, stdout and stderr shut while the runtime begins, tokens as int64.
import contextlib
import importlib.util
import os
import sys

import numpy as np

name = next(candidate for candidate in ("rknnlite", "rknn")
            if importlib.util.find_spec(candidate) is not None)
print(name)
from rknnlite.api import RKNNLite  # noqa: E402


@contextlib.contextmanager
def silence():
    saved = os.dup(1), os.dup(2)
    with open(os.devnull, "w") as null:
        os.dup2(null.fileno(), 1)
        os.dup2(null.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved[0], 1)
            os.dup2(saved[1], 2)
            os.close(saved[0])
            os.close(saved[1])


sys.stdout.flush()
with silence():
    rknn = RKNNLite(verbose=False)
    loaded = rknn.load_rknn(sys.argv[1])
    support = rknn.list_support_target_platform(sys.argv[1])
    ready = rknn.init_runtime(core_mask=RKNNLite.NPU_CORE_AUTO)
    if ready != 0:
        ready = rknn.init_runtime(target=support["filled_target_platform"][0],
                                  core_mask=RKNNLite.NPU_CORE_AUTO)
print(loaded, ready, "rk3588" in support["support_target_platform"])
answer = rknn.inference(inputs=[np.arange(6).reshape(1, 6)])
print(answer[0].tolist() == [[1, 2, 3, 4, 5, 6]])
rknn.release()
print("ok")
