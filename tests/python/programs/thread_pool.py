# In the manner of rknn-multi-threaded: one RKNNLite a core, a queue of futures,
# pictures without a batch.
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed  # noqa: F401
from queue import Queue

import numpy as np
from rknnlite.api import RKNNLite


def initRKNN(rknnModel="./rknnModel/yolov5s.rknn", id=0):
    rknn_lite = RKNNLite()
    ret = rknn_lite.load_rknn(rknnModel)
    if ret != 0:
        print("Load RKNN rknnModel failed")
        exit(ret)
    if id == 0:
        ret = rknn_lite.init_runtime(core_mask=RKNNLite.NPU_CORE_0)
    elif id == 1:
        ret = rknn_lite.init_runtime(core_mask=RKNNLite.NPU_CORE_1)
    elif id == 2:
        ret = rknn_lite.init_runtime(core_mask=RKNNLite.NPU_CORE_2)
    elif id == -1:
        ret = rknn_lite.init_runtime(core_mask=RKNNLite.NPU_CORE_0_1_2)
    else:
        ret = rknn_lite.init_runtime()
    if ret != 0:
        print("Init runtime environment failed")
        exit(ret)
    print(rknnModel, "\t\tdone")
    return rknn_lite


class rknnPoolExecutor():
    def __init__(self, rknnModel, TPEs, func):
        self.TPEs = TPEs
        self.queue = Queue()
        self.rknnPool = [initRKNN(rknnModel, i % 3) for i in range(TPEs)]
        self.pool = ThreadPoolExecutor(max_workers=TPEs)
        self.func = func
        self.num = 0

    def put(self, frame):
        self.queue.put(self.pool.submit(self.func, self.rknnPool[self.num % self.TPEs], frame))
        self.num += 1

    def get(self):
        if self.queue.empty():
            return None, False
        fut = self.queue.get()
        return fut.result(), True

    def release(self):
        self.pool.shutdown()
        for rknn_lite in self.rknnPool:
            rknn_lite.release()


def myFunc(rknn_lite, IMG):
    outputs = rknn_lite.inference(inputs=[IMG], data_format=['nhwc'])
    return int(outputs[0].reshape(-1)[0])


if __name__ == '__main__':
    pool = rknnPoolExecutor(sys.argv[1], 3, myFunc)
    got = []
    for frame in range(3):
        pool.put(np.full((8, 10, 3), frame, np.uint8))
    for frame in range(3, 30):
        pool.put(np.full((8, 10, 3), frame, np.uint8))
        answer, flag = pool.get()
        if flag == False:
            break
        got.append(answer)
    for _ in range(3):
        got.append(pool.get()[0])
    pool.release()
    print(got == list(range(30)))
    print('ok')
