// Called once by rknnd-run; see program_environment.h.

#include "client/under/program_environment.h"

#include <filesystem>
#include <system_error>

namespace rknnd::client {

using base::Code;
using base::Error;
using base::Expected;

Expected<std::string> FindOurs(const std::vector<std::string>& folders) {
  std::string looked_in;
  for (const std::string& folder : folders) {
    std::error_code error;
    const std::filesystem::path path =
        std::filesystem::canonical(folder, error);
    if (!error && std::filesystem::exists(path / kUnderLibrary, error) &&
        std::filesystem::exists(path / kUnderModule, error)) {
      if (path.string().find_first_of(":; \t") != std::string::npos) {
        return Error{Code::kFailedPrecondition,
                     "the folder '" + path.string() +
                         "' has a colon, a semicolon or a blank in its name, "
                         "which the loader takes for two folders: install "
                         "rknnd elsewhere"};
      }
      return path.string();
    }
    looked_in += looked_in.empty() ? "" : " and ";
    looked_in += "'" + folder + "'";
  }
  return Error{Code::kNotFound, std::string(kUnderLibrary) + " and " +
                                    kUnderModule + " are not in " + looked_in +
                                    ": install the package librknnd1 again"};
}

std::string PutInFront(std::string_view entry, std::string_view list) {
  std::string result(entry);
  while (!list.empty()) {
    const size_t end = list.find_first_of(":;");
    const std::string_view next = list.substr(0, end);
    list.remove_prefix(end == std::string_view::npos ? list.size() : end + 1);
    if (next.empty() || next == entry) continue;
    result += ':';
    result += next;
  }
  return result;
}

}  // namespace rknnd::client
