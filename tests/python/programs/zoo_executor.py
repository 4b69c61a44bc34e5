# In the manner of the model zoo: an executor around RKNN, conversion first.
import sys

import numpy as np
from rknn.api import RKNN


class RKNN_model_container():
    def __init__(self, model_path, target=None, device_id=None) -> None:
        rknn = RKNN()
        rknn.load_rknn(model_path)
        print('--> Init runtime environment')
        if target == None:
            ret = rknn.init_runtime()
        else:
            ret = rknn.init_runtime(target=target, device_id=device_id)
        if ret != 0:
            print('Init runtime environment failed')
            exit(ret)
        print('done')
        self.rknn = rknn

    def run(self, inputs):
        if self.rknn is None:
            print("ERROR: rknn has been released")
            return []
        if isinstance(inputs, list) or isinstance(inputs, tuple):
            pass
        else:
            inputs = [inputs]
        result = self.rknn.inference(inputs=inputs)
        return result

    def release(self):
        self.rknn.release()
        self.rknn = None


def convert(model_path, output_path, platform='rk3588'):
    rknn = RKNN(verbose=False)
    print('--> Config model')
    rknn.config(mean_values=[[0, 0, 0]], std_values=[[255, 255, 255]], target_platform=platform)
    print('--> Loading model')
    ret = rknn.load_onnx(model=model_path)
    if ret != 0:
        print('Load model failed!')
        exit(ret)
    print('--> Building model')
    ret = rknn.build(do_quantization=False, dataset='./dataset.txt')
    if ret != 0:
        print('Build model failed!')
        exit(ret)
    print('--> Export rknn model')
    ret = rknn.export_rknn(output_path)
    if ret != 0:
        print('Export rknn model failed!')
        exit(ret)
    rknn.release()


if __name__ == '__main__':
    convert(sys.argv[1], sys.argv[1] + '.rknn')
    model = RKNN_model_container(sys.argv[1] + '.rknn', 'rk3588')
    kind = 'rknn' if 'rknn' in str(type(model.rknn)) else 'other'
    outputs = model.run([np.full((1, 8, 10, 3), 255, np.uint8)])
    model.release()
    print(kind, outputs[0].shape, outputs[0].dtype, float(outputs[0].max()))
    print('ok')
