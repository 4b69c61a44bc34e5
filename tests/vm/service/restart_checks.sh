# shellcheck shell=bash
# The daemon goes and comes back under clients that do not notice. Sourced by
# scenario.sh.
# shellcheck disable=SC2317 # checks are called by their names

upgrade_under_load_loses_no_frame() {
  local pid socket_since
  # With one CPU, dpkg would wait long beside one that has no pauses.
  start_checker --period 30
  pid=$(property MainPID)
  socket_since=$(property ActiveEnterTimestampMonotonic rknnd.socket)
  dpkg_does -i newer/*.deb
  eventually is_running
  more_frames 20
  stop_checker
  expect_contains "version" "$(dpkg-query -W -f '${Version}' rknnd)" '\+vm1$'
  [[ $(property MainPID) != "$pid" ]] || fail "the old daemon still runs"
  # It took whoever connected while there was no daemon.
  expect_equal "start of the socket" \
    "$(property ActiveEnterTimestampMonotonic rknnd.socket)" "$socket_since"
}

kill_under_load_loses_no_frame() {
  local pid restarts
  start_checker
  pid=$(property MainPID)
  restarts=$(property NRestarts)
  kill -KILL "$pid"
  eventually property_is_not MainPID "$pid"
  eventually is_running
  more_frames 20
  stop_checker
  expect_equal "restarts" "$(property NRestarts)" $((restarts + 1))
}

# Containers have the folder mounted: another one of the same name is not it.
restarts_keep_the_sockets_and_their_folder() {
  local before
  before=$(names_of_sockets)
  systemctl restart rknnd.service
  as camera rknnctl status >/dev/null
  expect_equal "sockets" "$(names_of_sockets)" "$before"
  systemctl stop rknnd.service
  expect_equal "sockets without a daemon" "$(names_of_sockets)" "$before"
}

names_of_sockets() {
  stat -c '%n %i %a %U:%G' /run/rknnd /run/rknnd/{session,admin}.sock
}

models_outlive_the_daemon() {
  local pid
  start_checker
  eventually property_is_not NFileDescriptorStore 0
  echo "    $(property NFileDescriptorStore) descriptors in the" \
    "service manager's store"
  # With its user gone, only the store has the model.
  stop_checker
  pid=$(property MainPID)
  kill -KILL "$pid"
  eventually property_is_not MainPID "$pid"
  eventually is_running
  eventually property_is_not NFileDescriptorStore 0
}

stop_and_start_under_load_loses_no_frame() {
  start_checker
  # A socket that listens would start it again at once.
  systemctl stop rknnd.socket rknnd-admin.socket rknnd.service
  expect_equal "rknnd.service" "$(property ActiveState)" inactive
  systemctl start rknnd.socket
  more_frames 20
  stop_checker
  systemctl start rknnd-admin.socket
}

stopped_socket_gives_a_clear_error() {
  local said
  systemctl stop rknnd.socket rknnd-admin.socket rknnd.service
  expect_fails as camera rknnctl status
  echo "    $said"
  expect_contains "the error" "$said" '/run/rknnd/session\.sock'
  systemctl start rknnd.socket rknnd-admin.socket
  as camera rknnctl status >/dev/null
}

# As shipped it waits for half a minute, here less; all else is as shipped.
stopped_daemon_is_ended_by_the_watchdog() {
  local pid
  drop_in rknnd.service '[Service]' WatchdogSec=5s
  systemctl restart rknnd.service
  start_checker
  pid=$(property MainPID)
  kill -STOP "$pid"
  eventually property_is_not MainPID "$pid"
  eventually is_running
  more_frames 20
  stop_checker
  expect_contains "log of the service manager" \
    "$(journalctl --no-pager -o cat -u rknnd.service)" 'Watchdog timeout'
  drop_out rknnd.service
  systemctl restart rknnd.service
}
