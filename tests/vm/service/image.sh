#!/bin/bash
# The disk of the guest with systemd: a small Debian 12 of real packages, with
# what ours depend on but not ours, and the memory disk that mounts it. Called by
# ./dev vm-test; kernel.sh made FOLDER/vmlinuz and FOLDER/modules. Needs root.
#
#   image.sh FOLDER DEB...   makes FOLDER/service.img and
#                            FOLDER/service-init.cpio, unless they are there,
#                            made by the same scripts for packages with the same
#                            dependencies
#
# FOLDER/arch says of which architecture. One that is not this machine's needs
# qemu-user-static, as the packages' own scripts run while the disk is made.
#
# Exit status: 3 when this is not root, and when Debian's packages cannot be had,
# which a caller may forgive.
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
here=$(cd "$(dirname "$0")" && pwd)
folder=$(cd "$1" && pwd)
shift

# The image is a sparse file: what is not used costs nothing.
disk_mib=1536

# systemd as process 1, devices with their rules, and what the scenario calls.
tools=(systemd-sysv udev kmod procps jq passwd)
# What the programs beside our packages need and these may not: pictures.
tools+=(libpng16-16 libjpeg62-turbo)

# shellcheck source=tests/vm/machine.sh
. "$here/../machine.sh"
machine_of "$folder" /dev/null

# Runs a command where the kernel starts programs of that architecture. What it
# is told for that is told by whoever runs this only for so long.
with_foreign_programs() {
  if [[ $arch == "$(dpkg --print-architecture)" ]]; then
    "$@"
    return
  fi
  # shellcheck disable=SC2016 # the inner shell's
  unshare --mount bash -euc '
    formats=/proc/sys/fs/binfmt_misc
    mount -t binfmt_misc none "$formats"
    if [[ ! -e $formats/qemu-aarch64 ]]; then
      cat /usr/lib/binfmt.d/qemu-aarch64.conf >"$formats/register"
      trap "echo -1 >$formats/qemu-aarch64" EXIT
    fi
    "$@"' bash "$@"
}

# --- what our packages depend on ---------------------------------------------

ours=$(for deb; do
  dpkg-deb -f "$deb" Package
  dpkg-deb -f "$deb" Provides | tr ',' '\n' | sed 's/[ (].*//'
done)
# The first of alternatives, without its version.
depends=$(for deb; do
  dpkg-deb -f "$deb" Pre-Depends Depends | sed 's/^[A-Za-z-]*: //'
done | tr ',' '\n' | sed 's/|.*//; s/(.*//; s/:any//; s/[[:space:]]//g; /^$/d' |
  sort -u | grep -vxF -e "$ours" || true)

stamp=$(cat "$here/image.sh" "$here/init" "$here/scenario.service" \
  "$here/../machine.sh" \
  "$folder/kernel.stamp" - <<<"$depends" | sha256sum)
if [[ $stamp == "$(cat "$folder/service.stamp" 2>/dev/null)" ]]; then
  exit 0
fi
rm -f "$folder/service.stamp"
if [[ $(id -u) != 0 ]]; then
  echo "vm: only root can make the disk of the guest with systemd" >&2
  exit 3
fi

# --- the disk ----------------------------------------------------------------

# shellcheck disable=SC2016 # apt's own
mirror=$(apt-get indextargets --format '$(SITE)' 'Codename: bookworm' |
  head -n 1)
root=$folder/service-root
log=$folder/service-image.log
trap 'rm -rf "$root"' EXIT
rm -rf "$root"
# Without the documents of Debian's packages; ours are installed later, whole.
# shellcheck disable=SC2016 # $1 is mmdebstrap's
if ! with_foreign_programs mmdebstrap --mode=root --variant=essential \
  --architectures="$arch" --skip=check/qemu \
  --include="$(tr ' ' , <<<"${tools[*]}")${depends:+,${depends//$'\n'/,}}" \
  --aptopt='Acquire::Languages "none"' \
  --aptopt='APT::Install-Recommends "false"' \
  --dpkgopt='force-unsafe-io' \
  --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-exclude=/usr/share/man/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --customize-hook='rm -f "$1"/etc/dpkg/dpkg.cfg.d/99mmdebstrap' \
  bookworm "$root" "${mirror:-http://deb.debian.org/debian}" \
  >"$log" 2>&1; then
  tail -n 5 "$log" >&2
  echo "vm: no Debian 12 for the guest with systemd could be made; see $log" >&2
  exit 3
fi

units=$root/etc/systemd/system
# Nobody logs in, nothing is to be done by the clock.
for unit in getty@tty1.service getty.target apt-daily.timer \
  apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
  e2scrub_reap.service fstrim.timer systemd-timesyncd.service \
  systemd-logind.service "serial-getty@$console.service" \
  proc-sys-fs-binfmt_misc.automount systemd-update-utmp.service \
  systemd-update-utmp-runlevel.service systemd-random-seed.service; do
  ln -sf /dev/null "$units/$unit"
done
sed "s/ttyS1/$output/" "$here/scenario.service" >"$units/scenario.service"
mkdir -p "$units/multi-user.target.wants"
ln -sf ../scenario.service "$units/multi-user.target.wants/scenario.service"
ln -sf /lib/systemd/system/multi-user.target "$units/default.target"
echo guest >"$root/etc/hostname"
: >"$root/etc/machine-id"
: >"$root/etc/fstab"

rm -f "$folder/service.img"
mkfs.ext4 -q -O '^has_journal' -m 0 -d "$root" "$folder/service.img" \
  "${disk_mib}M"

# --- the memory disk that finds it -------------------------------------------

rm -rf "$root"
mkdir -p "$root/bin" "$root/modules" "$root/dev" "$root/root"
cp "$here/init" "$root/init"
chmod 755 "$root/init"
cp "$folder/busybox" "$root/bin/busybox"
cat "$folder"/modules/{virtio_pci,virtio_blk,ext4}.order |
  awk '!seen[$0]++' | while read -r file; do
  cp "$folder/modules/$file" "$root/modules"
  echo "$file" >>"$root/modules/order"
done
(cd "$root" && find . | cpio -o -H newc --quiet) >"$folder/service-init.cpio"

echo "$stamp" >"$folder/service.stamp"
echo "vm: disk with systemd of" \
  "$(($(du -k "$folder/service.img" | cut -f 1) / 1024)) MiB" >&2
