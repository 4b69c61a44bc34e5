// Reads clients' JSON: every field may be missing or of any type. Names are
// taken as protobuf's JSON has them, version_policy or versionPolicy.

#include "daemon/transport/grpc/inference/repository_config.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/transport/grpc/inference/repository_folder.h"
#include "daemon/transport/session/event_log.h"
#include "nlohmann/json.hpp"

namespace rknnd::transport {
namespace {

using nlohmann::json;

// A configuration is a page; what is above is something else.
constexpr size_t kConfigBytes = size_t{64} << 10;

absl::Status Wrong(const std::string& name, const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("config of model '", name, "': ", what));
}

// Null where there is none; `from` may be anything.
const json* Field(const json& from, const char* name, const char* camel) {
  if (!from.is_object()) return nullptr;
  auto found = from.find(name);
  if (found == from.end()) found = from.find(camel);
  return found == from.end() ? nullptr : &*found;
}

// A version or a count; protobuf writes 64-bit numbers as text. Empty: neither.
std::string NumberText(const json& value) {
  std::string text = value.is_string() ? value.get<std::string>()
                     : value.is_number_unsigned()
                         ? std::to_string(value.get<uint64_t>())
                         : "";
  return IsModelVersion(text) ? text : "";
}

absl::Status ReadSpecific(const std::string& name, const json& specific,
                          VersionPolicy* policy) {
  const json* const versions = Field(specific, "versions", "versions");
  if (versions == nullptr || !versions->is_array() || versions->empty() ||
      versions->size() > kRepositoryVersions) {
    return Wrong(name, absl::StrCat("'specific' needs 'versions', 1 to ",
                                    kRepositoryVersions, " of them"));
  }
  policy->kind = VersionPolicy::Kind::kSpecific;
  for (const json& version : *versions) {
    std::string text = NumberText(version);
    if (text.empty()) return Wrong(name, "a version is a number from 1 on");
    policy->versions.push_back(std::move(text));
  }
  return absl::OkStatus();
}

absl::Status ReadLatest(const std::string& name, const json& latest,
                        VersionPolicy* policy) {
  const json* const count = Field(latest, "num_versions", "numVersions");
  if (count == nullptr) return absl::OkStatus();
  if (!count->is_number_unsigned() || count->get<uint64_t>() == 0) {
    return Wrong(name, "'num_versions' is a number from 1 on");
  }
  policy->count = static_cast<uint32_t>(
      std::min<uint64_t>(count->get<uint64_t>(), kRepositoryVersions));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<std::string>> VersionPolicy::Choose(
    const std::vector<std::string>& there) const {
  switch (kind) {
    case Kind::kAll:
      return there;
    case Kind::kLatest: {
      const size_t left = std::min<size_t>(count, there.size());
      return std::vector<std::string>(
          there.end() - static_cast<ptrdiff_t>(left), there.end());
    }
    case Kind::kSpecific:
      break;
  }
  std::vector<std::string> chosen;
  for (const std::string& version : there) {
    if (std::find(versions.begin(), versions.end(), version) !=
        versions.end()) {
      chosen.push_back(version);
    }
  }
  for (const std::string& version : versions) {
    if (std::find(chosen.begin(), chosen.end(), version) == chosen.end()) {
      return absl::NotFoundError(absl::StrCat(
          "version ", version, ", which its config asks for, is not there"));
    }
  }
  return chosen;
}

absl::StatusOr<VersionPolicy> ParseModelConfig(const std::string& name,
                                               const std::string& text) {
  VersionPolicy policy;
  if (text.empty()) return policy;
  if (text.size() > kConfigBytes) {
    return Wrong(name, absl::StrCat("has ", text.size(), " bytes of at most ",
                                    kConfigBytes));
  }
  const json config = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object()) return Wrong(name, "is no JSON object");
  if (const json* own = Field(config, "name", "name");
      own != nullptr && *own != name && *own != "") {
    return Wrong(name, "names another model");
  }
  const json* const wanted = Field(config, "version_policy", "versionPolicy");
  if (wanted == nullptr || wanted->is_null()) return policy;
  if (!wanted->is_object() || wanted->size() > 1) {
    return Wrong(name, "'version_policy' is one of latest, all and specific");
  }
  if (const json* latest = Field(*wanted, "latest", "latest")) {
    if (auto read = ReadLatest(name, *latest, &policy); !read.ok()) return read;
  } else if (Field(*wanted, "all", "all") != nullptr) {
    policy.kind = VersionPolicy::Kind::kAll;
  } else if (const json* specific = Field(*wanted, "specific", "specific")) {
    if (auto read = ReadSpecific(name, *specific, &policy); !read.ok()) {
      return read;
    }
  } else if (!wanted->empty()) {
    return Wrong(name, "'version_policy' is one of latest, all and specific");
  }
  return policy;
}

}  // namespace rknnd::transport
