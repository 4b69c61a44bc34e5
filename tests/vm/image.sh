#!/bin/sh
# The part of the test guest that stays the same between runs: Debian's own
# kernel of bookworm-backports (6.12 has udmabuf and the system dma-heap, 6.1
# has neither), and a memory disk with busybox and the modules. Called by
# ./dev vm-test; nothing here needs root, and nothing of it is installed.
#
#   image.sh FOLDER    makes FOLDER/vmlinuz and FOLDER/base.cpio, unless they are
#                      there and made of the same packages by the same script
#
# Exit status: 3 when no kernel can be fetched, which a caller may forgive.
set -eu
PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)

# A PRIME exporter of the kind that GPUs and displays are; a camera. udmabuf and
# the dma-heaps are built in.
modules="vgem vivid"

stamp=$(cat "$here/../../packaging/vm-deps.txt" "$here/init" "$here/image.sh" |
  sha256sum)
if [ "$stamp" = "$(cat "$folder/stamp" 2>/dev/null)" ]; then
  exit 0
fi
rm -f "$folder/stamp"

no_kernel() {
  echo "vm: $1" >&2
  exit 3
}

# --- the kernel's package ----------------------------------------------------

# apt with lists and a state of its own: the machine's configuration stays as it
# is, and needs no backports.
# shellcheck disable=SC2016 # apt's own
mirror=$(apt-get indextargets --format '$(SITE)' 'Codename: bookworm' |
  head -n 1)
apt_folder=$folder/apt
mkdir -p "$apt_folder/lists/partial" "$apt_folder/cache/archives/partial"
: >"$apt_folder/status"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
  "${mirror:-http://deb.debian.org/debian} bookworm-backports main" \
  >"$apt_folder/sources.list"

private_apt() {
  tool=$1
  shift
  "$tool" -qq -o APT::Architecture=amd64 -o APT::Architectures=amd64 \
    -o "APT::Sandbox::User=$(id -un)" -o Acquire::Languages=none \
    -o "Dir::Etc::SourceList=$apt_folder/sources.list" \
    -o Dir::Etc::SourceParts=/dev/null \
    -o "Dir::State::Lists=$apt_folder/lists" \
    -o "Dir::State::Status=$apt_folder/status" \
    -o "Dir::Cache=$apt_folder/cache" "$@"
}

private_apt apt-get update || no_kernel "no package lists of bookworm-backports"
package=$(private_apt apt-cache depends linux-image-amd64 |
  sed -n 's/^ *Depends: *//p' | head -n 1)
[ -n "$package" ] || no_kernel "bookworm-backports has no linux-image-amd64"
rm -rf "$apt_folder/kernel"
mkdir "$apt_folder/kernel"
(cd "$apt_folder/kernel" && private_apt apt-get download "$package") ||
  no_kernel "cannot fetch $package"
dpkg-deb -x "$apt_folder"/kernel/*.deb "$apt_folder/kernel"
release=$(basename "$apt_folder"/kernel/lib/modules/*)
depmod -b "$apt_folder/kernel" "$release"
cp "$apt_folder/kernel/boot/vmlinuz-$release" "$folder/vmlinuz"

# --- the memory disk ---------------------------------------------------------

root=$folder/base
rm -rf "$root"
mkdir -p "$root/bin" "$root/modules" "$root/dev" "$root/proc" "$root/sys" \
  "$root/tmp" "$root/run" "$root/etc"
cp "$here/init" "$root/init"
chmod 755 "$root/init"
cp "$(command -v busybox)" "$root/bin/busybox"
echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
# With what each needs, in the order to load them in.
for module in $modules; do
  modprobe -d "$apt_folder/kernel" -S "$release" --show-depends "$module"
done >"$apt_folder/insmods"
sed -n 's/^insmod \([^ ]*\).*/\1/p' "$apt_folder/insmods" |
  awk '!seen[$0]++' | while read -r file; do
  name=$(basename "$file")
  case $name in
    *.xz) xz -dc "$file" >"$root/modules/${name%.xz}" ;;
    *) cp "$file" "$root/modules/$name" ;;
  esac
  echo "${name%.xz}" >>"$root/modules/order"
done
(cd "$root" && find . | cpio -o -H newc --quiet) >"$folder/base.cpio"

rm -rf "$apt_folder" "$root"
echo "$stamp" >"$folder/stamp"
echo "vm: kernel $release, base disk of" \
  "$(($(wc -c <"$folder/base.cpio") / 1048576)) MiB" >&2
