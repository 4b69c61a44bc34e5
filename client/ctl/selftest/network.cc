#include "client/ctl/selftest/network.h"

// The file as it is, in the program: RKNND_SELFTEST_NETWORK is its path.
__asm__(
    ".section .rodata, \"a\"\n"
    ".balign 16\n"
    "rknnd_selftest_network:\n"
    ".incbin \"" RKNND_SELFTEST_NETWORK
    "\"\n"
    "rknnd_selftest_network_end:\n"
    ".previous\n");

extern "C" {
extern const std::byte rknnd_selftest_network[];
extern const std::byte rknnd_selftest_network_end[];
}

namespace rknnd::client {

std::span<const std::byte> SelfTestNetwork() {
  return {rknnd_selftest_network, rknnd_selftest_network_end};
}

}  // namespace rknnd::client
