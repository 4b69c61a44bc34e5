# In the manner of a notebook: cell by cell in one namespace, some of them twice,
# an error in between, and no release at the end.
import ast
import sys

CELLS = '''
import numpy as np
from rknnlite.api import RKNNLite
# %%
rknn_lite = RKNNLite()
ret = rknn_lite.load_rknn(path)
ret
# %%
ret = rknn_lite.init_runtime(core_mask=RKNNLite.NPU_CORE_0)
ret
# %%
frame = np.ones((1, 8, 10, 3), np.uint8)
outputs = rknn_lite.inference(inputs=[frame])
outputs[0].shape
# %%
rknn_lite.inference(inputs=[frame[:, :2]])
# %%
rknn_lite = RKNNLite()
rknn_lite.load_rknn(path), rknn_lite.init_runtime(core_mask=RKNNLite.NPU_CORE_AUTO)
# %%
float(rknn_lite.inference([frame], None, "nhwc", None, False)[0].sum())
# %%
import rknnd
session = rknnd.Session(path)
float(session(frame)["out"].sum())
'''
space = {"path": sys.argv[1], "__name__": "__main__"}
told = []
cells = CELLS.split("# %%")
for cell in cells + cells[2:4]:
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<cell>", "exec"), space)
    told.append(eval(compile(ast.Expression(last.value), "<cell>", "eval"), space)
                if last else None)
print(told == [None, 0, 0, (1, 3, 8, 10), None, (0, 0), 240.0, 240.0, 0, (1, 3, 8, 10)], told)
print("ok")
