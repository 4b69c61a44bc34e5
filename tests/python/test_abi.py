"""The module's structures are those of the C headers, to the byte, and every
function that it calls is in the library."""

import ctypes
import os
import shutil
import subprocess
import tempfile
import unittest

import support
from rknnd import _abi, _library

# Ours, the headers'.
_NAMES = {
    "InOutNum": "rknn_input_output_num", "TensorAttr": "rknn_tensor_attr",
    "InputRange": "rknn_input_range", "PerfDetail": "rknn_perf_detail",
    "PerfRun": "rknn_perf_run", "SdkVersion": "rknn_sdk_version", "MemSize": "rknn_mem_size",
    "CustomString": "rknn_custom_string", "TensorMem": "rknn_tensor_mem", "Input": "rknn_input",
    "Output": "rknn_output", "InitExtend": "rknn_init_extend", "RunExtend": "rknn_run_extend",
    "OutputExtend": "rknn_output_extend", "CopyCounters": "rknnd_copy_counters",
    "MemoryUse": "rknnd_memory", "BufferKey": "rknnd_buffer_key",
    "RunReport": "rknnd_run_report", "Layer": "rknnd_layer", "Kernel": "rknnd_kernel",
    "Token": "rknnd_token", "Plane": "rknnd_plane", "Frame": "rknnd_frame",
    "Placement": "rknnd_placement", "Completion": "rknnd_completion",
    "RunOptions": "rknnd_run_options", "QueuePolicy": "rknnd_queue_policy",
    "Stream": "rknnd_stream", "Admission": "rknnd_admission",
}


class AbiTest(unittest.TestCase):
    def test_every_structure_is_compared(self):
        ours = {name for name, value in vars(_abi).items()
                if isinstance(value, type) and issubclass(value, ctypes.Structure)}
        self.assertEqual(ours, set(_NAMES))

    def test_layouts_are_the_headers(self):
        compiler = shutil.which("cc") or shutil.which("gcc")
        if compiler is None:
            self.skipTest("there is no C compiler")
        rows = []
        for name, header in _NAMES.items():
            structure = getattr(_abi, name)
            rows.append(f'P({header}, {ctypes.sizeof(structure)});')
            for field, *_ in structure._fields_:
                place = getattr(structure, field)
                rows.append(f'F({header}, {field}, {place.offset}, {place.size});')
        code = ('#include <stddef.h>\n#include "rknnd.h"\n'
                '#define P(t, s) _Static_assert(sizeof(t) == s, #t)\n'
                '#define F(t, f, o, s) _Static_assert(offsetof(t, f) == o && '
                'sizeof(((t*)0)->f) == s, #t " " #f)\n' + "\n".join(rows) + "\n")
        with tempfile.TemporaryDirectory() as folder:
            source = os.path.join(folder, "layout.c")
            with open(source, "w") as file:
                file.write(code)
            done = subprocess.run(
                [compiler, "-std=c11", "-fsyntax-only",
                 "-I" + os.path.join(support.SOURCE, "client", "include"), source],
                capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_every_function_is_there(self):
        library = _library.library()
        for name, *_ in _library._PROTOTYPES:
            self.assertTrue(hasattr(library, name), name)


if __name__ == "__main__":
    unittest.main()
