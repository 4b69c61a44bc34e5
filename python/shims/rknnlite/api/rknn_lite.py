"""RKNNLite as the vendor's programs use it, on rknnd. No method raises: what
fails is logged, and its answer is -1 or None."""

import collections
import os
import traceback

import rknnd
from rknnd import _abi

from . import rknn_platform
from .rknn_log import RKNNLog
from .rknn_runtime import RKNNRuntime, code_name


class RKNNLite:
    """A model file on the NPU."""

    NPU_CORE_AUTO = 0
    NPU_CORE_0 = 1
    NPU_CORE_1 = 2
    NPU_CORE_2 = 4
    NPU_CORE_0_1 = 3
    NPU_CORE_0_1_2 = 7
    NPU_CORE_ALL = 0xFFFF

    def __init__(self, verbose=False, verbose_file=None):
        self.verbose = verbose
        self.root_dir = os.path.dirname(os.path.abspath(__file__))
        self.target = None
        self.rknn_data = None
        self.rknn_runtime = None
        self.rknn_log = RKNNLog(verbose, verbose_file)
        self.rknn_log.logger.info("rknn-toolkit-lite2 interface of rknnd, version: %s",
                                  rknnd.__version__)

    def load_rknn(self, path):
        """Reads a model file. 0, or -1."""
        try:
            with open(path, "rb") as file:
                self.rknn_data = file.read()
        except (OSError, TypeError, ValueError):
            self.rknn_log.logger.error("Invalid RKNN model path: %s",
                                       "None" if path is None else path)
            return -1
        return 0

    def list_devices(self):
        """(adb, ntb); the targets of rknnd that answer are in the first list."""
        return rknn_platform.print_devices()

    def init_runtime(self, target=None, device_id=None, async_mode=False,
                     core_mask=NPU_CORE_AUTO):
        """Opens the model on a target: None is this machine, device_id="HOST:PORT"
        a daemon elsewhere. 0, or -1."""
        logger = self.rknn_log.logger
        if self.rknn_data is None:
            logger.error("Model is not loaded yet, this interface should be called after load_rknn!")
            return -1
        if self.rknn_runtime is not None:
            self.rknn_runtime.release()
            self.rknn_runtime = None
        try:
            self.target = target
            place = rknn_platform.choose_target(target, device_id)
            runtime = RKNNRuntime(self.rknn_data, place, _abi.FLAG_ASYNC if async_mode else 0,
                                  logger)
            if core_mask != self.NPU_CORE_AUTO:
                code = runtime.set_core_mask(core_mask)
                if code != 0:
                    runtime.release()
                    raise rknnd.Error(f"core_mask {core_mask} cannot be set: "
                                      f"{rknnd._library.last_error()}", code)
        except Exception as error:  # none may reach the program
            self._caught("init runtime!")
            logger.error("RKNN init failed. error code: %s",
                         code_name(getattr(error, "code", -1)))
            return -1
        self.rknn_runtime = runtime
        return 0

    def inference(self, inputs, data_type=None, data_format=None, inputs_pass_through=None,
                  get_frame_id=False):
        """Runs once. A list of arrays, or None."""
        runtime = self.rknn_runtime
        if runtime is None:
            self.rknn_log.logger.error("Runtime environment is not inited, this interface should "
                                       "be called after init_runtime!")
            return None
        doing = ["setting inputs."]
        try:
            return runtime.inference(inputs, data_format, inputs_pass_through, get_frame_id,
                                     doing.append)
        except Exception:  # none may reach the program
            self._caught(doing[-1])
            return None

    def get_sdk_version(self):
        """The versions of library and driver, framed; None before init_runtime."""
        if self.rknn_runtime is None:
            self.rknn_log.logger.error("Runtime environment is not inited, this interface should "
                                       "be called after init_runtime!")
            return None
        try:
            return self.rknn_runtime.get_sdk_version()
        except Exception:
            self._caught("get sdk version!")
            return None

    def list_support_target_platform(self, rknn_model=None):
        """The SoCs that a model file is for: an OrderedDict with two lists of
        names, or None where there is no file. ONNX files are for all."""
        if rknn_model is None:
            names = list(rknn_platform.PLATFORMS)
        else:
            try:
                with open(rknn_model, "rb") as file:
                    data = file.read()
            except (OSError, TypeError, ValueError):
                self.rknn_log.logger.error("Invalid RKNN model path: %s", rknn_model)
                return None
            names = _platforms_of(data)
        return collections.OrderedDict(support_target_platform=names,
                                       filled_target_platform=list(names))

    def release(self):
        """Frees the model and the NPU's memory. Can be called again."""
        if self.rknn_runtime is not None:
            self.rknn_runtime.release()
            self.rknn_runtime = None
        self.rknn_data = None
        self.rknn_log.close()

    def _caught(self, doing):
        self.rknn_log.logger.error("Catch exception when %s\n%s", doing, traceback.format_exc())


def _platforms_of(data):
    # The description of a compiled file is JSON, and names its platforms there.
    if data[:4] == b"RKNN":
        found = [name for name in rknn_platform.PLATFORMS
                 if b'"' + name.encode() + b'"' in data.lower()]
        return found or list(rknn_platform.PLATFORMS)
    return list(rknn_platform.PLATFORMS)
