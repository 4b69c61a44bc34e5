# In the manner of Immich: a pool of contexts in threads, the logger silenced,
# and later releases' own structures by ctypes into the library.
import ctypes
import logging
import queue
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

try:
    from rknnlite.api import RKNNLite, rknn_runtime
    is_available = True
except ImportError:
    is_available = False


class RknnTensorAttr(ctypes.Structure):
    _fields_ = [("index", ctypes.c_uint32), ("n_dims", ctypes.c_uint32),
                ("dims", ctypes.c_uint32 * 16), ("name", ctypes.c_char * 256),
                ("n_elems", ctypes.c_uint32), ("size", ctypes.c_uint32),
                ("fmt", ctypes.c_int), ("type", ctypes.c_int), ("qnt_type", ctypes.c_int),
                ("fl", ctypes.c_int8), ("zp", ctypes.c_int32), ("scale", ctypes.c_float),
                ("w_stride", ctypes.c_uint32), ("size_with_stride", ctypes.c_uint32),
                ("pass_through", ctypes.c_uint8), ("h_stride", ctypes.c_uint32)]


def init_rknn(model_path: str) -> "RKNNLite":
    rknn_lite = RKNNLite()
    rknn_lite.rknn_log.logger.setLevel(logging.ERROR)
    ret = rknn_lite.load_rknn(model_path)
    if ret != 0:
        raise RuntimeError("Failed to load RKNN model")
    ret = rknn_lite.init_runtime(core_mask=RKNNLite.NPU_CORE_AUTO)
    if ret != 0:
        raise RuntimeError("Failed to initialize RKNN runtime environment")
    return rknn_lite


def native_outputs(lite):
    runtime = lite.rknn_runtime
    _, count = runtime.get_in_out_num()
    outputs = (rknn_runtime.RKNNOutput * count)()
    for index in range(count):
        outputs[index].index = index
        outputs[index].want_float = 0
    ret = runtime.lib.rknn_outputs_get(runtime.context, count, outputs, None)
    if ret != 0:
        raise RuntimeError("outputs_get")
    answers = []
    for index in range(count):
        attr = RknnTensorAttr()
        attr.index = index
        ret = runtime.lib.rknn_query(runtime.context, 2, ctypes.byref(attr), ctypes.sizeof(attr))
        if ret != 0:
            raise RuntimeError("query")
        dtype = {0: np.float32, 1: np.float16}[attr.type]
        data = ctypes.string_at(outputs[index].buf, outputs[index].size)
        answers.append(np.frombuffer(data, dtype).reshape(attr.dims[:attr.n_dims]))
    runtime.lib.rknn_outputs_release(runtime.context, count, outputs)
    return answers


class RknnPoolExecutor:
    def __init__(self, model_path, tpes, func):
        self.tpes = tpes
        self.queue = queue.Queue()
        self.rknn_pool = [init_rknn(model_path) for _ in range(tpes)]
        self.pool = ThreadPoolExecutor(max_workers=tpes)
        self.func = func
        self.num = 0

    def put(self, inputs):
        self.queue.put(self.pool.submit(self.func, self.rknn_pool[self.num % self.tpes], inputs))
        self.num += 1

    def get(self):
        return self.queue.get().result()

    def release(self):
        self.pool.shutdown()
        for rknn_lite in self.rknn_pool:
            rknn_lite.release()


def run_inference(rknn_lite, input_):
    return rknn_lite.inference(inputs=input_, data_format="nchw")


if __name__ == "__main__":
    assert is_available
    pool = RknnPoolExecutor(sys.argv[1], 2, run_inference)
    for value in range(6):
        pool.put([np.full((1, 3, 8, 10), value, np.float32)])
    print([float(pool.get()[0].mean()) for _ in range(6)] == [0, 1, 2, 3, 4, 5])
    lite = pool.rknn_pool[0]
    assert not lite.rknn_runtime.is_dynamic_shape
    assert lite.rknn_runtime.get_tensor_attr(0, is_output=False).name == b"image"
    run_inference(lite, [np.full((1, 3, 8, 10), 7, np.float32)])
    native = native_outputs(lite)[0]
    print(native.shape == (1, 3, 8, 10) and float(native.max()) == 7)
    pool.release()
    logging.basicConfig(level="DEBUG")
    print("ok")
