# 64-bit boards: every program of ours.
set(RKNND_ARCH arm64)
set(RKNND_TRIPLET aarch64-linux-gnu)
set(RKNND_QEMU qemu-aarch64-static)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
include(${CMAKE_CURRENT_LIST_DIR}/debian.cmake)
