// Small files of the kernel (/sys, /proc), below a root that tests replace. A
// file that is not there is normal: kernels and boards differ.

#ifndef DAEMON_BOARD_FILES_H_
#define DAEMON_BOARD_FILES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace rknnd::board {

// Thread: any.
class Files {
 public:
  // `root`: "" or where a test keeps its /sys, /proc and /dev.
  explicit Files(std::string root = "") : root_(std::move(root)) {}

  [[nodiscard]] bool Exists(const std::string& path) const;
  // Whether this process may open it in both directions.
  [[nodiscard]] bool Accessible(const std::string& path) const;
  // The first line, without the newline. nullopt: not there, or not readable.
  [[nodiscard]] std::optional<std::string> Line(const std::string& path) const;
  // All of it, up to 64 KiB.
  [[nodiscard]] std::optional<std::string> Text(const std::string& path) const;
  // nullopt also where the line is no number.
  [[nodiscard]] std::optional<uint64_t> Number(const std::string& path) const;
  // Names in a folder, sorted; none when it is not there.
  [[nodiscard]] std::vector<std::string> List(const std::string& folder) const;
  // Where a link leads to: the last part of it; "".
  [[nodiscard]] std::string LinkName(const std::string& path) const;
  [[nodiscard]] uint64_t Size(const std::string& path) const;

  // The error names the file.
  [[nodiscard]] absl::Status Write(const std::string& path,
                                   std::string_view value) const;

  [[nodiscard]] const std::string& root() const { return root_; }

 private:
  const std::string root_;
};

// The words of a line.
std::vector<std::string> Words(const std::string& line);

}  // namespace rknnd::board

#endif  // DAEMON_BOARD_FILES_H_
