"""Models from Python: what goes in, what comes out, shapes, bindings, reports."""

import os
import tempfile
import unittest

import numpy as np

import support
import tiny_onnx

import rknnd

DETECTOR = os.path.join(support.SOURCE, "examples", "detector", "detector.onnx")


class SessionTest(support.DaemonTest):
    def test_runs_a_model_of_bytes_of_a_file_and_of_a_token(self):
        x = np.linspace(-2, 2, 16, dtype=np.float32).reshape(1, 16)
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            file.write(tiny_onnx.relu())
            file.flush()
            for model in (tiny_onnx.relu(), file.name, bytearray(tiny_onnx.relu())):
                with rknnd.Session(model) as session:
                    np.testing.assert_array_equal(session.run({"x": x})["y"], np.maximum(x, 0))
                    other = rknnd.Session(session.token())
                    np.testing.assert_array_equal(other.run({"x": x})["y"], np.maximum(x, 0))

    def test_inputs_go_by_name_in_order_and_alone(self):
        left = np.arange(16, dtype=np.float32).reshape(2, 8)
        right = left[::-1] * 10  # not contiguous
        session = rknnd.Session(tiny_onnx.add())
        self.assertEqual([t.name for t in session.inputs], ["left", "right"])
        for feeds in ({"right": right, "left": left}, [left, right]):
            np.testing.assert_array_equal(session.run(feeds)["total"], left + right)
        one = rknnd.Session(tiny_onnx.relu())
        x = -np.ones((1, 16), np.float32)
        np.testing.assert_array_equal(one(x)["y"], np.zeros((1, 16)))
        x.flags.writeable = False
        np.testing.assert_array_equal(one(memoryview(x))["y"], np.zeros((1, 16)))

    def test_pictures_come_in_both_layouts(self):
        session = rknnd.Session(tiny_onnx.picture())
        self.assertEqual(session.inputs[0].shape, (1, 8, 10, 3))
        self.assertEqual(session.inputs[0].layout, "NHWC")
        image = np.random.default_rng(1).normal(size=(1, 8, 10, 3)).astype(np.float16)
        right = np.maximum(image, 0).transpose(0, 3, 1, 2).astype(np.float32)
        for array in (image, image[0], image.transpose(0, 3, 1, 2)):
            np.testing.assert_array_equal(session.run(array)["out"], right)
        # Where both fit, the caller says which.
        square = np.arange(27, dtype=np.float32).reshape(1, 3, 3, 3)
        cube = rknnd.Session(tiny_onnx.model(
            [("Relu", ["i"], ["o"])], [("i", (1, 3, 3, 3), np.float32)],
            [("o", (1, 3, 3, 3), np.float32)]))
        np.testing.assert_array_equal(cube.run(square, layout="nchw")["o"], square)
        np.testing.assert_array_equal(cube.run(square)["o"], square.transpose(0, 3, 1, 2))

    def test_integers_stay_integers(self):
        session = rknnd.Session(tiny_onnx.tokens())
        ids = np.array([[1, 2, 3, 1 << 40, -5, 6]], np.int64)
        answer = session.run(ids)["next"]
        self.assertEqual(answer.dtype, np.int64)
        np.testing.assert_array_equal(answer, ids + 1)

    def test_quantised_outputs_are_real_or_raw(self):
        session = rknnd.Session(DETECTOR)
        picture = np.random.default_rng(2).integers(0, 255, (144, 256, 3), dtype=np.uint8)
        real, raw = session.run(picture), session.run(picture, raw=True)
        for tensor in session.outputs:
            self.assertEqual(raw[tensor.name].dtype, np.int8)
            self.assertEqual(real[tensor.name].dtype, np.float32)
            np.testing.assert_allclose(
                real[tensor.name],
                (raw[tensor.name].astype(np.float32) - tensor.zero_point) * tensor.scale,
                rtol=1e-6)

    def test_a_dynamic_model_takes_its_shapes(self):
        session = rknnd.Session(tiny_onnx.listed())
        self.assertTrue(session.is_dynamic)
        self.assertEqual(len(session.shapes), 2)
        for side in (4, 8, 4):
            image = np.random.default_rng(side).normal(size=(1, side, side, 3))
            image = image.astype(np.float32)
            right = np.maximum(image, 0).transpose(0, 3, 1, 2)
            answer = session.run({"image": image})["out"]
            self.assertEqual(answer.shape, right.shape)
            np.testing.assert_allclose(answer, right, rtol=1e-3, atol=1e-3)
        with self.assertRaisesRegex(rknnd.InvalidArgument, "lists"):
            session.run(np.zeros((1, 5, 5, 3), np.float32))

    def test_duplicates_and_cores(self):
        x = -np.ones((1, 16), np.float32)
        first = rknnd.Session(tiny_onnx.relu(), core_mask=rknnd.CORE_0, priority="low")
        second = first.duplicate()
        second.set_core_mask(4)
        first.close()
        np.testing.assert_array_equal(second.run(x)["y"], np.zeros((1, 16)))
        self.assertEqual(second.last_run()["core"], 2)
        with self.assertRaises(rknnd.Closed):
            first.run(x)

    def test_a_batch_is_spread_over_cores(self):
        session = rknnd.Session(tiny_onnx.model(
            [("Relu", ["x"], ["y"])], [("x", (1, 16), np.float32)], [("y", (1, 16), np.float32)],
            options={"rknn.rknn_batch_size": "3"}))
        session.set_batch_cores(3)
        x = np.arange(48, dtype=np.float32).reshape(3, 16) - 20
        np.testing.assert_array_equal(session.run(x)["y"], np.maximum(x, 0))

    def test_reports_are_dictionaries(self):
        session = rknnd.Session(DETECTOR, perf=True)
        session.run(np.zeros((144, 256, 3), np.uint8))
        memory = session.memory()
        self.assertEqual(memory["total"], memory["weight"] + memory["internal"] + memory["io"])
        self.assertGreater(memory["weight"], 1000)
        self.assertGreater(session.daemon_memory()["weight"], 0)
        layers = session.layers()
        self.assertGreater(len(layers), 3)
        self.assertTrue(any(layer["time_ns"] > 0 for layer in layers))
        self.assertEqual(len(layers[0]["work_load"]), 3)
        self.assertEqual(len(session.kernels()), len(layers))
        self.assertGreater(session.last_run()["total_ns"], 0)
        self.assertGreater(session.copies()["to_device_inputs_set"], 0)
        self.assertIn("2.3.2", session.versions["api"])
        self.assertIn("OpType", session.perf_text())
        self.assertTrue(session.admit(1.0)["fits"])
        self.assertFalse(session.admit(1e6)["fits"])

    def test_custom_string(self):
        model = tiny_onnx.picture(options={"rknn.custom_string": "labels=a,b"})
        self.assertEqual(rknnd.Session(model).custom_string, "labels=a,b")


if __name__ == "__main__":
    unittest.main()
