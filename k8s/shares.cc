// See the header.

#include "k8s/shares.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace rknnd::k8s {
namespace {

constexpr uint32_t kSharesOfCore = 4;
constexpr uint32_t kWeightOfAll = 1000;
constexpr char kPrefix[] = "npu-share-";
// rknnd has 1024 sessions by default. Half of them are for shares; the least is
// what a program with a few worker processes takes.
constexpr uint32_t kSessionsOfAll = 512;
constexpr uint32_t kLeastSessions = 8;

// As a DNS label: Kubernetes' names are made of them.
bool IsLabel(std::string_view label) {
  if (label.empty() || label.size() > 63 || label.front() == '-' ||
      label.back() == '-') {
    return false;
  }
  return std::all_of(label.begin(), label.end(), [](unsigned char letter) {
    return std::islower(letter) != 0 || std::isdigit(letter) != 0 ||
           letter == '-';
  });
}

bool IsDomain(std::string_view domain) {
  for (;;) {
    const size_t dot = domain.find('.');
    if (!IsLabel(domain.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    domain.remove_prefix(dot + 1);
  }
}

}  // namespace

uint32_t DefaultShares(uint32_t cores) {
  return std::clamp(cores, 1U, kMostShares / kSharesOfCore) * kSharesOfCore;
}

std::string ShareId(uint32_t share) {
  return absl::StrCat(kPrefix, absl::Dec(share, absl::kZeroPad3));
}

absl::StatusOr<std::vector<uint32_t>> ParseShareIds(
    const std::vector<std::string>& ids, uint32_t count) {
  if (ids.empty()) {
    return absl::InvalidArgumentError("a container asks for no share at all");
  }
  std::set<uint32_t> shares;
  for (const std::string& id : ids) {
    absl::string_view digits = id;
    uint32_t share = 0;
    if (!absl::ConsumePrefix(&digits, kPrefix) ||
        !absl::SimpleAtoi(digits, &share) || ShareId(share) != id) {
      return absl::InvalidArgumentError(
          absl::StrCat("share '", id, "' is none of this node's"));
    }
    if (share >= count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "share '", id, "' is not there any more: this node has ", count));
    }
    if (!shares.insert(share).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("share '", id, "' is named twice"));
    }
  }
  return std::vector<uint32_t>(shares.begin(), shares.end());
}

wire::ShareSocket ShareSocketFor(const std::string& name, uint32_t shares,
                                 uint32_t count, const Capacity& capacity) {
  wire::ShareSocket share_socket{};
  wire::SetText(share_socket.name, name);
  // A restart with fewer shares may leave an allocation with more than all.
  const uint32_t of = std::max({count, shares, 1U});
  share_socket.weight = std::max(1U, kWeightOfAll * shares / of);
  share_socket.sessions =
      std::max(kLeastSessions, kSessionsOfAll * shares / of);
  // 0 would be no limit at all.
  if (capacity.memory != 0) {
    share_socket.memory = std::max<uint64_t>(1, capacity.memory / of * shares);
  }
  return share_socket;
}

absl::Status CheckResourceName(const std::string& name) {
  const size_t slash = name.find('/');
  if (slash != std::string::npos && slash <= 253 &&
      IsDomain(std::string_view(name).substr(0, slash)) &&
      IsLabel(std::string_view(name).substr(slash + 1))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--resource is '", name,
      "', must be a domain, '/' and a name of lower-case letters, digits and "
      "'-', as in rknnd.io/npu-share"));
}

}  // namespace rknnd::k8s
