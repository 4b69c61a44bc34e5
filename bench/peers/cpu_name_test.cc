#include "bench/peers/cpu_name.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace rknnd::bench {
namespace {

std::string NameOf(const std::string& cpuinfo, const std::string& board = "") {
  std::istringstream text(cpuinfo);
  return CpuNameOf(text, board);
}

constexpr char kLittleAndBig[] =
    "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd05\n\n"
    "processor\t: 1\nCPU implementer\t: 0x41\nCPU part\t: 0xd05\n\n"
    "processor\t: 2\nCPU implementer\t: 0x41\nCPU part\t: 0xd0b\n";

TEST(CpuNameTest, PcNamesItself) {
  EXPECT_EQ(NameOf("processor\t: 0\nmodel name\t: AMD EPYC\n"), "AMD EPYC");
}

TEST(CpuNameTest, BoardIsItsModelAndItsKindsOfCores) {
  EXPECT_EQ(NameOf(kLittleAndBig, "Radxa ROCK 5B"),
            "Radxa ROCK 5B, 2 x Cortex-A55, 1 x Cortex-A76");
  EXPECT_EQ(NameOf(kLittleAndBig), "2 x Cortex-A55, 1 x Cortex-A76");
}

TEST(CpuNameTest, PartThatIsNotKnownIsSaidByItsNumbers) {
  EXPECT_EQ(NameOf("CPU implementer\t: 0x48\nCPU part\t: 0xd01\n"),
            "1 x part 0xd01 of implementer 0x48");
}

TEST(CpuNameTest, TextWithoutANameIsAnUnknownCpu) {
  EXPECT_EQ(NameOf(""), "unknown CPU");
}

}  // namespace
}  // namespace rknnd::bench
