"""`rknnlite` and `rknn` in the vendor's shape: signatures, codes, texts,
tolerance and inner names, on a real daemon."""

import contextlib
import ctypes
import inspect
import io
import logging
import os
import socket
import tempfile
import unittest

import numpy as np

import support
import tiny_onnx

import rknnd

rknnd.install_shims()
from rknn.api import RKNN  # noqa: E402
from rknnlite.api import RKNNLite, rknn_runtime  # noqa: E402

_CORES = {"NPU_CORE_AUTO": 0, "NPU_CORE_0": 1, "NPU_CORE_1": 2, "NPU_CORE_2": 4,
          "NPU_CORE_0_1": 3, "NPU_CORE_0_1_2": 7, "NPU_CORE_ALL": 0xFFFF}
# As published: names, order and defaults.
_LITE = {
    "__init__": "(self, verbose=False, verbose_file=None)",
    "load_rknn": "(self, path)",
    "list_devices": "(self)",
    "init_runtime": "(self, target=None, device_id=None, async_mode=False, core_mask=0)",
    "inference": "(self, inputs, data_type=None, data_format=None, inputs_pass_through=None, "
                 "get_frame_id=False)",
    "get_sdk_version": "(self)",
    "list_support_target_platform": "(self, rknn_model=None)",
    "release": "(self)",
}
_RKNN = {
    "__init__": "(self, verbose=False, verbose_file=None)",
    "config": "(self, mean_values=None, std_values=None, quantized_dtype='w8a8', "
              "quantized_algorithm='normal', quantized_method='channel', "
              "quantized_hybrid_level=0, target_platform=None, quant_img_RGB2BGR=False, "
              "float_dtype='float16', optimization_level=3, custom_string=None, "
              "remove_weight=False, compress_weight=False, inputs_yuv_fmt=None, "
              "single_core_mode=False, dynamic_input=None, model_pruning=False, op_target=None, "
              "quantize_weight=False, remove_reshape=False, sparse_infer=False, "
              "enable_flash_attention=False, auto_hybrid_cos_thresh=0.98, "
              "auto_hybrid_euc_thresh=None, **kwargs)",
    "load_caffe": "(self, model, blobs=None, input_name=None)",
    "load_tensorflow": "(self, tf_pb, inputs, input_size_list, outputs, input_is_nchw=False)",
    "load_tflite": "(self, model, input_is_nchw=False)",
    "load_onnx": "(self, model, inputs=None, input_size_list=None, input_initial_val=None, "
                 "outputs=None)",
    "load_darknet": "(self, model, weight)",
    "load_pytorch": "(self, model, input_size_list)",
    "build": "(self, do_quantization=True, dataset=None, rknn_batch_size=None, "
             "auto_hybrid=False, **kwargs)",
    "export_rknn": "(self, export_path, **kwargs)",
    "load_rknn": "(self, path)",
    "init_runtime": "(self, target=None, device_id=None, perf_debug=False, eval_mem=False, "
                    "async_mode=False, core_mask=0, fallback_prior_device='cpu')",
    "inference": "(self, inputs, data_format=None, inputs_pass_through=None, get_frame_id=False)",
    "eval_perf": "(self, is_print=True, fix_freq=True)",
    "eval_memory": "(self, is_print=True)",
    "accuracy_analysis": "(self, inputs, output_dir='./snapshot', target=None, device_id=None)",
    "hybrid_quantization_step1": "(self, dataset='dataset.txt', rknn_batch_size=None, "
                                 "proposal=False, proposal_dataset_size=1, custom_hybrid=None)",
    "hybrid_quantization_step2": "(self, model_input, data_input, model_quantization_cfg)",
    "get_sdk_version": "(self)",
    "list_devices": "(self)",
    "reg_custom_op": "(self, custom_op)",
    "codegen": "(self, output_path, inputs=None, overwrite=False)",
    "export_encrypted_rknn_model": "(self, input_model, output_model=None, crypt_level=1)",
    "optimize_onnx": "(self, model, optimized_path=None, passes_enable=None, "
                     "inputs_for_dump=None)",
    "release": "(self)",
}


class ShapeTest(unittest.TestCase):
    def test_signatures_are_the_published_ones(self):
        for kind, wanted in ((RKNNLite, _LITE), (RKNN, _RKNN)):
            public = {name for name, value in vars(kind).items()
                      if inspect.isfunction(value) and not name.startswith("_")}
            self.assertEqual(public | {"__init__"}, set(wanted))
            for name, signature in wanted.items():
                self.assertEqual(str(inspect.signature(getattr(kind, name))), signature, name)
            for name, value in _CORES.items():
                self.assertEqual(getattr(kind, name), value)

    def test_modules_are_where_programs_look(self):
        from rknn.api import custom_op, rknn_convert  # noqa: F401
        from rknn.api.rknn import RKNN as again
        from rknn.utils.onnx_edit import onnx_edit
        from rknnlite.api.rknn_lite import RKNNLite as lite_again
        import rknn
        import rknnlite
        self.assertIs(again, RKNN)
        self.assertIs(lite_again, RKNNLite)
        self.assertIn("rknn", str(RKNN))
        for module in (rknn, rknnlite):
            with open(module.__path__[0] + "/VERSION") as file:
                self.assertEqual(file.read().strip(), rknnd.__version__ + "-rknnd")
        self.assertTrue(issubclass(rknn_runtime.RKNNOutput, ctypes.Structure))
        with self.assertRaisesRegex(ValueError, "not in this version"):
            onnx_edit("a", "b")
        with self.assertRaisesRegex(ValueError, "not in this version"):
            custom_op.get_node_attr(None, "x")

    def test_found_by_links_in_and_to_an_installation(self):
        find = "import rknnd; print(rknnd.shims_folder())"
        self.assertEqual(support.run_python(find)[0].strip(), os.path.join(
            support.BUILD, "lib", "python3", "rknnd-shims"))
        with tempfile.TemporaryDirectory() as elsewhere:
            os.symlink(os.path.join(support.MODULES, "rknnd"), elsewhere + "/rknnd")
            found = support.run_python(find, path=elsewhere)[0].strip()
        self.assertTrue(os.path.isfile(found + "/rknnlite/__init__.py"), found)

    def test_logging_of_the_host_stays_whole(self):
        out, _ = support.run_python(
            "import logging\n"
            "names = dict(logging._levelToName)\n"
            "handlers = list(logging.root.handlers)\n"
            "from rknnlite.api import RKNNLite\nfrom rknn.api import RKNN\n"
            "lite = RKNNLite(verbose=True); lite.rknn_log.logger.setLevel(logging.ERROR)\n"
            "assert logging._levelToName == names and logging.root.handlers == handlers\n"
            "logging.basicConfig(level='DEBUG')\n"
            "print(logging.getLevelName('DEBUG'), type(lite.rknn_log.logger).__name__)\n",
            path=rknnd.shims_folder())
        self.assertEqual(out.strip(), "10 Logger")

    def test_they_never_replace_what_was_imported(self):
        support.run_python(
            "import sys, types\nimport rknnd\n"
            "other = types.ModuleType('rknnlite'); other.__file__ = '/elsewhere/__init__.py'\n"
            "sys.modules['rknnlite'] = other\n"
            "try:\n    rknnd.install_shims()\n"
            "except rknnd.Error as error:\n    assert 'already' in str(error)\n"
            "else:\n    raise SystemExit(1)\n")


class LiteTest(support.DaemonTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, data, name="model.rknn"):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as file:
            file.write(data)
        return path

    def lite(self, data, **options):
        lite = RKNNLite(verbose=False)
        self.assertEqual(lite.load_rknn(self.file(data)), 0)
        self.assertEqual(lite.init_runtime(**options), 0)
        self.addCleanup(lite.release)
        return lite

    def test_codes_and_words_of_wrong_order(self):
        lite = RKNNLite()
        with self.assertLogs("rknnd", "ERROR") as told:
            self.assertEqual(lite.load_rknn("/no/such.rknn"), -1)
            self.assertEqual(lite.load_rknn(None), -1)
            self.assertEqual(lite.init_runtime(), -1)
            self.assertIsNone(lite.inference([np.zeros(1)]))
            self.assertIsNone(lite.get_sdk_version())
            self.assertIsNone(lite.list_support_target_platform("/no/such.rknn"))
        words = "\n".join(told.output)
        for text in ("Invalid RKNN model path: /no/such.rknn", "Model is not loaded yet",
                     "Runtime environment is not inited"):
            self.assertIn(text, words)
        self.assertIsNone(lite.release())
        self.assertIsNone(lite.release())

    def test_a_model_that_is_none(self):
        lite = RKNNLite()
        self.assertEqual(lite.load_rknn(self.file(b"rubbish" * 100)), 0)
        with self.assertLogs("rknnd", "ERROR") as told:
            self.assertEqual(lite.init_runtime(), -1)
        words = "\n".join(told.output)
        self.assertIn("Catch exception when init runtime!", words)
        self.assertIn("Traceback", words)
        self.assertIn("RKNN init failed. error code: RKNN_ERR_MODEL_INVALID", words)

    def test_pictures_in_every_form(self):
        lite = self.lite(tiny_onnx.picture())
        image = np.random.default_rng(5).integers(0, 200, (8, 10, 3), dtype=np.uint8)
        right = image.transpose(2, 0, 1)[np.newaxis].astype(np.float32)
        batch = image[np.newaxis]
        for inputs in ([image], [batch], batch, [np.asfortranarray(batch)],
                       [batch.astype(np.float64)], [batch.astype(np.float32)],
                       [batch.astype(np.float16)], [batch.astype(np.int32)],
                       [batch.astype(np.int64)]):
            with self.quietly():
                outputs = lite.inference(inputs=inputs)
            self.assertIsInstance(outputs, list)
            self.assertEqual((len(outputs), outputs[0].dtype), (1, np.float32))
            np.testing.assert_array_equal(outputs[0], right)
        channels_first = batch.transpose(0, 3, 1, 2)
        for data_format in ("nchw", "NCHW", ["nchw"], ["NCHW"]):
            with self.assertLogs("rknnd", "WARNING") as told:
                outputs = lite.inference([channels_first], data_format=data_format)
            np.testing.assert_array_equal(outputs[0], right)
            self.assertIn("The input[0] need NHWC data format, but NCHW set, the data format and "
                          "data buffer will be changed to NHWC.", told.output[0])
        for data_format in ("nhwc", ["NHWC"], None, [None]):
            outputs = lite.inference([batch], None, data_format)
            np.testing.assert_array_equal(outputs[0], right)
        with self.quietly():
            np.testing.assert_array_equal(lite.inference([channels_first])[0], right)

    def quietly(self):
        logging.getLogger("rknnd").setLevel(logging.CRITICAL)

        @contextlib.contextmanager
        def restored():
            try:
                yield
            finally:
                logging.getLogger("rknnd").setLevel(logging.NOTSET)

        return restored()

    def test_wrong_arrays_give_none_with_words(self):
        lite = self.lite(tiny_onnx.picture())
        for inputs, words in (
                ([np.zeros((1, 8, 10, 3), np.complex64)], "Unsupport inputs[0].dtype: complex64"),
                ([np.zeros((1, 8, 10, 3), object)], "Unsupport inputs[0].dtype: object"),
                ([np.zeros((10, 3), np.uint8)], "need 4dims input, but 2dims input"),
                ([np.zeros((1, 9, 9, 3), np.uint8)], "is wrong, expect 'nhwc' like"),
                ([], "number of inputs"), (["text"], "Unsupport inputs[0]"), (None, "inputs"),
                ([None], "Unsupport inputs[0]")):
            with self.assertLogs("rknnd", "ERROR") as told:
                self.assertIsNone(lite.inference(inputs=inputs), words)
            self.assertIn("Catch exception when setting inputs.", told.output[0])
            self.assertIn(words, told.output[0])
        with self.assertLogs("rknnd", "ERROR"):
            self.assertIsNone(lite.inference([np.zeros((1, 8, 10, 3), np.uint8)],
                                             data_format="nc1hwc2"))
        with self.assertLogs("rknnd", "WARNING") as told:
            self.assertIsNotNone(lite.inference([np.zeros((1, 8, 10, 3))]))
        self.assertIn("Unsupport inputs[0].dtype: float64", told.output[0])
        with self.assertLogs("rknnd", "WARNING") as told:
            self.assertIsNotNone(lite.inference([np.zeros((8, 10, 3), np.uint8)]))
        self.assertIn("The input[0] need 4dims input, but 3dims input buffer feed.",
                      told.output[0])

    def test_integers_of_transformers(self):
        lite = self.lite(tiny_onnx.tokens())
        for dtype in (np.int64, np.int32):
            answer = lite.inference([np.arange(6, dtype=dtype)[np.newaxis]])[0]
            self.assertEqual(answer.dtype, np.int64)
            np.testing.assert_array_equal(answer, [[1, 2, 3, 4, 5, 6]])

    def test_frame_ids_and_async_mode(self):
        lite = self.lite(tiny_onnx.relu(), async_mode=True)
        ids = [lite.inference([np.full((1, 16), n, np.float32)], get_frame_id=True)
               for n in range(4)]
        self.assertEqual([answer[1] for answer in ids], [1, 1, 2, 3])
        self.assertEqual([answer[0][0, 0] for answer in ids], [0, 0, 1, 2])

    def test_dynamic_shapes_follow_the_arrays(self):
        lite = self.lite(tiny_onnx.listed())
        self.assertTrue(lite.rknn_runtime.is_dynamic_shape)
        for side in (8, 4, 8):
            image = np.full((1, side, side, 3), side, np.float32)
            for inputs, data_format in (([image], ["nhwc"]),
                                        ([image.transpose(0, 3, 1, 2)], ["nchw"])):
                with self.quietly():
                    answer = lite.inference(inputs, data_format=data_format)[0]
                self.assertEqual(answer.shape, (1, 3, side, side))
                self.assertEqual(answer[0, 0, 0, 0], side)

    def test_inner_names(self):
        lite = self.lite(tiny_onnx.add(), core_mask=RKNNLite.NPU_CORE_0_1)
        runtime = lite.rknn_runtime
        self.assertEqual(runtime.get_in_out_num(), (2, 1))
        attr = runtime.get_tensor_attr(1)
        self.assertEqual((attr.name, attr.n_dims, list(attr.dims[:2])), (b"right", 2, [2, 8]))
        self.assertEqual(runtime.get_tensor_attr(0, is_output=True).name, b"total")
        self.assertEqual(runtime.get_output_shape(0), [2, 8])
        self.assertEqual(runtime.set_core_mask(RKNNLite.NPU_CORE_2), 0)
        self.assertFalse(runtime.is_dynamic_shape)
        left = np.ones((2, 8), np.float32)
        self.assertEqual(lite.inference([left, left])[0][0, 0], 2)
        self.assertGreaterEqual(runtime.get_run_perf().run_duration, 0)
        # As Immich's session does: its own structures into the library.
        outputs = (rknn_runtime.RKNNOutput * 1)()
        outputs[0].want_float = 1
        self.assertEqual(runtime.lib.rknn_outputs_get(runtime.context, 1, outputs, None), 0)
        self.assertEqual(ctypes.cast(outputs[0].buf, ctypes.POINTER(ctypes.c_float))[0], 2)
        self.assertEqual(runtime.lib.rknn_outputs_release(runtime.context, 1, outputs), 0)
        self.assertIsInstance(runtime.context, int)
        self.assertIsInstance(lite.rknn_data, bytes)
        self.assertFalse(lite.verbose)
        self.assertIsNone(lite.target)
        self.assertTrue(os.path.isdir(lite.root_dir))
        version = lite.get_sdk_version()
        for text in ("RKNN VERSION:", "API: 2.3.2", "DRV: ", "rknnd"):
            self.assertIn(text, version)

    def test_targets(self):
        path = self.file(tiny_onnx.relu())
        lite = RKNNLite()
        lite.load_rknn(path)
        self.assertEqual(lite.init_runtime(target="rk3588", core_mask=0), 0)
        self.assertEqual(lite.init_runtime(), 0)  # a second one releases the first
        with self.assertLogs("rknnd", "ERROR") as told:
            self.assertEqual(lite.init_runtime(target="rk9999"), -1)
            self.assertEqual(lite.init_runtime(target="rk3588", device_id="515e9b401c060c0b"), -1)
            self.assertEqual(lite.init_runtime(core_mask=64), -1)
        self.assertIn("adb", "\n".join(told.output))
        lite.release()
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            devices = lite.list_devices()
        self.assertEqual(devices, ([self.daemon.target], []))
        names = lite.list_support_target_platform(path)
        self.assertEqual(list(names), ["support_target_platform", "filled_target_platform"])
        self.assertIn("rk3588", names["support_target_platform"])
        words = support.run_python(
            "from rknnlite.api import RKNNLite\nprint(RKNNLite().list_devices())",
            environment={"RKNND_TARGET": "unix:/no/such.sock"}, path=rknnd.shims_folder())[0]
        self.assertIn("None devices connected.", words)
        self.assertIn("([], [])", words)

    def test_a_board_is_reached_by_its_address(self):
        for library in ("librknnd-grpc.so", "librknnd-remote.so"):
            if not os.path.exists(os.path.join(support.BUILD, "lib", library)):
                self.skipTest(library + " is not built")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = "127.0.0.1:%d" % free.getsockname()[1]
        board = support.Daemon("--grpc", address)
        self.addCleanup(board.end)
        out, _ = support.run_python(
            "import sys\nimport numpy as np\n"
            "from rknnlite.api import RKNNLite\nfrom rknn.api import RKNN\n"
            "for kind in RKNNLite, RKNN:\n"
            "    model = kind()\n"
            "    print(model.load_rknn(sys.argv[1]),\n"
            "          model.init_runtime(target='rk3588', device_id=sys.argv[2]),\n"
            "          model.inference([np.full((1, 16), 3, np.float32)])[0][0, 0])\n"
            "    model.release()\n", self.file(tiny_onnx.relu()), address,
            environment={"RKNND_TARGET": ""}, path=rknnd.shims_folder())
        self.assertEqual(out, "0 0 3.0\n" * 2)

    def test_verbose_file(self):
        path = os.path.join(self.folder.name, "log.txt")
        lite = RKNNLite(False, path)
        lite.rknn_log.logger.disabled = False
        lite.load_rknn("/no/such")
        lite.release()
        with open(path) as file:
            self.assertIn("E Invalid RKNN model path: /no/such", file.read())
        RKNNLite(verbose_file="/no/such/folder/log.txt").release()

    def test_release_while_others_run(self):
        import threading
        path = self.file(tiny_onnx.slow(4, 128))
        for _ in range(5):
            lite = RKNNLite()
            lite.load_rknn(path)
            lite.init_runtime()
            x = np.ones((128, 128), np.float32)
            with self.quietly():
                threads = [threading.Thread(target=lambda: [lite.inference([x])
                                                            for _ in range(20)])
                           for _ in range(3)]
                for thread in threads:
                    thread.start()
                lite.release()
                for thread in threads:
                    thread.join()


class ToolkitTest(support.DaemonTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.onnx = os.path.join(self.folder.name, "model.onnx")
        with open(self.onnx, "wb") as file:
            file.write(tiny_onnx.picture())
        logging.getLogger("rknnd").setLevel(logging.CRITICAL)
        self.addCleanup(logging.getLogger("rknnd").setLevel, logging.NOTSET)

    def test_from_onnx_to_answers_and_reports(self):
        rknn = RKNN(verbose=False)
        self.assertIn(rknn.config(mean_values=[[1, 2, 3]], std_values=[2, 2, 2],
                                  target_platform="rk3588", disable_rules=[], model_pruning=True),
                      (0, None))
        self.assertEqual(rknn.load_onnx(model=self.onnx, inputs=["image"],
                                        input_size_list=[[1, 3, 8, 10]], outputs=["out"]), 0)
        self.assertEqual(rknn.build(do_quantization=False, auto_hybrid_quant=True), 0)
        exported = os.path.join(self.folder.name, "model.rknn")
        self.assertEqual(rknn.export_rknn(exported), 0)
        self.assertEqual(rknn.init_runtime(perf_debug=True, eval_mem=True), 0)
        image = np.full((1, 8, 10, 3), 9, np.uint8)
        right = np.array([4, 3.5, 3], np.float32)
        np.testing.assert_array_equal(rknn.inference(inputs=[image])[0][0, :, 2, 2], right)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertIn("OpType", rknn.eval_perf())
            profile = rknn.eval_memory()
        self.assertIn("Memory Profile", out.getvalue())
        self.assertEqual(set(profile), {"weight_memory", "internal_memory", "other_memory",
                                        "total_memory"})
        self.assertEqual(profile["total_memory"], sum(
            profile[name + "_memory"] for name in ("weight", "internal", "other")))
        self.assertIn("RKNN VERSION:", rknn.get_sdk_version())
        rknn.release()
        # What was exported runs by the other class, and by the module.
        lite = RKNNLite()
        self.assertEqual((lite.load_rknn(exported), lite.init_runtime()), (0, 0))
        np.testing.assert_array_equal(lite.inference([image])[0][0, :, 2, 2], right)
        lite.release()
        np.testing.assert_array_equal(rknnd.Session(exported).run(image)["out"][0, :, 2, 2],
                                      right)
        again = RKNN()
        self.assertEqual((again.load_rknn(exported), again.init_runtime("rk3588")), (0, 0))
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertIn("Total Time(us)", again.eval_perf())
        with self.assertRaisesRegex(ValueError, "eval_mem"):
            again.eval_memory()
        again.release()

    def test_accuracy_analysis(self):
        rknn = RKNN()
        rknn.config(target_platform="rk3588")
        rknn.load_onnx(self.onnx)
        rknn.build(do_quantization=False)
        picture = os.path.join(self.folder.name, "input.npy")
        np.save(picture, np.zeros((1, 8, 10, 3), np.float32))
        folder = os.path.join(self.folder.name, "snapshot")
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(rknn.accuracy_analysis([picture], output_dir=folder), 0)
        self.assertIn("simulator_error", out.getvalue())
        self.assertTrue(os.path.exists(os.path.join(folder, "error_analysis.txt")))
        self.assertTrue(os.path.isdir(os.path.join(folder, "golden")))
        rknn.release()

    def test_open_shapes_and_batches(self):
        path = os.path.join(self.folder.name, "open.onnx")
        with open(path, "wb") as file:
            file.write(tiny_onnx.model([("Relu", ["x"], ["y"])], [("x", ("n", 16), np.float32)],
                                       [("y", ("n", 16), np.float32)]))
        rknn = RKNN()
        rknn.config(target_platform="rk3588")
        rknn.load_onnx(path, inputs=["x"], input_size_list=[[2, 16]])
        rknn.build(do_quantization=False)
        rknn.init_runtime()
        self.assertEqual(rknn.inference([np.ones((2, 16), np.float32)])[0].shape, (2, 16))
        rknn.load_onnx(self.onnx)
        rknn.build(False, rknn_batch_size=3)
        rknn.init_runtime()
        self.assertEqual(rknn.inference([np.ones((3, 8, 10, 3), np.uint8)])[0].shape,
                         (3, 3, 8, 10))
        rknn.release()

    def test_what_is_not_in_this_version_says_so(self):
        rknn = RKNN()
        rknn.config()
        rknn.load_onnx(self.onnx)
        for call in (rknn.build, lambda: rknn.build(True, dataset="d.txt"),
                     lambda: rknn.load_caffe("m"), lambda: rknn.load_tflite("m"),
                     lambda: rknn.load_tensorflow("m", [], [], []),
                     lambda: rknn.load_darknet("m", "w"), lambda: rknn.load_pytorch("m", []),
                     rknn.hybrid_quantization_step1,
                     lambda: rknn.hybrid_quantization_step2("a", "b", "c"),
                     lambda: rknn.reg_custom_op(object()), lambda: rknn.codegen("d"),
                     lambda: rknn.export_encrypted_rknn_model("m"),
                     lambda: rknn.optimize_onnx("m"),
                     lambda: rknn.load_onnx(self.onnx, outputs=["inner"])):
            with self.assertRaisesRegex(ValueError, "not in this version"):
                call()

    def test_wrong_values(self):
        rknn = RKNN()
        for options in ({"mean_values": [[float("nan")] * 3]}, {"std_values": [0, 1, 1]},
                        {"mean_values": 7}, {"std_values": [float("inf")]},
                        {"target_platform": "rk1"}, {"mean_values": ["x"]}):
            with self.assertRaises(ValueError, msg=repr(options)):
                rknn.config(**options)
        for call in (rknn.init_runtime, lambda: rknn.inference([]), rknn.eval_perf,
                     rknn.get_sdk_version, lambda: rknn.export_rknn("x"),
                     lambda: rknn.build(do_quantization=False),
                     lambda: rknn.load_onnx("/no/such"), lambda: rknn.load_rknn("/no/such"),
                     lambda: rknn.accuracy_analysis(["x"])):
            with self.assertRaises(ValueError):
                call()
        garbage = os.path.join(self.folder.name, "garbage.onnx")
        for data in (b"", os.urandom(300), b"\xff" * 40, tiny_onnx.picture()[:50]):
            with open(garbage, "wb") as file:
                file.write(data)
            with self.assertRaises(ValueError):
                rknn.load_onnx(garbage)

    def test_a_compiled_model_runs(self):
        path = os.path.join(os.environ.get("RKNND_SHARED", os.path.join(
            support.SOURCE, "..", "shared")), "rknn", "conv_fp16_c32_rk3588.rknn")
        if not os.path.exists(path):
            self.skipTest("the shared models are not there")
        lite = RKNNLite()
        self.assertEqual((lite.load_rknn(path), lite.init_runtime()), (0, 0))
        attr = lite.rknn_runtime.get_tensor_attr(0)
        shape = tuple(attr.dims[:attr.n_dims])
        outputs = lite.inference([np.ones(shape, np.float32)])
        self.assertIsNotNone(outputs)
        self.assertEqual(outputs[0].dtype, np.float32)
        self.assertIn("rk3588", lite.list_support_target_platform(path)
                      ["support_target_platform"])
        lite.release()


if __name__ == "__main__":
    unittest.main()
