// A compiled network of 4.7 KB, which rknnctl selftest has at hand where nobody
// gives it others: two convolutions on three cores, a Reshape on the CPU. Made
// by driver/rknpu/testing/small_network.

#ifndef CLIENT_CTL_SELFTEST_NETWORK_H_
#define CLIENT_CTL_SELFTEST_NETWORK_H_

#include <cstddef>
#include <span>

namespace rknnd::client {

// The bytes of network.rknn.
std::span<const std::byte> SelfTestNetwork();

}  // namespace rknnd::client

#endif  // CLIENT_CTL_SELFTEST_NETWORK_H_
