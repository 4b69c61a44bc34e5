// The file is an administrator's: wrong, perhaps, but not hostile. What Find
// compares with it is.

#include "daemon/transport/grpc/tokens.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/posix/unique_fd.h"
#include "base/status/status.h"
#include "base/values/expected.h"

namespace rknnd::transport {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;

base::Sha256Digest HashOf(std::string_view text) {
  return base::Sha256Of(std::as_bytes(std::span(text.data(), text.size())));
}

absl::StatusOr<TokenList::Entry> ParseLine(absl::string_view line) {
  const std::vector<std::string> words =
      absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
  if (words.size() != 3) {
    return absl::InvalidArgumentError("must be 'ROLE NAME TOKEN'");
  }
  TokenList::Entry entry;
  if (words[0] == "user") {
    entry.role = GrpcRole::kUser;
  } else if (words[0] == "operator") {
    entry.role = GrpcRole::kOperator;
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        "role '", words[0], "' is unknown: use 'user' or 'operator'"));
  }
  entry.name = words[1];
  if (words[2].size() < TokenList::kShortest ||
      words[2].size() > TokenList::kLongest) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the token of '", entry.name, "' has ", words[2].size(),
        " characters, must have ", TokenList::kShortest, " to ",
        TokenList::kLongest, ": 'openssl rand -hex 32' makes one"));
  }
  entry.token = HashOf(words[2]);
  return entry;
}

}  // namespace

absl::StatusOr<TokenList> TokenList::Parse(std::string_view text,
                                           const std::string& path) {
  TokenList list;
  size_t number = 0;
  for (const absl::string_view raw :
       absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++number;
    const absl::string_view line = absl::StripAsciiWhitespace(raw);
    if (line.empty() || line.front() == '#') continue;
    auto entry = ParseLine(line);
    if (!entry.ok()) {
      return base::Annotate(entry.status(),
                            absl::StrCat("'", path, "' line ", number));
    }
    const bool twice = std::any_of(
        list.entries_.begin(), list.entries_.end(),
        [&entry](const Entry& other) { return other.token == entry->token; });
    if (twice) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", path, "' line ", number, ": the token of '",
                       entry->name, "' is another's as well"));
    }
    list.entries_.push_back(*std::move(entry));
    if (list.entries_.size() > kMost) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", path, "' has more than ", kMost, " tokens"));
    }
  }
  if (list.entries_.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", path,
        "' has no tokens: nobody could connect; add a line such as "
        "'user NAME TOKEN'"));
  }
  return list;
}

absl::Status CheckSecretFile(int fd, const std::string& path) {
  struct stat status {};
  if (fstat(fd, &status) != 0) {
    return base::ToStatus(
        base::ErrnoError(errno, absl::StrCat("look at '", path, "'")));
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", path, "' is no file"));
  }
  // A group of those who may read secrets is common; one that may write them
  // would let itself in.
  if ((status.st_mode & (S_IRWXO | S_IWGRP)) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("'", path,
                     "' can be read or written by others: 'chmod "
                     "600 ",
                     path, "'"));
  }
  return absl::OkStatus();
}

absl::StatusOr<TokenList> TokenList::Read(const std::string& path) {
  // Non-blocking: a FIFO must not hold up the daemon.
  const base::UniqueFd file(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) {
    return base::ToStatus(
        base::ErrnoError(errno, absl::StrCat("open '", path, "'")));
  }
  RKNND_RETURN_IF_ERROR(CheckSecretFile(file.get(), path));
  std::string text(kMostBytes + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = read(file.get(), &text[size], text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      return base::ToStatus(
          base::ErrnoError(errno, absl::StrCat("read '", path, "'")));
    }
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (size > kMostBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "' has more than ", kMostBytes, " bytes"));
  }
  text.resize(size);
  return Parse(text, path);
}

const TokenList::Entry* TokenList::Find(std::string_view token) const {
  // Hashes of one length, each compared to its end: time tells nothing of how
  // much of a guess was right, nor of which entry it was.
  const base::Sha256Digest guess = HashOf(token);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    unsigned difference = 0;
    for (size_t i = 0; i < guess.size(); ++i) {
      difference |= static_cast<unsigned>(guess[i] ^ entry.token[i]);
    }
    found = difference == 0 ? &entry : found;
  }
  return found;
}

}  // namespace rknnd::transport
