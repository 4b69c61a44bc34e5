#include "tests/vm/npu/standin_counts.h"

#include <gtest/gtest.h>

#include <fstream>

namespace rknnd::vm {

StandinCounts ReadStandin() {
  std::ifstream text("/sys/kernel/debug/rknpu/standin");
  StandinCounts counts;
  std::string name;
  for (uint64_t number = 0; text >> name >> number;) counts[name] = number;
  EXPECT_FALSE(counts.empty()) << "the module is not loaded";
  return counts;
}

void SetStandin(const std::string& parameter, int value) {
  std::ofstream file("/sys/module/rknpu_standin/parameters/" + parameter);
  file << value << std::endl;
  EXPECT_TRUE(file.good()) << parameter;
}

void ExpectNoBreach(const StandinCounts& before) {
  const StandinCounts after = ReadStandin();
  for (const char* what :
       {"stale", "outside", "crowded", "faults", "buffers"}) {
    EXPECT_EQ(after.at(what), before.at(what)) << what;
  }
}

}  // namespace rknnd::vm
