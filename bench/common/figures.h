// A row of the benchmark: what the issue asks, and what was measured.

#ifndef BENCH_COMMON_FIGURES_H_
#define BENCH_COMMON_FIGURES_H_

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace rknnd::bench {

// Thread: one.
class Figures {
 public:
  // `measured` in the words of `asked`, and whether it is that.
  void Add(const std::string& name, const std::string& asked,
           const std::string& measured, bool holds, nlohmann::json details) {
    Print(name, asked, measured, holds ? "yes" : "NO");
    all_hold_ = all_hold_ && holds;
    details["name"] = name;
    details["asked"] = asked;
    details["measured"] = measured;
    details["holds"] = holds;
    rows_.push_back(std::move(details));
  }
  void AddBeside(const std::string& name, const std::string& measured,
                 nlohmann::json details) {
    Print(name, "(for contrast)", measured, "");
    details["name"] = name;
    details["measured"] = measured;
    rows_.push_back(std::move(details));
  }
  static void PrintHead() { Print("", "asked", "measured", "holds"); }

  [[nodiscard]] const nlohmann::json& rows() const { return rows_; }
  [[nodiscard]] bool all_hold() const { return all_hold_; }

 private:
  static void Print(const std::string& name, const std::string& asked,
                    const std::string& measured, const char* holds) {
    std::printf("%-46s %-30s %-34s %s\n", name.c_str(), asked.c_str(),
                measured.c_str(), holds);
    std::fflush(stdout);
  }

  nlohmann::json rows_ = nlohmann::json::array();
  bool all_hold_ = true;
};

// printf's.
template <class... Values>
std::string Text(const char* format, Values... values) {
  char text[256];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

}  // namespace rknnd::bench

#endif  // BENCH_COMMON_FIGURES_H_
