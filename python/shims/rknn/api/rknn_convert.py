"""python -m rknn.api.rknn_convert: the vendor's converter as a command."""

import sys

from .not_here import not_in_this_version


def main():
    print(f"rknn_convert: {not_in_this_version('rknn_convert')}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
