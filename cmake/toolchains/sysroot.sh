#!/bin/sh
# The headers and libraries of another Debian architecture, for its cross
# compiler and for the emulator that runs its programs: Debian's packages,
# fetched by apt with lists and a state of its own and unpacked, never installed.
# The machine's packages stay as they are, and nothing here needs root. (With
# dpkg's own foreign architectures it would, and some -dev packages of two
# architectures exclude each other.)
#
#   sysroot.sh ARCH   makes build/sysroot-ARCH, unless it is there and made by
#                     this script for the same packages
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../.."
arch=${1:-}
folder=$PWD/build/sysroot-$arch

fail() {
  echo "sysroot: $1" >&2
  exit 1
}

# What building needs, without the tools: those are the machine's own. (CMake
# looks whether gRPC's plugin is there, though nothing starts this one.)
case $arch in
  arm64)
    packages=$(sed 's/#.*//' packaging/build-deps.txt | grep -e '-dev$' |
      grep -vx libclang-rt-14-dev)
    packages="$packages protobuf-compiler-grpc"
    ;;
  # What clients need. Debian has no oneDNN of 32 bits, and no board needs a
  # daemon of 32 bits.
  armhf)
    packages="libabsl-dev libnanopb-dev libssl-dev libcli11-dev zlib1g-dev
      nlohmann-json3-dev libjpeg-dev libpng-dev libgtest-dev libgmock-dev"
    ;;
  *) fail "no architecture '$arch': arm64, armhf" ;;
esac
packages="libc6-dev libstdc++-12-dev $packages"

stamp=$(echo "$packages" | cat - "$here/sysroot.sh" | sha256sum)
[ "$stamp" != "$(cat "$folder.stamp" 2>/dev/null)" ] || exit 0
command -v apt-get >/dev/null ||
  fail "there is no apt here: only Debian and its like can build for $arch"
rm -rf "$folder.stamp" "$folder" "$folder.apt"

# --- fetched -----------------------------------------------------------------

apt_folder=$folder.apt
mkdir -p "$apt_folder/lists/partial" "$apt_folder/cache/archives/partial"
: >"$apt_folder/status"
log=$apt_folder/log
private_apt() {
  apt-get -qq -y -o "APT::Architecture=$arch" -o "APT::Architectures=$arch" \
    -o "APT::Sandbox::User=$(id -un)" -o Acquire::Languages=none \
    -o "Dir::State::Lists=$apt_folder/lists" \
    -o "Dir::State::Status=$apt_folder/status" \
    -o "Dir::Cache=$apt_folder/cache" "$@" >>"$log" 2>&1
}
# One list of many may be missing for a moment; the others often do.
private_apt update ||
  echo "sysroot: not all package lists of $arch could be fetched" >&2
# shellcheck disable=SC2086 # one word a package
private_apt --no-install-recommends --download-only install $packages ||
  fail "the packages of $arch cannot be had (is the network there?): $(
    grep '^E:' "$log" | tail -n 1); see $log"

# --- unpacked ----------------------------------------------------------------

# /lib is a link, as in any Debian since 12.
mkdir -p "$folder/usr/lib" "$folder/usr/bin"
ln -s usr/lib "$folder/lib"
for deb in "$apt_folder"/cache/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$deb" |
    tar -x -C "$folder" --keep-directory-symlink --no-same-owner \
      --exclude=./usr/share/doc --exclude=./usr/share/locale \
      --exclude=./usr/share/man
done
# What dpkg-shlibdeps asks dpkg: whose a library is, and since which version of
# its package each symbol is there. The files are named as they lie here, where
# /lib is a link.
database=$folder/var/lib/dpkg
mkdir -p "$database/info" "$database/updates" "$database/triggers"
: >"$database/available"
echo 1 >"$database/info/format" # names of files as below
for deb in "$apt_folder"/cache/archives/*.deb; do
  name=$(dpkg-deb -f "$deb" Package)
  of=$(dpkg-deb -f "$deb" Architecture)
  info=$database/info/$name
  [ "$(dpkg-deb -f "$deb" Multi-Arch)" != same ] || info=$info:$of
  {
    dpkg-deb -f "$deb" Package Architecture Multi-Arch Version Source Maintainer \
      Provides Description | sed '/^Description:/q'
    echo "Status: install ok installed"
    echo
  } >>"$database/status"
  dpkg-deb --fsys-tarfile "$deb" | tar -t |
    sed -n "s|^\\./lib/|./usr/lib/|; s|^\\.\\(/.*[^/]\\)\$|$folder\\1|p" \
      >"$info.list"
  dpkg-deb -e "$deb" "$apt_folder/control"
  for kind in symbols shlibs; do
    [ ! -f "$apt_folder/control/$kind" ] ||
      cp "$apt_folder/control/$kind" "$info.$kind"
  done
  rm -rf "$apt_folder/control"
done
# A link to /lib/x is to stay in here.
find "$folder" -type l -lname '/*' -printf '%P %l\n' | while read -r link to; do
  ln -sfr "$folder$to" "$folder/$link"
done
rm -rf "$apt_folder"
echo "$stamp" >"$folder.stamp"
echo "sysroot: $folder, $(($(du -sk "$folder" | cut -f 1) / 1024)) MiB" >&2
