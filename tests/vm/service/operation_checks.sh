# shellcheck shell=bash
# What operators do: configuration, logs, faults of the machine. Sourced by
# scenario.sh.
# shellcheck disable=SC2154 # what checks.sh has

# Somebody was refused something: whoever asks who, asks the journal.
journal_has_fields() {
  local entry
  eventually has_entry_of_a_session
  entry=$(entries_of_sessions | tail -n 1)
  jq -c '{MESSAGE, PRIORITY, RKNND_SESSION, RKNND_PID, RKNND_COMM}' \
    <<<"$entry" | sed 's/^/    /'
  # Whoever searches by it finds the line.
  expect_contains "entries of that program" \
    "$(journalctl --no-pager -u rknnd.service -o json \
      RKNND_PID="$(jq -r .RKNND_PID <<<"$entry")" | tail -n 1)" \
    "$(jq -r .RKNND_SESSION <<<"$entry")"
}

entries_of_sessions() {
  journalctl --no-pager -u rknnd.service -o json |
    jq -c 'select(.RKNND_SESSION and .RKNND_COMM)'
}

has_entry_of_a_session() {
  [[ -n $(entries_of_sessions) ]]
}

# with_config SCRIPT COMMAND...: with the file as sed makes it.
with_config() {
  local status=0
  cp -p "$config" /tmp/rknnd.toml
  sed -i "$1" "$config"
  shift
  "$@" || status=$?
  cp -p /tmp/rknnd.toml "$config"
  return "$status"
}

# A limit of one context for a program that has two.
reload_takes_a_new_limit() {
  local pid said
  as camera rknnctl status >/dev/null
  pid=$(property MainPID)
  # shellcheck disable=SC2016 # sed's
  with_config '$a [[limits.users]]\nuser = "camera"\ncontexts = 1' \
    reload_until_logged 'now in force: .*limits'
  expect_fails as camera timeout -s KILL 90 \
    rknnd-run "$here/bin/vm_frame_checker"
  tail -n 1 <<<"$said" | sed 's/^/    /'
  expect_contains "the error" "$said" 'limits\.users\.contexts'
  systemctl reload rknnd.service
  start_checker
  stop_checker
  expect_equal "process" "$(property MainPID)" "$pid"
}

# The daemon reads the file some time after the service manager has told it.
reload_until_logged() {
  systemctl reload rknnd.service
  eventually log_has "$1"
}

log_has() {
  log_of_this_start | grep -qE -e "$1"
}

wrong_file_is_refused_and_the_old_one_stays() {
  local pid
  pid=$(property MainPID)
  if with_config '1i no_such_key = 1' systemctl reload rknnd.service; then
    fail "the service manager says that the file was taken"
  fi
  expect_contains "log" "$(log_of_this_start)" 'no_such_key'
  expect_equal "rknnd.service" "$(property ActiveState)" active
  expect_equal "process" "$(property MainPID)" "$pid"
  start_checker
  stop_checker
}

wrong_file_at_start_is_no_loop_of_restarts() {
  local restarts
  systemctl stop rknnd.service
  restarts=$(property NRestarts)
  if with_config '1i no_such_key = 1' systemctl start rknnd.service; then
    fail "it started with a wrong file"
  fi
  expect_equal "rknnd.service" "$(property ActiveState)" failed
  expect_equal "its exit status" "$(property ExecMainStatus)" 78
  expect_equal "restarts" "$(property NRestarts)" "$restarts"
  systemctl reset-failed rknnd.service
  systemctl start rknnd.socket rknnd-admin.socket
  as camera rknnctl status >/dev/null
}

# A board whose NPU is expected, and not there (yet). The guest takes longer for
# the starts that are a fault, and the next try is not waited for so long.
absent_device_is_named_and_tried_again() {
  systemctl stop rknnd.service
  drop_in rknnd.service '[Unit]' StartLimitIntervalSec=100s
  drop_in rknnd-retry.timer '[Timer]' OnActiveSec= OnActiveSec=5s
  with_config '1i device = "rknnrt"' fail_for_good
  log_of_this_start | tail -n 1 | sed 's/^/    /'
  expect_contains "log" "$(log_of_this_start)" 'rknnrt'
  # By now there is what it needs: nobody has to type anything.
  eventually is_running
  drop_out rknnd.service
  drop_out rknnd-retry.timer
  start_checker
  stop_checker
}

# Until the service manager has given up.
fail_for_good() {
  systemctl --no-block start rknnd.service
  eventually has_property ActiveState failed
}

# One that goes on by itself, under the name that it has on boards.
vendors_server=/usr/bin/rknn_server

vendors_server_is_stopped_by_ours() {
  local unit=/run/systemd/system/rknn_server.service
  cp /bin/sleep "$vendors_server"
  printf '[Service]\nExecStart=%s 600\n' "$vendors_server" >"$unit"
  systemctl daemon-reload
  as camera rknnctl status >/dev/null
  systemctl start rknn_server.service
  eventually has_property ActiveState inactive
  as camera rknnctl status >/dev/null
  expect_equal "rknn_server.service" \
    "$(property ActiveState rknn_server.service)" inactive
  is_running
  rm "$unit"
  systemctl daemon-reload
}

vendors_server_started_by_hand_is_named() {
  local server
  systemctl stop rknnd.service
  "$vendors_server" 600 &
  server=$!
  as camera rknnctl status >/dev/null
  log_of_this_start | grep -F rknn_server | sed 's/^/    /'
  expect_contains "log" "$(log_of_this_start)" "rknn_server.*$server"
  kill "$server"
  rm "$vendors_server"
}
