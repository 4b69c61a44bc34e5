"""Memory: views that outlive it, descriptors, frames, and runs without a copy."""

import gc
import mmap
import os
import socket
import unittest

import numpy as np

import support
import tiny_onnx

import rknnd


class MemoryTest(support.DaemonTest):
    def test_views_share_bytes_and_outlive_it(self):
        memory = rknnd.Memory(4096)
        numbers = memory.array((2, 8), np.float32, offset=64)
        numbers[:] = 7
        self.assertEqual(memory.array(1, np.float32, 64)[0], 7)
        self.assertEqual(len(memory.buffer), 4096)
        self.assertEqual(np.asarray(memory).nbytes, 4096)
        self.assertEqual(np.from_dlpack(memory)[64:68].view(np.float32)[0], 7)
        memory.close()
        gc.collect()
        numbers += 1  # not a fault: the view holds it
        self.assertEqual(numbers[1, 7], 8)
        with self.assertRaises(rknnd.Closed):
            memory.array()
        with self.assertRaises(rknnd.Closed):
            memory.fd

    def test_is_freed_with_its_last_view(self):
        before = support.descriptors()
        memory = rknnd.Memory(1 << 20)
        view = memory.array()
        memory.close()
        self.assertEqual(support.descriptors(), before + 1)
        del view
        self.assertEqual(support.descriptors(), before)

    def test_cpu_bracket(self):
        with rknnd.Memory(1024, cacheable=False) as memory:
            with memory.cpu(write=True, shape=16, dtype=np.int32) as array:
                array[:] = np.arange(16)
            with memory.cpu() as array:
                self.assertEqual(array.view(np.int32)[15], 15)

    def test_a_descriptor_becomes_memory(self):
        session = rknnd.Session(tiny_onnx.relu())
        x = np.linspace(-1, 1, 16, dtype=np.float32).reshape(1, 16)
        fd = os.memfd_create("frame", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(fd, bytes(4096) + x.tobytes() + bytes(4096 - x.nbytes))
        import fcntl
        fcntl.fcntl(fd, 1033, 0x2)  # F_ADD_SEALS, F_SEAL_SHRINK
        memory = rknnd.Memory.from_fd(session, fd, x.nbytes, 4096)
        os.close(fd)
        session.bind({"x": (memory, np.float32)}, {"y": np.float32})
        np.testing.assert_array_equal(session.run()["y"], np.maximum(x, 0))
        self.assertEqual(session.copies()["to_device_inputs_set"], 0)

    def test_a_descriptor_for_reading_gives_views_for_reading(self):
        session = rknnd.Session(tiny_onnx.relu())
        fd = os.memfd_create("frame", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, mmap.PAGESIZE)
        import fcntl
        fcntl.fcntl(fd, 1033, 0x2)
        reading = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
        memory = rknnd.Memory.from_fd(session, reading, mmap.PAGESIZE)
        with self.assertRaises(ValueError):
            memory.array()[0] = 1
        with self.assertRaises(TypeError):
            memory.buffer[0] = 1
        os.close(fd)
        os.close(reading)

    def test_garbage_descriptors_are_refused(self):
        session = rknnd.Session(tiny_onnx.relu())
        one, other = socket.socketpair()
        closed = os.open("/dev/null", os.O_RDONLY)
        os.close(closed)
        with open("/dev/null") as null, open(__file__) as text:
            for fd in (-1, 1 << 40, closed, one.fileno(), null.fileno(), text.fileno(), "1", 1.5):
                with self.assertRaises(rknnd.Error, msg=repr(fd)):
                    rknnd.Memory.from_fd(session, fd, 64)
        one.close()
        other.close()
        for size in (0, -1, 1 << 40, 1.5, "8"):
            with self.assertRaises(rknnd.InvalidArgument):
                rknnd.Memory(size)
        memory = rknnd.Memory(64)
        for arguments in (((65,),), ((-1,),), ((4, 8), np.int64), ((1,), np.uint8, 65),
                          ((1,), np.uint8, -1), ((1,), object)):
            with self.assertRaises(rknnd.InvalidArgument, msg=repr(arguments)):
                memory.array(*arguments)

    def test_bound_runs_copy_nothing(self):
        session = rknnd.Session(tiny_onnx.relu())
        binding = session.bind()
        self.assertEqual(set(binding.memories), {"in:x", "out:y"})
        for value in (1, -1, 3):
            binding.inputs["x"][:] = value
            answer = session.run()
            self.assertIs(answer["y"], binding.outputs["y"])
            self.assertEqual(answer["y"][0, 0], max(value, 0))
        self.assertEqual(set(session.copies().values()), {0})
        # Arrays given to a bound session go into the bound memory.
        session.run({"x": np.full((1, 16), 5, binding.inputs["x"].dtype)})
        self.assertEqual(binding.outputs["y"][0, 0], 5)

    def test_a_frame_stands_for_a_picture(self):
        session = rknnd.Session(tiny_onnx.picture(8))
        pixels = np.random.default_rng(3).integers(0, 255, (8, 10, 3), dtype=np.uint8)
        memory = rknnd.Memory(8 * 64)
        memory.array((8, 64))[:, :30] = pixels.reshape(8, 30)
        frame = rknnd.Frame.rgb(memory, 10, 8, stride=64)
        np.testing.assert_array_equal(session.run({"image": frame})["out"],
                                      session.run(pixels)["out"])
        place = session.set_frame("image", rknnd.Frame.rgb(memory, 10, 8, stride=64,
                                                           crop=(0, 0, 4, 8), fit="letterbox"))
        self.assertEqual((place.y, place.height, place.width), (0, 8, 4))
        grey = rknnd.Memory(20 * 8 * 3)
        grey.array()[:] = 128
        grey.array((8, 20))[:] = 126  # Y: (126 - 16) * 255 / 219 is 128
        nv12 = rknnd.Frame.nv12(grey, 10, 8, stride=20, rows=8)
        answer = session.run({"image": nv12})["out"]
        self.assertTrue(np.all(np.abs(answer - 128) <= 1), answer)
        for wrong in (rknnd.Frame("yuyv", 8, 8, ()), rknnd.Frame.rgb(memory, 10, 800),
                      rknnd.Frame.rgb(memory, -1, 8), rknnd.Frame("rgb888", 10, 8, ()),
                      rknnd.Frame.rgb(memory, 10, 8, crop=(9, 9, 9, 9)),
                      rknnd.Frame.rgb(memory, 10, 8, fit="some")):
            with self.assertRaises(rknnd.Error, msg=repr(wrong)):
                session.run({"image": wrong})

    def test_a_key_names_it_for_others(self):
        session = rknnd.Session(tiny_onnx.relu())
        key = rknnd.Memory(4096).key(session)
        self.assertEqual((len(key["key"]), key["size"]), (32, 4096))


if __name__ == "__main__":
    unittest.main()
