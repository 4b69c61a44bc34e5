# 32-bit programs on 64-bit boards, and old boards: what a client needs.
set(RKNND_ARCH armhf)
set(RKNND_TRIPLET arm-linux-gnueabihf)
set(RKNND_QEMU qemu-arm-static)
set(CMAKE_SYSTEM_PROCESSOR armv7l)
include(${CMAKE_CURRENT_LIST_DIR}/debian.cmake)
