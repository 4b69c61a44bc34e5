// What these files say is the kernel's word, but for the names of processes.

#include "daemon/board/files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/posix/unique_fd.h"
#include "base/status/status.h"

namespace rknnd::board {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestText = 64 * 1024;

}  // namespace

bool Files::Exists(const std::string& path) const {
  std::error_code error;
  return fs::exists(root_ + path, error);
}

bool Files::Accessible(const std::string& path) const {
  return access((root_ + path).c_str(), R_OK | W_OK) == 0;
}

std::optional<std::string> Files::Text(const std::string& path) const {
  const base::UniqueFd fd(
      open((root_ + path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return std::nullopt;
  std::string text;
  std::array<char, 4096> piece{};
  while (text.size() < kLongestText) {
    const ssize_t got = read(fd.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    // Some of them fail at the read: a clock that is off, for one.
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    text.append(piece.data(), static_cast<size_t>(got));
  }
  return text;
}

std::optional<std::string> Files::Line(const std::string& path) const {
  std::optional<std::string> text = Text(path);
  if (text.has_value()) text->resize(std::min(text->find('\n'), text->size()));
  return text;
}

std::optional<uint64_t> Files::Number(const std::string& path) const {
  const std::optional<std::string> line = Line(path);
  if (!line.has_value()) return std::nullopt;
  uint64_t number = 0;
  const auto parsed =
      std::from_chars(line->data(), line->data() + line->size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  return number;
}

std::vector<std::string> Files::List(const std::string& folder) const {
  std::vector<std::string> names;
  std::error_code error;
  fs::directory_iterator entry(root_ + folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    names.push_back(entry->path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string Files::LinkName(const std::string& path) const {
  std::error_code error;
  return fs::read_symlink(root_ + path, error).filename();
}

uint64_t Files::Size(const std::string& path) const {
  std::error_code error;
  const uint64_t size = fs::file_size(root_ + path, error);
  return error ? 0 : size;
}

absl::Status Files::Write(const std::string& path,
                          std::string_view value) const {
  const std::string file = root_ + path;
  const base::UniqueFd fd(open(file.c_str(), O_WRONLY | O_CLOEXEC | O_TRUNC));
  const auto failed = [&](const char* what) {
    return base::ToStatus(
        base::ErrnoError(errno, absl::StrCat(what, " '", file, "'")));
  };
  if (!fd.valid()) return failed("open");
  // In one piece: each write is a value of its own to the kernel.
  if (write(fd.get(), value.data(), value.size()) !=
      static_cast<ssize_t>(value.size())) {
    return failed("write");
  }
  return absl::OkStatus();
}

std::vector<std::string> Words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

}  // namespace rknnd::board
