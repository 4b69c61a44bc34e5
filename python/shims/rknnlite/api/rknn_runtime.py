"""The runtime of one context, with the inner names that programs reach for:
`lib`, `context`, `get_tensor_attr` and the structures of rknn_api.h."""

import ctypes
import threading

import numpy as np

from rknnd import _abi, _library
from rknnd._tensor import query, query_attr
from rknnd.errors import Closed

from . import rknn_inputs

RKNNInput = _abi.Input
RKNNOutput = _abi.Output
RKNNTensorAttr = _abi.TensorAttr
RKNNInputOutputNum = _abi.InOutNum
RKNNInputRange = _abi.InputRange
RKNNPerfRun = _abi.PerfRun
RKNNPerfDetail = _abi.PerfDetail
RKNNMemSize = _abi.MemSize
RKNNSDKVersion = _abi.SdkVersion
RKNNCustomString = _abi.CustomString
RKNNInitExtend = _abi.InitExtend
RKNNRunExtend = _abi.RunExtend
RKNNOutputExtend = _abi.OutputExtend

_INTEGERS = {_abi.INT32: np.int32, _abi.INT64: np.int64}
_NAMES = {0: "RKNN_SUCC", -1: "RKNN_ERR_FAIL", -2: "RKNN_ERR_TIMEOUT",
          -3: "RKNN_ERR_DEVICE_UNAVAILABLE", -4: "RKNN_ERR_MALLOC_FAIL",
          -5: "RKNN_ERR_PARAM_INVALID", -6: "RKNN_ERR_MODEL_INVALID",
          -7: "RKNN_ERR_CTX_INVALID", -8: "RKNN_ERR_INPUT_INVALID",
          -9: "RKNN_ERR_OUTPUT_INVALID", -10: "RKNN_ERR_DEVICE_UNMATCH",
          -11: "RKNN_ERR_INCOMPATILE_PRE_COMPILE_MODEL",
          -12: "RKNN_ERR_INCOMPATILE_OPTIMIZATION_LEVEL_VERSION",
          -13: "RKNN_ERR_TARGET_PLATFORM_UNMATCH"}


def code_name(code):
    """RKNN_ERR_... of a number."""
    return _NAMES.get(code, "RKNN_ERR_FAIL")


class RKNNRuntime:
    """A context: made by init, freed by release(). Raises rknnd.Error."""

    def __init__(self, model, target=None, flags=0, logger=None):
        self.logger = logger
        self.context = 0
        handle = _abi.Context()
        with _library.on_target(target):
            self.lib = _library.library()
            _library.call("rknn_init", ctypes.byref(handle), model, len(model), flags, None)
        self.context = int(handle.value)
        self._generation = _library.process.generation
        self._lock = threading.Lock()  # threads that share one object take turns
        self.is_dynamic_shape = False
        try:
            self.n_inputs, self.n_outputs = self.get_in_out_num()
            self._look_for_shapes()
        except Exception:
            self.release()
            raise

    def _query(self, command, structure):
        return query(self.context, command, structure)

    def _look_for_shapes(self):
        if self.n_inputs == 0:
            return
        listed = _abi.InputRange()
        code = self.lib.rknn_query(self.context, _abi.QUERY_INPUT_DYNAMIC_RANGE,
                                   ctypes.byref(listed), ctypes.sizeof(listed))
        # A fixed shape is no error, and nothing is printed of it.
        self.is_dynamic_shape = code == 0
        self._chosen = None

    def get_in_out_num(self):
        """(inputs, outputs)."""
        numbers = self._query(_abi.QUERY_IN_OUT_NUM, _abi.InOutNum())
        return int(numbers.n_input), int(numbers.n_output)

    def get_tensor_attr(self, index, is_output=False):
        """What the model says of a tensor: a structure like rknn_tensor_attr."""
        command = _abi.QUERY_OUTPUT_ATTR if is_output else _abi.QUERY_INPUT_ATTR
        if self.is_dynamic_shape and self._chosen is not None:
            command += _abi.QUERY_CURRENT_INPUT_ATTR - _abi.QUERY_INPUT_ATTR
        return query_attr(self.context, command, index)

    def get_output_shape(self, index):
        attr = self.get_tensor_attr(index, is_output=True)
        return list(attr.dims[:attr.n_dims])

    def set_core_mask(self, core_mask):
        """0, or the C API's number."""
        return self.lib.rknn_set_core_mask(self.context, int(core_mask))

    def get_run_perf(self):
        """`.run_duration`, in microseconds."""
        return self._query(_abi.QUERY_PERF_RUN, _abi.PerfRun())

    def get_sdk_version(self):
        """The versions of library and driver, framed."""
        version = self._query(_abi.QUERY_SDK_VERSION, _abi.SdkVersion())
        line = "=" * 46
        return (f"\n{line}\nRKNN VERSION:\n  API: {version.api_version.decode()} (rknnd "
                f"{_library.version()})\n  DRV: rknn_server: rknnd, driver: "
                f"{version.drv_version.decode()}\n{line}\n")

    def get_custom_string(self):
        return self._query(_abi.QUERY_CUSTOM_STRING, _abi.CustomString()).string.decode()

    def _choose_shape(self, inputs, formats):
        if not self.is_dynamic_shape:
            return
        attrs = (_abi.TensorAttr * self.n_inputs)()
        for index in range(self.n_inputs):
            attr = attrs[index]
            ctypes.pointer(attr)[0] = self.get_tensor_attr(index)
            shape = list(np.shape(inputs[index]))
            if len(shape) + 1 == attr.n_dims:
                shape.insert(0, 1)
            if len(shape) == 4 and attr.fmt == _abi.NHWC and (
                    formats[index] == "nchw" or formats[index] is None
                    and shape[1] == attr.dims[3] != shape[3]):
                shape = [shape[0], shape[2], shape[3], shape[1]]
            attr.n_dims = len(shape)
            attr.dims[:len(shape)] = shape
        wanted = [tuple(attr.dims[:attr.n_dims]) for attr in attrs]
        if wanted != self._chosen:
            _library.call("rknn_set_input_shapes", self.context, self.n_inputs, attrs)
            self._chosen = wanted

    def set_inputs(self, inputs, data_format=None, inputs_pass_through=None):
        """Hands over arrays, one for each input. Raises ValueError, rknnd.Error."""
        if not isinstance(inputs, (list, tuple)):
            inputs = [inputs]
        if len(inputs) != self.n_inputs:
            raise ValueError(f"The number of inputs is {len(inputs)}, but the model needs "
                             f"{self.n_inputs}!")
        formats = rknn_inputs.formats_of(data_format, self.n_inputs)
        passes = list(inputs_pass_through or [])
        passes += [0] * (self.n_inputs - len(passes))
        self._choose_shape(inputs, formats)
        entries = (_abi.Input * self.n_inputs)()
        kept = []
        for index, value in enumerate(inputs):
            array, type_, layout = rknn_inputs.prepare(
                index, value, self.get_tensor_attr(index), formats[index], passes[index],
                self.logger)
            kept.append(array)
            entry = entries[index]
            entry.index = index
            entry.buf = array.ctypes.data
            entry.size = array.nbytes
            entry.pass_through = 1 if passes[index] else 0
            entry.type = type_
            entry.fmt = layout
        _library.call("rknn_inputs_set", self.context, self.n_inputs, entries)

    def run(self):
        _library.call("rknn_run", self.context, None)

    def inference(self, inputs, data_format=None, inputs_pass_through=None, get_frame_id=False,
                  tell=lambda doing: None):
        """All three, one thread at a time. `tell` hears what is being done."""
        if self._generation != _library.process.generation:
            raise Closed("this runtime belongs to the process that this one was forked from: "
                         "after fork() call init_runtime")
        with self._lock:
            tell("setting inputs.")
            self.set_inputs(inputs, data_format, inputs_pass_through)
            tell("running RKNN model.")
            self.run()
            tell("getting outputs.")
            return self.get_outputs(get_frame_id)

    def get_outputs(self, get_frame_id=False):
        """A list of arrays: float32, or integers of 32 and 64 bits."""
        entries = (_abi.Output * self.n_outputs)()
        arrays = []
        for index in range(self.n_outputs):
            attr = self.get_tensor_attr(index, is_output=True)
            dtype = _INTEGERS.get(attr.type, np.float32)
            array = np.empty(tuple(attr.dims[:attr.n_dims]), dtype)
            entry = entries[index]
            entry.want_float = 0 if attr.type in _INTEGERS else 1
            entry.is_prealloc = 1
            entry.index = index
            entry.buf = array.ctypes.data
            entry.size = array.nbytes
            arrays.append(array)
        extend = _abi.OutputExtend()
        _library.call("rknn_outputs_get", self.context, self.n_outputs, entries,
                      ctypes.byref(extend))
        if get_frame_id:
            arrays.append(int(extend.frame_id))
        return arrays

    def release(self):
        context, self.context = self.context, 0
        if context and self._generation == _library.process.generation:
            self.lib.rknn_destroy(context)

    def __del__(self):
        if getattr(self, "context", 0):
            self.release()
