// What a campaign has found, and what it had done before: for its report.

#ifndef TESTS_TORTURE_FINDINGS_H_
#define TESTS_TORTURE_FINDINGS_H_

#include <cstdio>
#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace rknnd::torture {

// Thread: one.
class Findings {
 public:
  static constexpr size_t kEvents = 50;    // that are told
  static constexpr size_t kFindings = 50;  // likewise; all are counted

  void Did(std::string event) {
    events_.push_back(std::move(event));
    if (events_.size() > kEvents) events_.pop_front();
  }
  void Found(const std::string& what) {
    if (++count_ > kFindings) return;
    std::printf("FOUND %s\n", what.c_str());
    std::fflush(stdout);
  }

  [[nodiscard]] size_t count() const { return count_; }
  void PrintEvents() const {
    std::printf("the last %zu events:\n", events_.size());
    for (const std::string& event : events_) {
      std::printf("  %s\n", event.c_str());
    }
  }

 private:
  std::deque<std::string> events_;
  size_t count_ = 0;
};

}  // namespace rknnd::torture

#endif  // TESTS_TORTURE_FINDINGS_H_
