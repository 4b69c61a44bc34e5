// See cpu_use.h. From /proc/PID/stat and /proc/PID/task/TID/status (proc(5)).

#include "bench/common/cpu_use.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace rknnd::bench {
namespace {

// The words of the file from the state on; none once it has ended.
std::vector<std::string> StatIn(const std::string& process) {
  std::ifstream file(process + "/stat");
  std::string text;
  std::getline(file, text);
  // Behind the name, which may hold anything.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream words(text.substr(name_end + 1));
  std::vector<std::string> all;
  for (std::string word; words >> word;) all.push_back(word);
  return all;
}

double SleepsIn(const std::string& thread) {
  std::ifstream file(thread + "/status");
  for (std::string word; file >> word;) {
    if (word != "voluntary_ctxt_switches:") continue;
    double count = 0;
    file >> count;
    return count;
  }
  return 0;
}

void ForEachNumber(const std::string& folder,
                   const std::function<void(const std::string&)>& visit) {
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end;
       !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) {
      visit(entry->path().string());
    }
  }
}

CpuUse UseIn(const std::string& process, const std::vector<std::string>& stat) {
  CpuUse use;
  if (stat.size() < 13) return use;
  use.cpu = (std::stod(stat[11]) + std::stod(stat[12])) /
            static_cast<double>(sysconf(_SC_CLK_TCK));
  ForEachNumber(process + "/task", [&](const std::string& thread) {
    use.sleeps += SleepsIn(thread);
  });
  return use;
}

}  // namespace

CpuUse CpuUse::operator-(const CpuUse& less) const {
  return {std::max(0.0, cpu - less.cpu), std::max(0.0, sleeps - less.sleeps)};
}

CpuUse UseOf(pid_t process) {
  const std::string folder = "/proc/" + std::to_string(process);
  return UseIn(folder, StatIn(folder));
}

CpuUse UseOfGroup(pid_t group) {
  const std::string number = std::to_string(group);
  CpuUse use;
  ForEachNumber("/proc", [&](const std::string& process) {
    const auto stat = StatIn(process);
    if (stat.size() > 2 && stat[2] == number) use = use + UseIn(process, stat);
  });
  return use;
}

}  // namespace rknnd::bench
