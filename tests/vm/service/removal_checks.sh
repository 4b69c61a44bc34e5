# shellcheck shell=bash
# The packages go. Sourced by scenario.sh.
# shellcheck disable=SC2154 # what checks.sh has

our_packages() {
  for deb in packages/*.deb; do
    dpkg-deb -f "$deb" Package
  done
}

removal_ends_all() {
  as camera rknnctl status >/dev/null
  # shellcheck disable=SC2046 # one word a package
  dpkg_does -r $(our_packages)
  expect_equal "daemons" "$(pgrep -x rknnd || true)" ""
  [[ ! -e /run/rknnd/session.sock ]] || fail "the socket is still there"
  [[ -e $config ]] || fail "removal without purge took the configuration"
  expect_equal "failed units" \
    "$(systemctl list-units --plain --no-legend --state=failed 'rknnd*')" ""
}

purge_leaves_nothing() {
  # shellcheck disable=SC2046
  dpkg_does -P $(our_packages)
  files_of_system >/tmp/files-after
  diff /tmp/files-before /tmp/files-after | sed 's/^/    /' || true
  cmp -s /tmp/files-before /tmp/files-after || fail "files differ"
  [[ ! -e /run/rknnd ]] || fail "/run/rknnd: $(ls -A /run/rknnd)"
}
