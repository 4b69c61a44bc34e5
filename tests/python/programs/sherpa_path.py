# In the manner of sherpa-onnx: the C API from bytes, a custom string of pairs,
# int64 inputs, outputs that the program brings.
import ctypes
import sys

import numpy as np
from rknnlite.api.rknn_lite import RKNNLite
from rknnlite.api.rknn_runtime import RKNNInput, RKNNOutput

lite = RKNNLite(verbose=False)
assert lite.load_rknn(sys.argv[1]) == 0
assert lite.init_runtime() == 0
lib, context = lite.rknn_runtime.lib, lite.rknn_runtime.context

custom = ctypes.create_string_buffer(1024)
assert lib.rknn_query(context, 7, custom, 1024) == 0
meta = dict(pair.split("=") for pair in custom.value.decode().split(";") if pair)
print(meta == {"model_type": "tokens", "vocab": "6"})

tokens = np.array([[1, 2, 3, 4, 5, 6]], np.int64)
entry = RKNNInput(index=0, buf=tokens.ctypes.data, size=tokens.nbytes, pass_through=0, type=8,
                  fmt=3)
answer = np.zeros((1, 6), np.int64)
output = RKNNOutput(want_float=0, is_prealloc=1, index=0, buf=answer.ctypes.data,
                    size=answer.nbytes)
for _ in range(3):
    assert lib.rknn_inputs_set(context, 1, ctypes.byref(entry)) == 0
    assert lib.rknn_run(context, None) == 0
    assert lib.rknn_outputs_get(context, 1, ctypes.byref(output), None) == 0
print(bool((answer == tokens + 1).all()))
lite.release()
print("ok")
