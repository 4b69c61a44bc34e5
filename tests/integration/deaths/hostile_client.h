// A process that speaks to the session socket without our library and means no
// good, and a neighbour beside it. For the tests of what each says, whose end
// finds the neighbour well and nothing left of the other.

#ifndef TESTS_INTEGRATION_DEATHS_HOSTILE_CLIENT_H_
#define TESTS_INTEGRATION_DEATHS_HOSTILE_CLIENT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <vector>

#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {

class HostileClientTest : public IntegrationTest {
 protected:
  void SetUp() override {
    StartDaemon();
    StartNeighbour();
    enemy_.emplace(daemon().socket());
  }
  void TearDown() override {
    enemy_.reset();
    EXPECT_TRUE(OnlyNeighbourIsLeft());
    EXPECT_TRUE(NeighbourIsWell());
  }

  // The number of the neighbour's context and of one of its buffers.
  uint32_t NeighboursContext() {
    return Ask(rknnd_v1_ReportKind_REPORT_CONTEXTS).contexts.at(0).id;
  }
  uint32_t NeighboursBuffer() {
    return Ask(rknnd_v1_ReportKind_REPORT_BUFFERS).buffers.at(0).id;
  }
  wire::CreateContext NeighboursModel(uint32_t number) {
    wire::CreateContext create{};
    create.context = number;
    const wire::Report models = Ask(rknnd_v1_ReportKind_REPORT_MODELS);
    std::copy(std::begin(models.models.at(0).sha256),
              std::end(models.models.at(0).sha256), std::begin(create.model));
    return create;
  }

  std::optional<RawClient> enemy_;
};

inline std::vector<std::byte> Noise(std::minstd_rand& random, size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() >> 8);
  return bytes;
}

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_DEATHS_HOSTILE_CLIENT_H_
