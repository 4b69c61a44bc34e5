# shellcheck shell=bash
# What the scenario's checks are made of; sourced by scenario.sh in the guest
# with systemd. A check is a function: it ends at its first command that fails.

here=/scenario
# shellcheck disable=SC2034 # for those who source this
config=/etc/rknnd/rknnd.toml
failed=()

# check FUNCTION [arguments]: runs one check and says how it ended.
check() {
  local name=$* status begin=$EPOCHREALTIME
  echo "[ RUN      ] $name"
  (
    set -euo pipefail
    "$@"
  )
  status=$?
  local took=$(((${EPOCHREALTIME/./} - ${begin/./}) / 1000))
  if ((status == 0)); then
    echo "[       OK ] $name ($took ms)"
    return 0
  fi
  echo "[  FAILED  ] $name ($took ms)"
  failed+=("$name")
  # For whoever reads of it.
  systemctl --no-pager --full --lines=0 status rknnd.service 2>&1 |
    sed 's/^/    | /'
  journalctl --no-pager -n 20 -o short-monotonic 'UNIT=rknnd.service' + \
    '_SYSTEMD_UNIT=rknnd.service' 2>&1 | sed 's/^/    | /'
  # The next check begins as if this one had gone well.
  pkill -KILL vm_frame
  systemctl try-restart rknnd.service
  return 1
}

fail() {
  echo "    $*"
  return 1
}

# expect_equal WHAT GOT WANTED
expect_equal() {
  [[ $2 == "$3" ]] || fail "$1: got '$2', wanted '$3'"
}

# expect_contains WHAT TEXT PATTERN: an extended regular expression.
expect_contains() {
  grep -qE -e "$3" <<<"$2" || fail "$1: '$3' is not in '$2'"
}

# expect_fails COMMAND...: it does, and what it says is in $said.
expect_fails() {
  if said=$("$@" 2>&1); then
    fail "'$*' succeeded: $said"
  fi
}

# eventually COMMAND...: succeeds before patience ends. The guest is slow: only
# a test that fails waits that long.
eventually() {
  local end=$((SECONDS + 90))
  until "$@"; do
    ((SECONDS < end)) || fail "never came true: $*" || return
    sleep 0.1
  done
}

# drop_in UNIT SECTION LINE...: added to a unit until drop_out.
drop_in() {
  local folder=/run/systemd/system/$1.d
  mkdir -p "$folder"
  printf '%s\n' "${@:2}" >"$folder/vm.conf"
  systemctl daemon-reload
}

drop_out() {
  rm -r /run/systemd/system/"$1".d
  systemctl daemon-reload
}

# --- the service --------------------------------------------------------------

# property NAME [unit]
property() {
  systemctl show --property="$1" --value "${2:-rknnd.service}"
}

has_property() {
  [[ $(property "$1" "${3:-rknnd.service}") == "$2" ]]
}

property_is_not() {
  [[ $(property "$1") != "$2" ]]
}

is_running() {
  has_property ActiveState active && has_property SubState running
}

# Of what the unit has logged since it was started last.
log_of_this_start() {
  journalctl --no-pager -o cat _SYSTEMD_INVOCATION_ID="$(property InvocationID)"
}

# as USER COMMAND...: with the user's groups and no other rights.
as() {
  (exec_as "$@")
}

# The same in place of the shell.
exec_as() {
  local user=$1
  shift
  exec setpriv --reuid="$user" --regid="$user" --init-groups \
    --inh-caps=-all --no-new-privs env -i -C /tmp PATH=/usr/bin:/bin \
    HOME=/tmp LANG=C.UTF-8 "$@"
}

# --- a program that uses the service all the time ------------------------------

checker_log=/tmp/checker.log

# start_checker [--period MS]
start_checker() {
  : >"$checker_log"
  exec_as camera rknnd-run "$here/bin/vm_frame_checker" "$@" \
    >"$checker_log" 2>&1 &
  checker=$!
  more_frames 20
}

frames_so_far() {
  sed -n 's/^answered \([0-9]*\)$/\1/p' "$checker_log" | tail -n 1
}

checker_has() {
  kill -0 "$checker" || fail "the program has ended: $(cat "$checker_log")" ||
    exit 1
  [[ $(frames_so_far || true) -ge $1 ]]
}

# So many more than now.
more_frames() {
  local now
  now=$(frames_so_far)
  eventually checker_has $((${now:-0} + $1))
}

# All that it asked for was answered, and rightly.
stop_checker() {
  local status=0
  kill -TERM "$checker"
  wait "$checker" || status=$?
  tail -n 1 "$checker_log" | sed 's/^/    /'
  ((status == 0)) ||
    fail "frames were lost or wrong (status $status): $(grep -v \
      '^answered' "$checker_log")"
}
