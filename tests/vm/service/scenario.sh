#!/bin/bash
# What happens to the packages on a board, from their installation to their
# removal, in the guest with systemd as process 1. Runs once after boot
# (scenario.service), as root, in a folder that boot.sh filled:
#
#   packages/*.deb   what is installed      newer/*.deb   the same, of a newer
#   bin/*            programs that use it                 version
#
# Each check says how it ended, in the words of GoogleTest; the order matters,
# as each begins with what the last one left. Exit status 1: one has failed.
set -u
cd /scenario || exit
# shellcheck source=tests/vm/service/checks.sh
. ./checks.sh
for part in install client restart operation removal; do
  # shellcheck source=/dev/null
  . "./${part}_checks.sh"
done

echo "=== $(systemd --version | head -n 1), Linux $(uname -r)"

files_of_system >/tmp/files-before
check packages_install || exit
check nothing_runs_but_the_sockets_listen
check boot_will_bring_the_sockets
check configuration_is_as_shipped_but_for_the_slow_guest
useradd --system camera --groups rknnd
useradd --system stranger

check stranger_is_refused_and_told_why
check first_client_starts_the_service
check daemon_has_no_capability
check daemon_may_little_else
check device_is_named
check buffers_are_dma_bufs_of_the_best_heap
check camera_films_as_a_user_of_the_group

check upgrade_under_load_loses_no_frame
check kill_under_load_loses_no_frame
check models_outlive_the_daemon
check restarts_keep_the_sockets_and_their_folder
check stop_and_start_under_load_loses_no_frame
check stopped_socket_gives_a_clear_error
check stopped_daemon_is_ended_by_the_watchdog

check reload_takes_a_new_limit
check journal_has_fields
check wrong_file_is_refused_and_the_old_one_stays
check wrong_file_at_start_is_no_loop_of_restarts
check absent_device_is_named_and_tried_again
check vendors_server_is_stopped_by_ours
check vendors_server_started_by_hand_is_named

check removal_ends_all
check purge_leaves_nothing

if ((${#failed[@]})); then
  echo "failed: ${failed[*]}"
  exit 1
fi
