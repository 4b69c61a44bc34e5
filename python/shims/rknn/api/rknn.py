"""RKNN as programs on a PC use it, on rknnd. As in the vendor's since 2.0, what
fails is logged and raises ValueError; what works gives 0."""

import json
import os
import traceback

import rknnd
from rknnd import _abi
from rknnlite.api import rknn_platform
from rknnlite.api.rknn_log import RKNNLog
from rknnlite.api.rknn_runtime import RKNNRuntime

from . import onnx_file, rknn_config, rknn_reports
from .not_here import not_in_this_version


class RKNN:
    """A model: loaded, built, exported, run, measured."""

    NPU_CORE_AUTO = 0
    NPU_CORE_0 = 1
    NPU_CORE_1 = 2
    NPU_CORE_2 = 4
    NPU_CORE_0_1 = 3
    NPU_CORE_0_1_2 = 7
    NPU_CORE_ALL = 0xFFFF

    def __init__(self, verbose=False, verbose_file=None):
        self.verbose = verbose
        self.target = None
        self.rknn_runtime = None
        self.rknn_data = None
        self.rknn_log = RKNNLog(verbose, verbose_file)
        self._options = {}
        self._source = None  # the ONNX file, before build
        self._shapes = None
        self._perf_debug = self._eval_mem = False
        self.rknn_log.logger.info("rknn-toolkit2 interface of rknnd, version: %s",
                                  rknnd.__version__)

    # ---- making a model ------------------------------------------------------

    def config(self, mean_values=None, std_values=None, quantized_dtype='w8a8',
               quantized_algorithm='normal', quantized_method='channel',
               quantized_hybrid_level=0, target_platform=None, quant_img_RGB2BGR=False,
               float_dtype='float16', optimization_level=3, custom_string=None,
               remove_weight=False, compress_weight=False, inputs_yuv_fmt=None,
               single_core_mode=False, dynamic_input=None, model_pruning=False, op_target=None,
               quantize_weight=False, remove_reshape=False, sparse_infer=False,
               enable_flash_attention=False, auto_hybrid_cos_thresh=0.98,
               auto_hybrid_euc_thresh=None, **kwargs):
        """What build() puts into the model; parameters of quantisation are taken
        without an effect, unknown ones are named in a warning. 0."""
        given = {"mean_values": mean_values, "std_values": std_values,
                 "target_platform": target_platform, "custom_string": custom_string,
                 "dynamic_input": dynamic_input, "kwargs": kwargs}
        with _Told(self, "config"):
            self._options = rknn_config.options_of(given, self.rknn_log.logger)
        return 0

    def load_onnx(self, model, inputs=None, input_size_list=None, input_initial_val=None,
                  outputs=None):
        """An ONNX file, whole: `inputs` and `outputs` may name its own only. 0."""
        with _Told(self, "load_onnx"):
            data = _read(model)
            graph_inputs, graph_outputs = onnx_file.describe(data)
            for wanted, there in ((inputs, graph_inputs), (outputs, graph_outputs)):
                if wanted is not None and set(wanted) != {name for name, _ in there}:
                    raise not_in_this_version(
                        f"a part of a model ({wanted} of {[name for name, _ in there]})")
            if input_initial_val is not None:
                raise not_in_this_version("input_initial_val")
            self._shapes = _sizes(inputs, input_size_list, graph_inputs)
            self._source = data
            self.rknn_data = None
        return 0

    def load_caffe(self, model, blobs=None, input_name=None):
        """Raises ValueError: not in this version."""
        return self._refuse("load_caffe")

    def load_tensorflow(self, tf_pb, inputs, input_size_list, outputs, input_is_nchw=False):
        """Raises ValueError: not in this version."""
        return self._refuse("load_tensorflow")

    def load_tflite(self, model, input_is_nchw=False):
        """Raises ValueError: not in this version."""
        return self._refuse("load_tflite")

    def load_darknet(self, model, weight):
        """Raises ValueError: not in this version."""
        return self._refuse("load_darknet")

    def load_pytorch(self, model, input_size_list):
        """Raises ValueError: not in this version."""
        return self._refuse("load_pytorch")

    def build(self, do_quantization=True, dataset=None, rknn_batch_size=None, auto_hybrid=False,
              **kwargs):
        """Puts options and model together; do_quantization=False only. 0."""
        with _Told(self, "build"):
            if self._source is None:
                raise ValueError("Model is not loaded yet, this interface should be called after "
                                 "load_onnx!")
            if do_quantization:
                raise not_in_this_version("quantisation (do_quantization=True)")
            for name in kwargs:
                self.rknn_log.logger.warning(
                    "build: the parameter '%s' is not known and has no effect", name)
            options = dict(self._options)
            if self._shapes is not None and "dynamic_input" not in options:
                options["dynamic_input"] = json.dumps([self._shapes])
            if rknn_batch_size is not None:
                options["rknn_batch_size"] = str(int(rknn_batch_size))
            self.rknn_data = onnx_file.with_options(self._source, options)
        return 0

    def export_rknn(self, export_path, **kwargs):
        """Writes the model: an ONNX file with its options inside, which
        load_rknn, rknn_init and rknnd.Session take. 0."""
        with _Told(self, "export_rknn"):
            self._need_model("build")
            with open(export_path, "wb") as file:
                file.write(self.rknn_data)
        return 0

    def load_rknn(self, path):
        """A file of export_rknn, or a compiled one. 0."""
        with _Told(self, "load_rknn"):
            self.rknn_data = _read(path, "Invalid RKNN model path: ")
            self._source = None
        return 0

    def hybrid_quantization_step1(self, dataset='dataset.txt', rknn_batch_size=None,
                                  proposal=False, proposal_dataset_size=1, custom_hybrid=None):
        """Raises ValueError: not in this version."""
        return self._refuse("hybrid_quantization_step1")

    def hybrid_quantization_step2(self, model_input, data_input, model_quantization_cfg):
        """Raises ValueError: not in this version."""
        return self._refuse("hybrid_quantization_step2")

    def reg_custom_op(self, custom_op):
        """Raises ValueError: not in this version."""
        return self._refuse("reg_custom_op")

    def codegen(self, output_path, inputs=None, overwrite=False):
        """Raises ValueError: not in this version."""
        return self._refuse("codegen")

    def export_encrypted_rknn_model(self, input_model, output_model=None, crypt_level=1):
        """Raises ValueError: not in this version."""
        return self._refuse("export_encrypted_rknn_model")

    def optimize_onnx(self, model, optimized_path=None, passes_enable=None,
                      inputs_for_dump=None):
        """Raises ValueError: not in this version."""
        return self._refuse("optimize_onnx")

    # ---- running it ----------------------------------------------------------

    def init_runtime(self, target=None, device_id=None, perf_debug=False, eval_mem=False,
                     async_mode=False, core_mask=NPU_CORE_AUTO, fallback_prior_device="cpu"):
        """Opens the model: target None is the daemon of this machine, or without
        one the software NPU in this process; device_id="HOST:PORT" a daemon
        elsewhere. 0."""
        with _Told(self, "init_runtime"):
            self._need_model("build or load_rknn")
            self._release_runtime()
            place = rknn_platform.choose_target(target, device_id)
            platform = self._options.get("target_platform") or (target or "").lower()
            if place == "local:" and platform in rknn_platform.PLATFORMS:
                os.environ.setdefault("RKNND_SOC", platform)
            flags = (_abi.FLAG_COLLECT_PERF if perf_debug else 0) | (
                _abi.FLAG_ASYNC if async_mode else 0)
            runtime = RKNNRuntime(self.rknn_data, place, flags, self.rknn_log.logger)
            if core_mask != self.NPU_CORE_AUTO and runtime.set_core_mask(core_mask) != 0:
                runtime.release()
                raise ValueError(f"core_mask {core_mask} cannot be set: "
                                 f"{rknnd._library.last_error()}")
            self.rknn_runtime = runtime
            self.target = target
            self._perf_debug, self._eval_mem = perf_debug, eval_mem
        return 0

    def inference(self, inputs, data_format=None, inputs_pass_through=None, get_frame_id=False):
        """Runs once: a list of arrays."""
        with _Told(self, "inference"):
            return self._need_runtime().inference(inputs, data_format, inputs_pass_through,
                                                  get_frame_id)

    def eval_perf(self, is_print=True, fix_freq=True):
        """The time of a run, with perf_debug of each layer, as text."""
        with _Told(self, "eval_perf"):
            text = rknn_reports.perf_text(self._need_runtime(), self._perf_debug)
            if is_print:
                print(text)
            return text

    def eval_memory(self, is_print=True):
        """A dictionary of bytes; wants eval_mem=True of init_runtime."""
        with _Told(self, "eval_memory"):
            runtime = self._need_runtime()
            if not self._eval_mem:
                raise ValueError("eval_memory needs init_runtime(eval_mem=True)!")
            profile = rknn_reports.memory_profile(runtime)
            if is_print:
                print(rknn_reports.memory_text(profile, len(self.rknn_data)))
            return profile

    def accuracy_analysis(self, inputs, output_dir='./snapshot', target=None, device_id=None):
        """Compares each layer with float32, for files of inputs; 0. The table is
        printed, and in output_dir/error_analysis.txt."""
        with _Told(self, "accuracy_analysis"):
            if self._source is None or self.rknn_data is None:
                raise ValueError("accuracy_analysis needs load_onnx and build!")
            place = None
            if target is not None or device_id is not None:
                place = rknn_platform.choose_target(target, device_id)
            print(rknn_reports.analyse(self.rknn_data, inputs, output_dir, place))
        return 0

    def get_sdk_version(self):
        """The versions of library and driver, framed."""
        with _Told(self, "get_sdk_version"):
            return self._need_runtime().get_sdk_version()

    def list_devices(self):
        """(adb, ntb); the targets of rknnd that answer are in the first list."""
        return rknn_platform.print_devices()

    def release(self):
        """Frees all. Can be called again."""
        self._release_runtime()
        self.rknn_data = self._source = None
        self.rknn_log.close()

    def _release_runtime(self):
        if self.rknn_runtime is not None:
            self.rknn_runtime.release()
            self.rknn_runtime = None

    def _need_model(self, after):
        if self.rknn_data is None:
            raise ValueError(f"Model is not loaded yet, this interface should be called after "
                             f"{after}!")

    def _need_runtime(self):
        if self.rknn_runtime is None:
            raise ValueError("Runtime environment is not inited, this interface should be called "
                             "after init_runtime!")
        return self.rknn_runtime

    def _refuse(self, what):
        with _Told(self, what):
            raise not_in_this_version(what)


class _Told:
    """Around a method: what is raised in it is logged and becomes ValueError."""

    def __init__(self, owner, what):
        self._logger = owner.rknn_log.logger
        self._what = what

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _trace):
        if error is None or not isinstance(error, Exception):
            return False
        self._logger.error("%s: %s", self._what, traceback.format_exc())
        if isinstance(error, ValueError):
            return False
        raise ValueError(f"{self._what}: {error}") from error


def _read(path, words="Invalid model path: "):
    try:
        with open(path, "rb") as file:
            return file.read()
    except (OSError, TypeError, ValueError) as error:
        raise ValueError(f"{words}{path}") from error


def _sizes(inputs, sizes, graph_inputs):
    """The shape of each input of the file, in its order, where `sizes` says more
    than the file; None where it says the same."""
    if sizes is None:
        return None
    names = list(inputs) if inputs is not None else [name for name, _ in graph_inputs]
    if len(names) != len(sizes):
        raise ValueError(f"input_size_list has {len(sizes)} shapes for {len(names)} inputs!")
    given = dict(zip(names, ([int(extent) for extent in shape] for shape in sizes)))
    if all(given[name] == shape for name, shape in graph_inputs):
        return None
    for name, shape in graph_inputs:
        if len(shape) != len(given[name]) or any(
                known is not None and known != extent
                for known, extent in zip(shape, given[name])):
            raise not_in_this_version(f"another shape of input '{name}' than {shape}")
    return [given[name] for name, _ in graph_inputs]
