#!/bin/sh
# check_types.sh BASELINE LIBRARY: fails where a program that was compiled against
# BASELINE does not fit LIBRARY: a function is gone, or has other types. More
# functions are no change for it. Run by ctest; without abidiff (package
# abigail-tools) it ends with 77: skipped.
#
# A change that is meant, before the first release or together with a new soname
# (and so for build/arm64 and build/armhf):
#   abidw --exported-interfaces-only --drop-private-types --no-corpus-path \
#     --no-comp-dir-path --no-show-locs --headers-dir client/include \
#     build/release/lib/librknnrt.so | sed "s|path='$PWD/|path='|" \
#     >packaging/abi/librknnrt-amd64.abi
set -u
if grep -n "path='/" "$1"; then
  echo "$1 names a folder of whoever made it: see $0" >&2
  exit 1
fi
if ! command -v abidiff >/dev/null; then
  echo "skipped: abidiff is not installed (package abigail-tools)"
  exit 77
fi
compare() {
  abidiff --exported-interfaces-only --no-added-syms "$1" "$2"
}

compare "$1" "$2"
status=$?
# Bits: 1 error, 2 usage, 4 changed, 8 changed so that programs break.
if [ "$status" != 0 ]; then
  echo "abidiff ended with $status; see $0 for a change that is meant" >&2
  exit 1
fi

# It does see changes: of a struct that was larger, for one.
other=$(mktemp)
trap 'rm -f "$other"' EXIT
sed "s/\(name='rknnd_run_report' size-in-bits='\)[0-9]*/\14096/" "$1" >"$other"
if cmp -s "$1" "$other" || compare "$other" "$2" >/dev/null; then
  echo "abidiff sees no change where there is one: was the library built with -g?" >&2
  exit 1
fi
echo "no program that fitted has to be compiled again"
