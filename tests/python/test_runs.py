"""Runs that are not waited for: in flight, in sets, with asyncio, from threads."""

import asyncio
import sys
import threading
import time
import unittest

import numpy as np

import support
import tiny_onnx

import rknnd


def feeds(number):
    return {"x": np.full((1, 16), number, np.float32)}


class RunsTest(support.DaemonTest):
    def test_many_in_flight_keep_their_own_answers(self):
        session = rknnd.Session(tiny_onnx.relu())
        runs = [session.submit(feeds(number)) for number in range(40)]
        for number, run in enumerate(runs):
            self.assertEqual(run.wait()["y"][0, 3], number)
            self.assertTrue(run.done())
            self.assertGreater(run.report["total_ns"], 0)
        self.assertEqual(runs[0].wait()["y"][0, 0], 0)  # once more

    def test_two_sets_by_turns(self):
        session = rknnd.Session(tiny_onnx.relu())
        sets = [session.bind(set=1), session.bind(set=2)]
        runs = [None, None]
        for number in range(20):
            turn = number % 2
            if runs[turn] is not None:
                self.assertEqual(runs[turn].wait()["y"][0, 0], number - 2)
            sets[turn].inputs["x"][:] = number
            runs[turn] = session.submit(binding=sets[turn])
        self.assertEqual(set(session.copies().values()), {0})

    def test_awaited(self):
        session = rknnd.Session(tiny_onnx.relu())

        async def main():
            before = threading.active_count()
            answers = await asyncio.gather(*(session.run_async(feeds(n)) for n in range(40)))
            self.assertEqual(threading.active_count(), before)
            return [answer["y"][0, 0] for answer in answers]

        for _ in range(2):  # in two event loops
            self.assertEqual(asyncio.run(main()), list(range(40)))

    def test_a_bound_set_is_awaited(self):
        session = rknnd.Session(tiny_onnx.relu())
        binding = session.bind(set=3)
        binding.inputs["x"][:] = 9

        async def main():
            return await session.run_async(binding=binding)

        self.assertEqual(asyncio.run(main())["y"][0, 0], 9)

    def test_errors_arrive_where_it_is_awaited(self):
        session = rknnd.Session(tiny_onnx.relu())

        async def main():
            with self.assertRaises(rknnd.InvalidArgument):
                await session.run_async({"x": np.zeros((2, 2), np.float32)})
            with self.assertRaises(rknnd.InvalidArgument):
                await session.run_async()
            self.assertEqual((await session.run_async(feeds(2)))["y"][0, 0], 2)
            session.close()
            with self.assertRaises(rknnd.Closed):
                await session.run_async(feeds(1))

        asyncio.run(main())

    def test_cancelled_tasks_leave_nothing(self):
        session = rknnd.Session(tiny_onnx.slow(), core_mask=1)
        x = np.ones((256, 256), np.float32)

        async def main():
            tasks = [asyncio.ensure_future(session.run_async({"x": x})) for _ in range(12)]
            await tasks[0]
            for task in tasks[1:]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return (await session.run_async({"x": x}))["y"][0, 0]

        self.assertAlmostEqual(asyncio.run(main()), 1, places=2)

    def test_runs_that_wait_can_be_taken_back(self):
        session = rknnd.Session(tiny_onnx.slow(), core_mask=1)
        x = np.ones((256, 256), np.float32)
        runs = [session.submit(x) for _ in range(7)]
        if runs[6].cancel():  # all but always: six are before it
            with self.assertRaises(rknnd.Cancelled):
                runs[6].wait()
        runs[6].cancel()
        with self.assertRaises(rknnd.Timeout):
            session.submit(x).wait(timeout=0.0001)
        self.assertEqual(runs[5].wait()["y"].shape, (256, 256))
        session.submit(x)
        left = session.submit(x)
        session.close()
        with self.assertRaises(rknnd.Closed):
            left.wait()

    def test_the_newest_frame_wins(self):
        session = rknnd.Session(tiny_onnx.slow(100), core_mask=1)
        x = np.ones((256, 256), np.float32)
        # From here on a submission makes no memory any more.
        for run in [session.submit(x) for _ in range(7)]:
            run.wait()
        session.set_queue("newest")
        runs = [session.submit(x) for _ in range(6)]
        ends = []
        for run in runs:
            try:
                run.wait()
                ends.append("done")
            except rknnd.Dropped:
                ends.append("dropped")
        self.assertEqual(ends[-1], "done")
        self.assertIn("dropped", ends)

    def test_threads_share_a_session(self):
        session = rknnd.Session(tiny_onnx.relu())
        wrong = []

        def work(number):
            for _ in range(50):
                if session.run(feeds(number))["y"][0, 5] != number:
                    wrong.append(number)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    def test_other_threads_go_on_while_one_waits(self):
        session = rknnd.Session(tiny_onnx.slow())
        x = np.ones((256, 256), np.float32)
        ends = threading.Event()
        counted = [0]

        def count():
            while not ends.is_set():
                counted[0] += 1
                time.sleep(0)  # gives the interpreter's lock back

        # Nobody is made to give it back: only a run that waits without it lets
        # the other thread count.
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(1000)
        counter = threading.Thread(target=count)
        counter.start()
        grown = 0
        # A busy machine may not give it a CPU during each of them.
        until = time.monotonic() + 30
        while grown < 5 and time.monotonic() < until:
            before = counted[0]
            session.run(x)
            grown += counted[0] > before
        ends.set()
        counter.join()
        self.assertEqual(grown, 5)

    def test_release_while_another_thread_runs(self):
        for _ in range(10):
            session = rknnd.Session(tiny_onnx.slow(4, 128))
            x = np.ones((128, 128), np.float32)
            ends = []

            def work():
                try:
                    while True:
                        session.run(x)
                except rknnd.Closed:
                    ends.append("closed")

            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            session.close()
            for thread in threads:
                thread.join()
            self.assertEqual(ends, ["closed"] * 3)


if __name__ == "__main__":
    unittest.main()
