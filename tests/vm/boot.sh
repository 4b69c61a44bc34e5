#!/bin/bash
# Boots the test guest once and runs the tests of a build in it. Called by
# ./dev vm-test; image.sh made FOLDER. The guest is ten times slower than the
# machine, far more where numbers are crunched.
#
#   boot.sh FOLDER BUILD [arguments of the test programs]
#
# Exit status: 0 when all tests passed; 1 when one failed, and when the guest
# ended or hung before it could say so (its console is in FOLDER/console.log).
set -euo pipefail
folder=$(cd "$1" && pwd)
build=$(cd "$2" && pwd -P)
shift 2
source_root=$(cd "$(dirname "$0")/../.." && pwd)

# shellcheck source=tests/vm/machine.sh
. "$(dirname "$0")/machine.sh"
machine_of "$folder" "$folder/console.log"
memory_mib=2048

# What runs, and what that starts. The paths are the same inside as outside:
# test programs know where they were built.
tests=(
  "memory_test --gtest_filter=*Heap*:*Import*:*CacheSync*"
  "soft_coherence_test --gtest_filter=DmaBuf*"
  "vm_test"
  # What depends on the kernel: emulated, each run of the detector takes seconds.
  "memory_examples_test --gtest_filter=-*Duplicated*:*Sram*"
  "integration_test --gtest_filter=ZeroCopyTest.Bound*:BadMemoryTest.*Refused*"
)
case $arch in
  amd64)
    limit_seconds=720
    # With a thread for each CPU the emulator now and then runs an instruction that
    # the kernel is just patching, and the kernel panics.
    processors=(-smp 2 -accel "tcg,thread=single")
    ;;
  arm64)
    limit_seconds=2400
    processors=(-smp 4 -accel "tcg,thread=multi")
    # Addresses and sizes, at the kernel's page size; and what cannot run under
    # qemu-user.
    tests+=("base_test" "memory_test" "soft_coherence_test")
    while read -r test; do
      tests+=("$test")
    done < <(awk '$1 == "guest" { cases[$2] = cases[$2] ":" $3 }
      END { for (test in cases)
        print test " --gtest_filter=" substr(cases[test], 2) }' \
      "$source_root/tests/cross/arm64.tests" | sort)
    ;;
esac
# With the module of npu/module.sh and the published models that there are. All of
# them for who asks, as they need a machine that has little else to do.
npu_tests=()
conformance='vm_conformance_test --gtest_filter=*rknpu*'
module=$folder/modules/rknpu_standin.ko
programs=(bin/rknnd bin/rknnctl bin/tests/vm_giver bin/tests/vm_sync_file lib/librknnrt.so lib/librknnd-local.so)
for program in "$build"/bin/{examples/memory_,tests/integration_}*; do
  [[ $program == *_test ]] || programs+=("${program#"$build/"}")
done
files=("$source_root/examples/detector/detector.onnx"
       "$build"/examples/memory/detector_*.onnx)

case ${RKNND_VM_ONLY:-} in
  npu)
    tests=()
    npu_tests=("vm_npu_driver_test" "$conformance" "vm_npu_test")
    ;;
  npu_driver) # without a daemon
    tests=()
    npu_tests=("vm_npu_driver_test" "$conformance")
    programs=()
    files=()
    ;;
  '') # a look at what programs get
    if [[ -e $module ]]; then
      npu_tests=("vm_npu_test --gtest_filter=NpuTest.*:*mobilenetv2*"
                 "$conformance")
    fi
    ;;
esac

# --- the memory disk of this build -------------------------------------------

root=$folder/guest
rm -rf "$root"
mkdir -p "$root/vm"
# The folder that has the system's libraries, by the names that they have there.
system=
[[ $arch == amd64 ]] || system=$source_root/build/sysroot-$arch
libraries() {
  local program
  for program; do
    case $arch in
      amd64) ldd "$program" ;;
      arm64)
        qemu-aarch64-static -L "$system" "$system/lib/ld-linux-aarch64.so.1" \
          --list "$program"
        ;;
    esac
  done | sed -n "s#^[[:space:]]*\(.* => \)\?\($system\)\?\(/[^ ]*\) (0x.*#\3#p" |
    sort -u
}
install_program() {
  mkdir -p "$root$(dirname "$1")"
  "$strip" --strip-debug -o "$root$1" "$1"
}
for test in "${tests[@]}" "${npu_tests[@]}"; do
  programs+=("bin/tests/${test%% *}")
done
if ((${#npu_tests[@]})); then
  programs+=(bin/tests/vm_npu)
  cp "$module" "$root/vm"
  shared=${RKNND_SHARED:-$source_root/../shared}/rknn
  for file in {mobilenetv2,ppocrv4_det,yolov8n_algae}_rk3588.rknn \
    vectors/mobilenetv2_{chelsea,coffee}_{in_u8,out_i8}.bin \
    vectors/{ppocrv4_det_page,yolov8n_chelsea}_in_u8.bin; do
    [[ -e $shared/$file ]] || continue
    mkdir -p "$root/vm/shared/rknn/vectors"
    cp "$shared/$file" "$root/vm/shared/rknn/$file"
  done
fi
for program in "${programs[@]}"; do
  install_program "$build/$program"
done
libraries "${programs[@]/#/$build/}" | while read -r library; do
  [[ -e $root$library ]] ||
    (cd "$system/" && cp -L --parents "${library#/}" "$root")
done
for file in "${files[@]}"; do
  (cd / && cp --parents "${file#/}" "$root")
done

# A test that is told what to run gets told by us; each is run nevertheless.
{
  echo 'failed='
  printf 'cd %q\n' "$build"
  for test in "${tests[@]}" "${npu_tests[@]}"; do
    # The others have no NPU.
    [[ $test != "${npu_tests[0]:-none}" ]] ||
      printf 'insmod /vm/rknpu_standin.ko; export RKNND_SHARED=/vm/shared\n'
    printf 'echo "=== %s"\n' "${test%% *}"
    printf 'bin/tests/%s' "$test"
    (($# == 0)) || printf ' %q' "$@"
    # shellcheck disable=SC2016 # the guest's variable
    printf ' || failed="$failed %s"\n' "${test%% *}"
  done
  # shellcheck disable=SC2016
  echo 'if [ -n "$failed" ]; then echo "vm: failed:$failed"; exit 1; fi'
} >"$root/vm/run"

# --- one boot ----------------------------------------------------------------

(cd "$root" && find . | cpio -o -H newc --quiet) >"$folder/guest.cpio"
rm -rf "$root"
cat "$folder/base.cpio" "$folder/guest.cpio" >"$folder/disk.cpio"
begin=$SECONDS
status=0
timeout --foreground "$limit_seconds" \
  "${machine[@]}" "${processors[@]}" -m "$memory_mib" \
  -kernel "$folder/vmlinuz" -initrd "$folder/disk.cpio" \
  -append "console=$console output=$output panic=-1 quiet mitigations=off \
no_timer_check" \
  </dev/null 2>"$folder/qemu.log" | tee "$folder/output.log" || status=$?
took=$((SECONDS - begin))

if ((status == 124)); then
  echo "vm: the guest did not end within $limit_seconds s" >&2
  exit 1
fi
verdict=$(sed -n 's/^vm: status \([0-9]*\)$/\1/p' "$folder/output.log" |
  tail -n 1)
if [[ -z $verdict ]]; then
  echo "vm: the guest ended without a result; its console said:" >&2
  cat "$folder/qemu.log" >&2
  tail -n 20 "$folder/console.log" >&2
  exit 1
fi
passed=$(grep -c '^\[       OK \]' "$folder/output.log" || true)
skipped=$(grep -c '^\[  SKIPPED \] .*ms)$' "$folder/output.log" || true)
echo "vm: $passed passed, $skipped skipped, status $verdict," \
  "$took s with the boot"
exit "$((verdict != 0))"
