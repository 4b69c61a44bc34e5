# shellcheck shell=bash
# What the guests' machine is, by the kernel that FOLDER has; sourced by boot.sh
# and by the scripts of service/. The CPU is emulated: no /dev/kvm is needed.

# machine_of FOLDER CONSOLE_LOG: sets
#   arch      amd64 or arm64
#   machine   QEMU and its first arguments; chardev "output" is the second serial
#             line
#   console   the kernel's name of the first serial line, which goes to CONSOLE_LOG
#   output    its name of the second one
#   strip     for programs of that architecture
# shellcheck disable=SC2034 # for those who source this
machine_of() {
  arch=$(cat "$1/arch")
  case $arch in
    amd64)
      machine=(qemu-system-x86_64 -machine q35 -cpu "max,la57=off"
        -serial "file:$2" -serial chardev:output)
      console=ttyS0 output=ttyS1 strip=strip
      ;;
    arm64)
      # The CPU of the RK3588's faster cores.
      machine=(qemu-system-aarch64 -machine virt -cpu cortex-a76
        -serial "file:$2" -device "pci-serial,chardev=output")
      console=ttyAMA0 output=ttyS0 strip=aarch64-linux-gnu-strip
      ;;
  esac
  machine+=(-nodefaults -no-user-config -no-reboot -display none -nic none
    -monitor none -chardev "stdio,id=output,signal=off")
}
