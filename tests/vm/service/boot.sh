#!/bin/bash
# Boots the guest with systemd once and plays scenario.sh in it, with the
# packages and with newer ones of the same content. Called by ./dev vm-test;
# image.sh made the disk. The CPU is emulated: no /dev/kvm is needed, and the
# guest is ten times slower than the machine.
#
#   boot.sh FOLDER BUILD DEB...
#
# Exit status: 0 when all checks passed; 1 when one failed, and when the guest
# ended or hung before it could say so (its console is in
# FOLDER/service-console.log, its whole journal in FOLDER/service-output.log
# where a check failed).
set -euo pipefail
folder=$(cd "$1" && pwd)
build=$(cd "$2" && pwd -P)
shift 2
here=$(cd "$(dirname "$0")" && pwd)
source_root=$(cd "$here/../../.." && pwd)

# shellcheck source=tests/vm/machine.sh
. "$here/../machine.sh"
machine_of "$folder" "$folder/service-console.log"
memory_mib=1536
case $arch in
  amd64) limit_seconds=1200 ;;
  *) limit_seconds=2400 ;;
esac

# --- what the guest gets on its second disk -----------------------------------

payload=$folder/service-payload
trap 'rm -rf "$payload"' EXIT
rm -rf "$payload"
mkdir -p "$payload"/{bin,packages,newer}
cp "$here"/{scenario,checks,*_checks}.sh "$payload"
cp "$source_root/examples/detector/detector.onnx" "$payload"
for program in rknnd-demo tests/vm_frame_checker; do
  "$strip" --strip-debug -o "$payload/bin/${program##*/}" "$build/bin/$program"
done

# As an upgrade would bring it: all of the same source have the same version,
# and some depend on just that one.
newer_package() {
  local deb=$1 tree=$payload/tree version
  version=$(dpkg-deb -f "$deb" Version)
  rm -rf "$tree"
  dpkg-deb -R "$deb" "$tree"
  sed -i -e "s/^Version: .*/&+vm1/" \
    -e "/^\(Pre-\)\?Depends:/s/(= ${version//./\\.})/(= $version+vm1)/g" \
    "$tree/DEBIAN/control"
  dpkg-deb --root-owner-group -Znone -b "$tree" "$payload/newer" >/dev/null
  rm -rf "$tree"
}
for deb; do
  cp "$deb" "$payload/packages"
  newer_package "$deb"
done
tar -C "$payload" -cf "$folder/service-payload.tar" .

# --- one boot ----------------------------------------------------------------

begin=$SECONDS
status=0
# The disk's image stays as it is: what the guest writes goes to a file that
# ends with QEMU.
timeout --foreground "$limit_seconds" \
  "${machine[@]}" -accel tcg,thread=single \
  -smp 1 -m "$memory_mib" \
  -kernel "$folder/vmlinuz" -initrd "$folder/service-init.cpio" \
  -append "console=$console panic=-1 quiet mitigations=off \
systemd.show_status=0 systemd.journald.max_level_console=crit" \
  -drive "file=$folder/service.img,format=raw,if=none,id=root,snapshot=on,\
cache=unsafe" \
  -device virtio-blk-pci,drive=root \
  -drive "file=$folder/service-payload.tar,format=raw,if=none,id=payload,\
readonly=on" \
  -device virtio-blk-pci,drive=payload \
  </dev/null 2>"$folder/service-qemu.log" |
  tee "$folder/service-output.log" || status=$?
took=$((SECONDS - begin))

if ((status == 124)); then
  echo "vm: the guest did not end within $limit_seconds s" >&2
  exit 1
fi
verdict=$(sed -n 's/^vm: status \([0-9]*\)$/\1/p' \
  "$folder/service-output.log" | tail -n 1)
if [[ -z $verdict ]]; then
  echo "vm: the guest ended without a result; its console said:" >&2
  cat "$folder/service-qemu.log" >&2
  tail -n 20 "$folder/service-console.log" >&2
  exit 1
fi
passed=$(grep -c '^\[       OK \]' "$folder/service-output.log" || true)
echo "vm: service: $passed passed, status $verdict, $took s with the boot"
exit "$((verdict != 0))"
