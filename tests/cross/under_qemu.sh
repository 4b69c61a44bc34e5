#!/bin/sh
# under_qemu.sh ARCH COMMAND...: runs COMMAND where the kernel starts programs of
# ARCH (arm64, armhf) under qemu-user, with the libraries of build/sysroot-ARCH:
# those that a test starts too, which ctest's emulator does not see.
#
# The machine is left as it is: since Linux 6.7 a user namespace has formats of
# programs of its own. On older kernels root must have told the kernel (Debian's
# package qemu-user-static does so when it is installed).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
arch=$1
shift
case $arch in
  arm64) qemu="qemu-aarch64" ;;
  armhf) qemu="qemu-arm" ;;
  *)
    echo "under_qemu: no architecture '$arch': arm64, armhf" >&2
    exit 2
    ;;
esac
QEMU_LD_PREFIX=$here/../../build/sysroot-$arch
export QEMU_LD_PREFIX
formats=/proc/sys/fs/binfmt_misc
[ ! -e "$formats/$qemu" ] || exec "$@"

description=/usr/lib/binfmt.d/$qemu.conf
if [ ! -r "$description" ]; then
  echo "under_qemu: there is no $description: run apt-get install qemu-user-static" >&2
  exit 1
fi
# shellcheck disable=SC2016 # the inner shell's
exec unshare --user --map-root-user --mount sh -euc '
  formats=$1 description=$2 qemu=$3
  shift 3
  if ! { mount -t binfmt_misc none "$formats" &&
    cat "$description" >"$formats/register"; } 2>/dev/null; then
    echo "under_qemu: this kernel does not start programs under $qemu: run" \
      "systemctl restart systemd-binfmt as root" >&2
    exit 1
  fi
  exec "$@"' sh "$formats" "$description" "$qemu" "$@"
