// See works.h.

#include "tests/torture/works.h"

#include <algorithm>
#include <array>

namespace rknnd::torture {
namespace {

constexpr std::array<const char*, kWorks> kNames = {
    "sync", "queue", "vendor", "imported", "churn", "shared", "lazy"};
constexpr size_t kPage = 4096;

}  // namespace

const char* NameOf(Work work) { return kNames.at(static_cast<size_t>(work)); }

std::optional<Work> WorkNamed(const std::string& name) {
  const auto* const found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Work>(found - kNames.begin());
}

uint64_t SharedStride(const Network& network) {
  return (network.bytes() + kPage - 1) / kPage * kPage;
}

}  // namespace rknnd::torture
