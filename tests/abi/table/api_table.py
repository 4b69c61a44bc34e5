"""The table of docs/api.md: each function, flag and query of the public headers with
the tests and programs that use it, found by reading them. What nobody uses has no
state, so the table cannot promise it.

    api_table.py SOURCES            compares the table with docs/api.md
    api_table.py SOURCES --write    writes it there
"""

import glob
import os
import re
import sys

BEGIN, END = "<!-- begin: made by tests/abi/table/api_table.py -->", "<!-- end -->"
HEADERS = ("rknn_api.h", "rknn_matmul_api.h", "rknn_custom_op.h")
# Of those that use a name, the first of each is shown: who uses it best comes first.
PROGRAMS = ("tests/programs/*.c", "tests/programs/*.py", "examples/memory/*.c",
            "tests/integration/programs/*.c", "tests/integration/programs/*.cc")
TESTS = ("client/rknnrt/api/*_test.cc", "client/rknnrt/*_test.cc",
         "tests/integration/*/*_test.cc")
# Tests that show how something fails; only where no other uses it.
_FAILURE = re.compile("Refuse|Error|Wrong|Impossible|Dead|NotSupported|Lacks|Fails|CanOnly")

# What works only in part, or where something is there. What is not here works as
# the vendor's documents say.
LIMITS = {
    "rknn_create_mem_from_phys": "works for addresses in memory that programs "
        "have already given ([tensors-and-frames.md](tensors-and-frames.md))",
    "rknn_create_mem_from_mb_blk": "works in a process that has the library of the "
        "media process platform, else NULL with the reason",
    "rknn_set_input_shape": "works for models of one input; deprecated",
    "rknn_set_batch_core_num": "works for models with a batch, on SoCs of several "
        "cores",
    "RKNN_TARGET_TYPE_GPU": "works where there is an OpenCL driver, else an error "
        "says so ([custom-operators.md](custom-operators.md))",
    "RKNN_FLAG_EXECUTE_FALLBACK_PRIOR_DEVICE_GPU": "accepted without effect: "
        "rknnd's own operators use no GPU",
    "RKNN_FLAG_DISABLE_PROC_HIGH_PRIORITY": "accepted without effect: rknnd never "
        "changes a program's priority",
}

KINDS = (
    ("Functions", r"^(?:\w+[ *]+)+(rknn_\w+)\(", None),
    ("Flags of `rknn_init`", r"^#define (RKNN_FLAG_\w+)", None),
    ("Queries", r"^\s+(RKNN_QUERY_\w+) =", "RKNN_QUERY_CMD_MAX"),
    ("Cores", r"^\s+(RKNN_NPU_CORE_\w+) =", "RKNN_NPU_CORE_UNDEFINED"),
    ("Flags of `rknn_create_mem2`",
     r"^\s*(?:#define )?(RKNN_(?:FLAG_MEMORY|MEM_FLAG)_\w+)", None),
    ("Directions of `rknn_mem_sync`", r"^\s+(RKNN_MEMORY_SYNC_\w+)", None),
    ("Targets of custom operators", r"^\s+(RKNN_TARGET_TYPE_\w+)",
     "RKNN_TARGET_TYPE_MAX"),
)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def programs(root):
    """The path of each and the words in it."""
    for pattern in PROGRAMS:
        for path in sorted(glob.glob(os.path.join(root, pattern))):
            yield os.path.relpath(path, root), set(re.findall(r"\w+", read(path)))


def tests(root):
    """The name of each and the words in it; those of failures come last."""
    found = []
    for pattern in TESTS:
        # By name, so that the table stays when a test moves to another folder.
        for path in sorted(glob.glob(os.path.join(root, pattern)), key=os.path.basename):
            parts = re.split(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", read(path), flags=re.M)
            for suite, case, body in zip(parts[1::3], parts[2::3], parts[3::3]):
                found.append((f"{suite}.{case}", set(re.findall(r"\w+", body))))
    return sorted(found, key=lambda test: bool(_FAILURE.search(test[0])))


def table(root):
    """The lines, and the names that nobody uses."""
    text = "\n".join(read(os.path.join(root, "client/include", name)) for name in HEADERS)
    users = (list(programs(root)), list(tests(root)))
    lines, unused = [], []
    for title, pattern, end in KINDS:
        lines += ["", f"| {title} | state | shown by |", "|---|---|---|"]
        for name in dict.fromkeys(re.findall(pattern, text, flags=re.M)):
            if name == end:
                continue
            shown = [next((where for where, words in kind if name in words), None)
                     for kind in users]
            shown = [f"`{where}`" for where in shown if where]
            if not shown:
                unused.append(name)
            lines.append(f"| `{name}` | {LIMITS.get(name, 'works')} | {', '.join(shown)} |")
    return lines + [""], unused


def main():
    root = sys.argv[1]
    page = os.path.join(root, "docs/api.md")
    lines, unused = table(root)
    if unused:
        sys.exit("no test and no program uses " + ", ".join(unused))
    before, _, rest = read(page).partition(BEGIN)
    _, _, after = rest.partition(END)
    made = before + BEGIN + "\n" + "\n".join(lines) + END + after
    if sys.argv[2:] == ["--write"]:
        with open(page, "w", encoding="utf-8") as file:
            file.write(made)
    elif made != read(page):
        sys.exit("docs/api.md does not have the table of today's tests: "
                 "python3 tests/abi/table/api_table.py . --write")


main()
