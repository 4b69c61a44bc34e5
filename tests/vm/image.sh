#!/bin/sh
# The part of the test guest that stays the same between runs: a memory disk with
# busybox and the modules. Called by ./dev vm-test; kernel.sh made FOLDER/busybox
# and FOLDER/modules. Nothing here needs root, and nothing of it is installed.
#
#   image.sh FOLDER    makes FOLDER/base.cpio, unless it is there and made of the
#                      same kernel by the same scripts
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=$(cd "$1" && pwd)

stamp=$(cat "$here/init" "$here/image.sh" "$folder/kernel.stamp" | sha256sum)
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
cp "$folder/busybox" "$root/bin/busybox"
printf '%s\n' 'root:x:0:0:root:/:/bin/sh' 'nobody:x:65534:65534::/:/bin/false' \
  >"$root/etc/passwd"
printf '%s\n' 'root:x:0:' 'nogroup:x:65534:' >"$root/etc/group"
cat "$folder/modules/vgem.order" "$folder/modules/vivid.order" |
  awk '!seen[$0]++' | while read -r file; do
  cp "$folder/modules/$file" "$root/modules"
  echo "$file" >>"$root/modules/order"
done
(cd "$root" && find . | cpio -o -H newc --quiet) >"$folder/base.cpio"

rm -rf "$root"
echo "$stamp" >"$folder/stamp"
echo "vm: base disk of $(($(wc -c <"$folder/base.cpio") / 1048576)) MiB" >&2
