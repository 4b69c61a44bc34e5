#!/bin/sh
# The kernel of the test guests: Debian's own of bookworm-backports (6.12 has
# udmabuf and the system dma-heap, 6.1 has neither), and a busybox for its CPU,
# fetched by apt and unpacked, never installed. Called by ./dev vm-test; needs no
# root.
#
#   kernel.sh FOLDER KERNEL
#                      KERNEL is amd64, arm64 or arm64-16k (pages of 16 KiB);
#                      makes, unless they are there and made by the same script,
#                        FOLDER/arch        amd64 or arm64
#                        FOLDER/vmlinuz
#                        FOLDER/busybox
#                        FOLDER/modules/*.ko      what guests load, and what
#                                                 that needs
#                        FOLDER/modules/M.order   the files of module M, in the
#                                                 order to load them in
#
# Exit status: 3 when no kernel can be fetched, which a caller may forgive.
set -eu
PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)

# A PRIME exporter of the kind that GPUs and displays are; a camera; a disk with
# a file system. udmabuf and the dma-heaps are built in.
modules="vgem vivid virtio_pci virtio_blk ext4"
kernel=$2
arch=${kernel%%-*}

stamp=$(echo "$kernel" | cat - "$here/kernel.sh" | sha256sum)
if [ "$stamp" = "$(cat "$folder/kernel.stamp" 2>/dev/null)" ]; then
  exit 0
fi
rm -rf "$folder/kernel.stamp" "$folder/modules"

no_kernel() {
  echo "vm: $1" >&2
  exit 3
}

# apt with lists and a state of its own: the machine's configuration stays as it
# is, and needs no backports.
# shellcheck disable=SC2016 # apt's own
mirror=$(apt-get indextargets --format '$(SITE)' 'Codename: bookworm' |
  head -n 1)
apt_folder=$folder/apt
mkdir -p "$apt_folder/lists/partial" "$apt_folder/cache/archives/partial"
: >"$apt_folder/status"
for suite in bookworm bookworm-backports; do
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
    "${mirror:-http://deb.debian.org/debian} $suite main"
done >"$apt_folder/sources.list"

private_apt() {
  tool=$1
  shift
  "$tool" -qq -o "APT::Architecture=$arch" -o "APT::Architectures=$arch" \
    -o "APT::Sandbox::User=$(id -un)" -o Acquire::Languages=none \
    -o "Dir::Etc::SourceList=$apt_folder/sources.list" \
    -o Dir::Etc::SourceParts=/dev/null \
    -o "Dir::State::Lists=$apt_folder/lists" \
    -o "Dir::State::Status=$apt_folder/status" \
    -o "Dir::Cache=$apt_folder/cache" "$@"
}

private_apt apt-get update || no_kernel "no package lists of bookworm-backports"
package=$(private_apt apt-cache depends -t bookworm-backports \
  "linux-image-$kernel" | sed -n 's/^ *Depends: *//p' | head -n 1)
[ -n "$package" ] || no_kernel "bookworm-backports has no linux-image-$kernel"
rm -rf "$apt_folder/kernel"
mkdir "$apt_folder/kernel"
(cd "$apt_folder/kernel" &&
  private_apt apt-get download "$package" busybox-static) ||
  no_kernel "cannot fetch $package and busybox-static"
for deb in "$apt_folder"/kernel/*.deb; do
  dpkg-deb -x "$deb" "$apt_folder/kernel"
done
cp "$apt_folder/kernel/bin/busybox" "$folder/busybox"
release=$(basename "$apt_folder"/kernel/lib/modules/*)
depmod -b "$apt_folder/kernel" "$release"
cp "$apt_folder/kernel/boot/vmlinuz-$release" "$folder/vmlinuz"

mkdir "$folder/modules"
for module in $modules; do
  modprobe -d "$apt_folder/kernel" -S "$release" --show-depends "$module" \
    >"$apt_folder/insmods"
  # Nothing is to be loaded of what is built in.
  : >"$folder/modules/$module.order"
  sed -n 's/^insmod \([^ ]*\).*/\1/p' "$apt_folder/insmods" |
    while read -r file; do
      name=$(basename "$file")
      case $name in
        *.xz) xz -dc "$file" >"$folder/modules/${name%.xz}" ;;
        *) cp "$file" "$folder/modules/$name" ;;
      esac
      echo "${name%.xz}" >>"$folder/modules/$module.order"
    done
done

rm -rf "$apt_folder"
echo "$arch" >"$folder/arch"
echo "$stamp" >"$folder/kernel.stamp"
echo "vm: kernel $release" >&2
