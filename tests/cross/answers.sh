#!/bin/sh
# answers.sh ARCH PROGRAM: a program of ARCH under qemu-user, in C and for the
# vendor's header, gets the stored answers of a network from a daemon of another
# process: of arm64 under qemu-user if that is built, else of this machine. Run by
# ctest; 77 where there is no daemon or no network.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
arch=$1
program=$2
# Addresses of 39 bits, as kernels of boards' vendors have them.
addresses="-R 0x8000000000"
case $arch in
  arm64) emulator="qemu-aarch64-static $addresses" ;;
  armhf) emulator=qemu-arm-static ;;
esac
model=${RKNND_SHARED:-$root/../shared}/models/mnist_8
if [ ! -f "$model/model.onnx" ]; then
  echo "skipped: there is no mnist_8: set RKNND_SHARED"
  exit 77
fi

folder=$(mktemp -d)
daemon=
trap '[ -z "$daemon" ] || kill "$daemon"; rm -rf "$folder"' EXIT
if [ -x "$root/build/arm64/bin/rknnd" ]; then
  whose=arm64
  # shellcheck disable=SC2086 # two words
  set -- qemu-aarch64-static $addresses -L "$root/build/sysroot-arm64" \
    "$root/build/arm64/bin/rknnd"
elif [ -x "${RKNND_DAEMON:=$root/build/release/bin/rknnd}" ]; then
  whose="this machine"
  set -- "$RKNND_DAEMON"
else
  echo "skipped: there is no daemon: run ./dev build, or ./dev cross arm64 -- rknnd"
  exit 77
fi
"$@" --socket "$folder/session.sock" --device soft --soc rk3588 --cache-dir '' \
  >"$folder/log" 2>&1 &
daemon=$!
while [ ! -S "$folder/session.sock" ]; do
  if ! kill -0 "$daemon" 2>/dev/null; then
    daemon=
    cat "$folder/log"
    exit 1
  fi
  sleep 0.1
done

RKNND_TARGET=unix:$folder/session.sock
export RKNND_TARGET
for memory in copy bound; do
  # shellcheck disable=SC2086 # a command and its options
  $emulator -L "$root/build/sysroot-$arch" "$program" "$model/model.onnx" \
    "$memory" fp32 nchw 1e-4 "$model/set_0/input_0.bin" : \
    "$model/set_0/output_0.bin"
done
echo "a program of $arch was answered by a daemon of $whose"
