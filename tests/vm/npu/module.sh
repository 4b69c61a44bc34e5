#!/bin/sh
# The stand-in for the NPU's driver as a module of the guests' kernel. Called by
# ./dev vm-test after kernel.sh, with its FOLDER; nothing is installed.
#
#   module.sh FOLDER   makes FOLDER/modules/rknpu_standin.ko, unless it is there
#                      and made of the same sources for the same kernel
#
# Exit status: 3 when there are no headers or no compiler of the kernel's, which
# a caller may forgive: the tests that need the module are left out.
set -eu
PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
folder=$(cd "$1" && pwd)
release=$(modinfo -F vermagic "$folder/modules/vgem.ko" | cut -d ' ' -f 1)
arch=$(cat "$folder/arch")
# Programs that the build runs are this machine's, as is the compiler.
host=$(dpkg --print-architecture)
case $arch in
  "$host") compiler=gcc-12 prefix='' ;;
  arm64) compiler=aarch64-linux-gnu-gcc prefix=aarch64-linux-gnu- ;;
  *) compiler=no-compiler-of-$arch prefix='' ;;
esac

stamp=$(cat "$here/rknpu_standin.c" "$here/standin.h" "$here/module.sh" |
  sha256sum)$release
if [ "$stamp" = "$(cat "$folder/module.stamp" 2>/dev/null)" ]; then
  exit 0
fi
rm -f "$folder/module.stamp" "$folder/modules/rknpu_standin.ko"

no_module() {
  echo "vm: no module for the NPU's tests: $1" >&2
  exit 3
}
for tool in "$compiler" make; do
  command -v "$tool" >/dev/null || no_module "there is no $tool"
done

# As kernel.sh: apt with lists and a state of its own.
headers=$folder/headers
if [ ! -d "$headers/usr/src/linux-headers-$release" ]; then
  rm -rf "$headers"
  apt_folder=$folder/apt-headers
  mkdir -p "$headers" "$apt_folder/lists/partial" \
    "$apt_folder/cache/archives/partial"
  : >"$apt_folder/status"
  # shellcheck disable=SC2016 # apt's own
  mirror=$(apt-get indextargets --format '$(SITE)' 'Codename: bookworm' |
    head -n 1)
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
    "${mirror:-http://deb.debian.org/debian} bookworm-backports main" \
    >"$apt_folder/sources.list"
  set -- -qq -o "APT::Architecture=$arch" -o "APT::Architectures=$arch,$host" \
    -o "APT::Sandbox::User=$(id -un)" -o Acquire::Languages=none \
    -o "Dir::Etc::SourceList=$apt_folder/sources.list" \
    -o Dir::Etc::SourceParts=/dev/null \
    -o "Dir::State::Lists=$apt_folder/lists" \
    -o "Dir::State::Status=$apt_folder/status" \
    -o "Dir::Cache=$apt_folder/cache"
  apt-get "$@" update || no_module "no package lists of bookworm-backports"
  short=${release%%-"$arch"*}
  for package in "linux-headers-$release" "linux-headers-$short-common" \
    "linux-kbuild-$short:$host"; do
    (cd "$apt_folder" && apt-get "$@" download "$package") ||
      no_module "cannot fetch $package"
  done
  for file in "$apt_folder"/*.deb; do
    dpkg-deb -x "$file" "$headers"
  done
  rm -rf "$apt_folder"
  # They name each other by where they would be installed.
  sed -i "s#/usr/src/#$headers/usr/src/#" \
    "$headers/usr/src/linux-headers-$release/Makefile"
fi

build=$folder/standin
rm -rf "$build"
mkdir "$build"
cp "$here/rknpu_standin.c" "$build"
{
  echo 'obj-m := rknpu_standin.o'
  echo "ccflags-y := -I$(cd "$here/../../.." && pwd)"
} >"$build/Kbuild"
# Types for tracers would need a further package.
make -s -C "$headers/usr/src/linux-headers-$release" "M=$build" \
  "ARCH=$([ "$arch" = arm64 ] && echo arm64 || echo x86)" \
  "CROSS_COMPILE=$prefix" "CC=$compiler" CONFIG_DEBUG_INFO_BTF_MODULES= \
  modules >"$build/log" 2>&1 || {
  cat "$build/log" >&2
  exit 1
}
"${prefix}strip" --strip-debug -o "$folder/modules/rknpu_standin.ko" \
  "$build/rknpu_standin.ko"
rm -rf "$build"
echo "$stamp" >"$folder/module.stamp"
