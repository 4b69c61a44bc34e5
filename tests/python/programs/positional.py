# Every parameter of RKNNLite by its place, then by its name.
import sys

import numpy as np
from rknnlite.api import RKNNLite

frame = np.full((1, 8, 10, 3), 3, np.uint8)
one = RKNNLite(False, None)
assert one.load_rknn(sys.argv[1]) == 0
assert one.init_runtime(None, None, False, RKNNLite.NPU_CORE_1) == 0
first = one.inference([frame], None, ["nhwc"], [0], True)
assert len(first) == 2 and first[1] == 1
two = RKNNLite(verbose=False, verbose_file=None)
assert two.load_rknn(path=sys.argv[1]) == 0
assert two.init_runtime(target=None, device_id=None, async_mode=False,
                        core_mask=RKNNLite.NPU_CORE_ALL) == 0
second = two.inference(inputs=[frame], data_type=None, data_format=None,
                       inputs_pass_through=None, get_frame_id=False)
assert len(second) == 1
print(bool((first[0] == second[0]).all()))
one.release()
two.release()
print("ok")
