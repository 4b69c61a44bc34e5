#!/bin/sh
# The part of the test guest that stays the same between runs: the kernel
# (kernel.sh), and a memory disk with busybox and the modules. Called by
# ./dev vm-test; nothing here needs root, and nothing of it is installed.
#
#   image.sh FOLDER    makes FOLDER/vmlinuz and FOLDER/base.cpio, unless they are
#                      there and made of the same packages by the same scripts
#
# Exit status: 3 when no kernel can be fetched, which a caller may forgive.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)

"$here/kernel.sh" "$folder"
stamp=$(cat "$here/../../packaging/vm-deps.txt" "$here/init" "$here/image.sh" \
  "$folder/kernel.stamp" | sha256sum)
if [ "$stamp" = "$(cat "$folder/stamp" 2>/dev/null)" ]; then
  exit 0
fi
rm -f "$folder/stamp"

root=$folder/base
rm -rf "$root"
mkdir -p "$root/bin" "$root/modules" "$root/dev" "$root/proc" "$root/sys" \
  "$root/tmp" "$root/run" "$root/etc"
cp "$here/init" "$root/init"
chmod 755 "$root/init"
cp "$(command -v busybox)" "$root/bin/busybox"
echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
cat "$folder/modules/vgem.order" "$folder/modules/vivid.order" |
  awk '!seen[$0]++' | while read -r file; do
  cp "$folder/modules/$file" "$root/modules"
  echo "$file" >>"$root/modules/order"
done
(cd "$root" && find . | cpio -o -H newc --quiet) >"$folder/base.cpio"

rm -rf "$root"
echo "$stamp" >"$folder/stamp"
echo "vm: base disk of $(($(wc -c <"$folder/base.cpio") / 1048576)) MiB" >&2
