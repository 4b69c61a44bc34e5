"""A program in another language: Python's ctypes over the shared library, with
structs written down as they are in rknn_api.h.

    ctypes_program.py LIBRARY MODEL
"""

import ctypes
import sys
from ctypes import c_char, c_float, c_int8, c_int32, c_uint8, c_uint32, c_uint64, c_void_p


class TensorAttr(ctypes.Structure):
    _fields_ = [
        ("index", c_uint32), ("n_dims", c_uint32), ("dims", c_uint32 * 16),
        ("name", c_char * 256), ("n_elems", c_uint32), ("size", c_uint32),
        ("fmt", c_int32), ("type", c_int32), ("qnt_type", c_int32), ("fl", c_int8),
        ("zp", c_int32), ("scale", c_float), ("w_stride", c_uint32),
        ("size_with_stride", c_uint32), ("pass_through", c_uint8),
        ("h_stride", c_uint32)]


class Input(ctypes.Structure):
    _fields_ = [("index", c_uint32), ("buf", c_void_p), ("size", c_uint32),
                ("pass_through", c_uint8), ("type", c_int32), ("fmt", c_int32)]


class Output(ctypes.Structure):
    _fields_ = [("want_float", c_uint8), ("is_prealloc", c_uint8),
                ("index", c_uint32), ("buf", c_void_p), ("size", c_uint32)]


def main():
    rknn = ctypes.CDLL(sys.argv[1])

    def check(name, *arguments):
        code = getattr(rknn, name)(*arguments)
        if code != 0:
            sys.exit(f"{name} gives {code}")

    with open(sys.argv[2], "rb") as file:
        model = file.read()
    context = c_uint64()
    check("rknn_init", ctypes.byref(context), model, c_uint32(len(model)), 0, None)
    attr = TensorAttr(index=0)
    check("rknn_query", context, 1, ctypes.byref(attr), ctypes.sizeof(attr))
    print(attr.name.decode(), list(attr.dims[:attr.n_dims]))
    picture = bytes(i * 31 % 251 for i in range(attr.n_elems))
    answers = []
    for _ in range(3):
        data = ctypes.create_string_buffer(picture, len(picture))
        given = Input(0, ctypes.cast(data, c_void_p), len(picture), 0, 3, 1)
        check("rknn_inputs_set", context, 1, ctypes.byref(given))
        check("rknn_run", context, None)
        got = Output(want_float=1)
        check("rknn_outputs_get", context, 1, ctypes.byref(got), None)
        answers.append(ctypes.string_at(got.buf, got.size))
        check("rknn_outputs_release", context, 1, ctypes.byref(got))
        if got.buf:
            sys.exit("a released output has a buffer")
    check("rknn_destroy", context)
    if len(set(answers)) != 1 or not any(answers[0]):
        sys.exit("the answers of equal runs are unlike, or zero")


main()
