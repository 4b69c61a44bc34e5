# shellcheck shell=bash
# Clients come, and the daemon runs with no more rights than it needs. Sourced
# by scenario.sh.
# shellcheck disable=SC2154 # what checks.sh has

stranger_is_refused_and_told_why() {
  local said
  expect_fails as stranger rknnctl status
  echo "    $said"
  expect_contains "the error" "$said" '/run/rknnd/session\.sock'
  expect_contains "the error" "$said" '[Pp]ermission denied'
  expect_fails as stranger rknnctl doctor
  grep -F usermod <<<"$said" | sed 's/^/    /'
  expect_contains "the remedy" "$said" 'usermod -aG rknnd stranger'
  expect_equal "rknnd.service" "$(property ActiveState)" inactive
}

first_client_starts_the_service() {
  local status
  status=$(as camera rknnctl --json status)
  expect_equal "device" "$(jq -r .device.kind <<<"$status")" soft
  expect_equal "rknnd.service" "$(property ActiveState)" active
  expect_equal "its user" "$(ps -o user= -p "$(property MainPID)")" rknnd
}

daemon_has_no_capability() {
  local status
  status=$(cat "/proc/$(property MainPID)/status")
  expect_equal "capabilities" \
    "$(sed -n 's/^Cap[A-Za-z]*:[[:space:]]*//p' <<<"$status" | sort -u)" \
    0000000000000000
  expect_contains "status" "$status" 'NoNewPrivs:[[:space:]]*1'
  expect_contains "status" "$status" 'Seccomp:[[:space:]]*2'
}

daemon_may_little_else() {
  local said
  # Of ten; its limit, as the option has it, is 2.0.
  systemd-analyze security --no-pager --threshold=20 rknnd.service \
    >/tmp/security.log || fail "$(tail -n 1 /tmp/security.log)"
  said=$(grep -F 'Overall exposure level' /tmp/security.log)
  echo "    ${said##* Overall}"
}

device_is_named() {
  expect_contains "log" "$(log_of_this_start)" "device 'soft'"
  expect_contains "status" "$(property StatusText)" "device 'soft'"
}

# What the daemon has open, as the kernel tells.
exporters() {
  cat /proc/"$(property MainPID)"/fdinfo/* 2>/dev/null |
    sed -n 's/^exp_name:[[:space:]]*//p' | sort | uniq -c
}

# Debian's kernel for arm64 has no dma-heaps.
buffers_are_dma_bufs_of_the_best_heap() {
  local heap=dma_heap:system exporter=system
  if [[ $(uname -m) == aarch64 ]]; then
    heap=udmabuf exporter=udmabuf
    expect_equal "udmabuf" "$(stat -c '%a %U:%G' /dev/udmabuf)" "660 root:kvm"
  else
    expect_equal "the heap" "$(stat -c '%a %U:%G' /dev/dma_heap/system)" \
      "660 root:video"
  fi
  start_checker
  expect_contains "the daemon's dma-bufs" "$(exporters)" "[0-9] $exporter\$"
  expect_equal "heaps of buffers" \
    "$(as camera rknnctl --json buffers | jq -r '.[].heap' | sort -u)" "$heap"
  stop_checker
}

# One camera, one context: a run of the detector takes seconds here.
camera_films_as_a_user_of_the_group() {
  local film
  echo film | as camera rknnd-run "$here/bin/rknnd-demo" --camera 0 \
    --contexts 1 --seconds 5 --model "$here/detector.onnx" \
    --output /tmp/camera.png >/tmp/camera.log 2>/tmp/camera.err ||
    fail "the camera failed: $(cat /tmp/camera.err)"
  film=$(tail -n 1 /tmp/camera.log)
  jq -c 'del(.latencies_us)' <<<"$film" | sed 's/^/    /'
  expect_equal "frames" "$(jq '.frames > 0' <<<"$film")" true
  expect_equal "boxes" "$(jq '.boxes > 0' <<<"$film")" true
  expect_equal "owner of the picture" "$(stat -c %U /tmp/camera.png)" camera
}
