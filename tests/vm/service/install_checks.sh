# shellcheck shell=bash
# The packages come in. Sourced by scenario.sh.
# shellcheck disable=SC2154 # what checks.sh has

# Quietly, unless it fails.
dpkg_does() {
  dpkg "$@" >/tmp/dpkg.log 2>&1 || fail "dpkg $*: $(cat /tmp/dpkg.log)"
}

# All that packages may leave behind, but what dpkg and systemd keep for
# themselves, and users: Debian does not delete these.
files_of_system() {
  find /etc /usr /var -xdev \
    ! -path '/var/lib/dpkg/*' ! -path '/var/log/*' ! -path '/var/tmp/*' \
    ! -path '/var/cache/man*' ! -path '/var/lib/systemd/*' \
    ! -path '/etc/ld.so.cache' ! -path '/var/cache/ldconfig/*' \
    ! -regex '/etc/\(passwd\|group\|shadow\|gshadow\|subuid\|subgid\).*' \
    ! -name '.pwd.lock' | sort
}

packages_install() {
  dpkg_does -i packages/*.deb
  grep -iE 'warning|error' /tmp/dpkg.log | sed 's/^/    /' || true
  dpkg --audit
  expect_equal "broken packages" "$(dpkg --audit)" ""
}

# An emulated CPU takes ten times as long for a job: more than a job may take.
configuration_is_as_shipped_but_for_the_slow_guest() {
  sed -i 's/^#hang = .*/hang = 60.0/' "$config"
  expect_contains "the file" "$(cat "$config")" '^hang = 60\.0$'
  expect_equal "lines of it" "$(/usr/sbin/rknnd --check-config 2>&1)" \
    "rknnd: '$config' is good"
}

nothing_runs_but_the_sockets_listen() {
  expect_equal "rknnd.socket" "$(systemctl is-active rknnd.socket)" active
  expect_equal "rknnd-admin.socket" \
    "$(systemctl is-active rknnd-admin.socket)" active
  expect_equal "session.sock" \
    "$(stat -c '%F %a %U:%G' /run/rknnd/session.sock)" "socket 660 root:rknnd"
  expect_equal "admin.sock" \
    "$(stat -c '%F %a %U:%G' /run/rknnd/admin.sock)" "socket 600 root:root"
  expect_equal "rknnd.service" "$(property ActiveState)" inactive
  expect_equal "daemons" "$(pgrep -x rknnd || true)" ""
}

boot_will_bring_the_sockets() {
  expect_equal "rknnd.socket" "$(systemctl is-enabled rknnd.socket)" enabled
  expect_contains "sockets.target" \
    "$(systemctl list-dependencies --plain sockets.target)" 'rknnd\.socket'
  # What is made at boot is made before the sockets.
  expect_contains "order" "$(property After rknnd.socket)" sysinit.target
  expect_contains "order" "$(property After)" rknnd.socket
}
