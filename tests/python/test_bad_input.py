"""Wrong arguments: the documented exception, and the daemon has nothing left."""

import os
import unittest

import numpy as np

import support
import tiny_onnx

import rknnd


class BadInputTest(support.DaemonTest):
    def setUp(self):
        self.session = rknnd.Session(tiny_onnx.relu())

    def refused(self, words, *arguments, **options):
        with self.assertRaisesRegex(rknnd.InvalidArgument, words):
            self.session.run(*arguments, **options)
        # It goes on.
        x = np.ones((1, 16), np.float32)
        self.assertEqual(self.session.run(x)["y"][0, 0], 1)

    def test_shapes(self):
        for shape in ((), (16, 1), (17,), (2, 16), (1, 1, 16), (0, 16), (1, 16, 1, 1)):
            self.refused("shape", {"x": np.zeros(shape, np.float32)})

    def test_types(self):
        for dtype in (np.float64, np.complex64, object, "U3", "S2", "M8[s]", ">f4",
                      [("a", np.float32)]):
            self.refused("dtype", {"x": np.zeros((1, 16), dtype)})
        self.refused("dtype|shape", {"x": None})
        self.refused("dtype|shape", {"x": "text"})
        self.refused("dtype|shape", {"x": [[1.5] * 16]})  # Python's floats are float64
        self.refused("array", {"x": [[1], [2, 3]]})

    def test_names_and_numbers(self):
        x = np.zeros((1, 16), np.float32)
        self.refused("no input", {"y": x})
        self.refused("no input", {7: x})
        self.refused("2 arrays", [x, x])
        self.refused("NHWC", x, layout="hwc")
        for timeout in (0, -1, float("nan"), float("inf"), "1"):
            self.refused("seconds", x, timeout=timeout)
        for arguments in ({"frame_id": -1}, {"frame_id": 1 << 64}, {"deadline": -1},
                          {"timeout": "x"}):
            with self.assertRaises(rknnd.InvalidArgument, msg=repr(arguments)):
                self.session.submit(x, **arguments)
        with self.assertRaisesRegex(rknnd.InvalidArgument, "bind"):
            self.session.run()
        for arguments in ({"set": 8}, {"set": -1}, {"inputs": {"z": np.float32}},
                          {"inputs": {"x": "nonsense"}}, {"inputs": {"x": np.complex64}},
                          {"inputs": {"x": rknnd.Memory(4)}}, {"outputs": {"y": np.int64}}):
            with self.assertRaises(rknnd.InvalidArgument, msg=repr(arguments)):
                rknnd.Session(tiny_onnx.relu()).bind(**arguments)
        for mask in (-1, 8, 1 << 40, "core", 1.5):
            with self.assertRaises(rknnd.Error, msg=repr(mask)):
                rknnd.Session(tiny_onnx.relu(), core_mask=mask)
        with self.assertRaises(rknnd.InvalidArgument):
            rknnd.Session(tiny_onnx.relu(), priority="highest")
        for rate in (float("nan"), -1, float("inf"), "x"):
            with self.assertRaises(rknnd.InvalidArgument, msg=repr(rate)):
                self.session.admit(rate)

    def test_models_that_are_none(self):
        for model in (b"not a model", b"RKNN" + os.urandom(200), os.urandom(4096),
                      tiny_onnx.relu()[:-9]):
            with self.assertRaises(rknnd.ModelError):
                rknnd.Session(model)
        for model, kind in ((b"", rknnd.InvalidArgument), (None, rknnd.InvalidArgument),
                            (7, rknnd.InvalidArgument), ("/no/such.onnx", rknnd.ModelError),
                            ("a\0b", rknnd.InvalidArgument),
                            (rknnd.Token("rknnd1-rubbish"), rknnd.InvalidArgument),
                            (rknnd.Token("x" * 400), rknnd.InvalidArgument)):
            with self.assertRaises(kind, msg=repr(model)):
                rknnd.Session(model)
        with self.assertRaisesRegex(rknnd.Error, "mean|std|number|finite|nan"):
            rknnd.Session(tiny_onnx.picture(options={"rknn.std_values": "[[.nan, 1, 1]]"}))

    def test_a_process_has_one_target(self):
        with self.assertRaisesRegex(rknnd.InvalidArgument, "one target"):
            rknnd.Session(tiny_onnx.relu(), target="unix:/elsewhere")
        out, _ = support.run_python(
            "import rknnd, tiny_onnx, sys\n"
            "for target in ('nonsense', 'unix:/no/such.sock', 'tcp://'):\n"
            "    try:\n"
            "        rknnd.Session(tiny_onnx.relu(), target=target)\n"
            "    except (rknnd.InvalidArgument, rknnd.Unavailable):\n"
            "        print('refused')\n"
            "print(rknnd.Session(tiny_onnx.relu(), target=sys.argv[1]).inputs[0].name)\n",
            self.daemon.target, environment={"RKNND_TARGET": ""})
        self.assertEqual(out.split(), ["refused"] * 3 + ["x"])

    def test_a_closed_session(self):
        session = self.session
        binding = session.bind(set=1)
        run = session.submit(binding=binding)
        session.close()
        session.close()
        x = np.zeros((1, 16), np.float32)
        for call in (lambda: session.run(x), session.run, lambda: session.submit(x),
                     session.duplicate, session.token, session.memory, session.layers,
                     session.copies, session.last_run, session.bind,
                     lambda: session.set_core_mask(1), lambda: session.__enter__(),
                     lambda: session.versions, lambda: session.submit(binding=binding)):
            with self.assertRaises(rknnd.Closed):
                call()
        binding.inputs["x"][:] = 1  # its arrays stay
        try:
            run.wait()
        except rknnd.Error:
            pass
        self.session = rknnd.Session(tiny_onnx.relu())

    def tearDown(self):
        self.session.close()
        super().tearDown()
        self.assertTrue(support.eventually(
            lambda: all(row["pid"] != os.getpid() for row in rknnd.contexts()
                        if "pid" in row) and self.own_contexts() == 0),
            "contexts are left in the daemon")

    def own_contexts(self):
        return sum(row["contexts"] for row in rknnd.sessions() if row["pid"] == os.getpid())


if __name__ == "__main__":
    unittest.main()
