// The tokens that let remote peers in: a file of lines "ROLE NAME TOKEN", read
// when the server starts and again when it has changed. Used by the
// authenticator.

#ifndef DAEMON_TRANSPORT_GRPC_TOKENS_H_
#define DAEMON_TRANSPORT_GRPC_TOKENS_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/values/sha256.h"
#include "daemon/transport/grpc/options.h"

namespace rknnd::transport {

// Thread: any; it does not change.
class TokenList {
 public:
  // Shorter ones can be guessed.
  static constexpr size_t kShortest = 16;
  static constexpr size_t kLongest = 1024;
  static constexpr size_t kMost = 1024;

  struct Entry {
    GrpcRole role = GrpcRole::kNone;
    std::string name;
    base::Sha256Digest token{};  // its hash: the token itself is not kept
  };

  // Empty lines and those that begin with '#' say nothing. An error names
  // `path` and the line, never the token.
  static absl::StatusOr<TokenList> Parse(std::string_view text,
                                         const std::string& path);
  // FAILED_PRECONDITION for a file that others than its owner's group can read
  // or others than its owner can write.
  static absl::StatusOr<TokenList> Read(const std::string& path);

  // Whose `token` is; null: nobody's. Takes as long whatever it is given.
  [[nodiscard]] const Entry* Find(std::string_view token) const;
  [[nodiscard]] size_t size() const { return entries_.size(); }

 private:
  std::vector<Entry> entries_;
};

// FAILED_PRECONDITION, and the command that remedies it, for a file with
// secrets that others may read or write.
absl::Status CheckSecretFile(int fd, const std::string& path);

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_TOKENS_H_
