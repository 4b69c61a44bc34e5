// The map of the SRAM as people and scripts read it.

#include "client/ctl/reports/sram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace rknnd::client {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

namespace fs = std::filesystem;

std::vector<std::string> SramKeys(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

wire::SramWindow Window(uint64_t first, uint64_t pages, const char* holder) {
  wire::SramWindow window{};
  window.offset = first * 4096;
  window.size = pages * 4096;
  wire::SetText(window.holder, holder);
  return window;
}

wire::Report Rk3588() {
  wire::Report report;
  wire::SetText(report.device, "soft");
  wire::SetText(report.soc, "rk3588");
  wire::SetText(report.driver, "0.9.8");
  report.sram_total = 978944;
  report.sram_free = 978944;
  report.sram_base = 0xff001000;
  return report;
}

TEST(SramOutputTest, MapIsAsTheKernelDrawsIt) {
  wire::Report report = Rk3588();
  report.sram_free -= 36 * 4096;
  report.sram_windows = {Window(0, 36, "context 1 of session 2")};

  EXPECT_THAT(
      SramOutput(report, "").text,
      HasSubstr("SRAM bitmap: \"*\" - used, \".\" - free (1bit = 4KB)\n"
                "[000] [********************************]\n"
                "[001] [****............................]\n"
                "[002] [................................]\n"
                "[003] [................................]\n"
                "[004] [................................]\n"
                "[005] [................................]\n"
                "[006] [................................]\n"
                "[007] [...............]\n"
                "SRAM total size: 978944, used: 147456, free: 831488\n"));
}

TEST(SramOutputTest, RangeComesFirstAndHoldersLast) {
  wire::Report report = Rk3588();
  report.sram_windows = {Window(0, 1, "context 1 of session 2\x1b[2J"),
                         Window(200, 39, "shared, core 0")};
  report.sram_windows[1].core_mask = 1;
  report.sram_windows[1].contexts = 3;
  report.sram_windows[1].saved = 1 << 20;

  const std::string text = SramOutput(report, "").text;

  EXPECT_TRUE(
      text.starts_with("SRAM region: [0x00000000ff001000, 0x00000000ff0f0000), "
                       "SRAM size: 0xef000\n"))
      << text;
  EXPECT_THAT(text, AllOf(HasSubstr("0xff0c9000  0xff0f0000"),
                          HasSubstr("  1.0 MiB  shared, core 0: 3 contexts\n"),
                          Not(HasSubstr("\x1b"))));
}

TEST(SramOutputTest, JsonHasTheNamesThatScriptsRelyOn) {
  wire::Report report = Rk3588();
  report.sram_windows = {Window(1, 2, "x")};

  const Json json = SramOutput(report, "").json;

  EXPECT_THAT(SramKeys(json), ElementsAre("total", "free", "base", "page",
                                          "bitmap", "windows"));
  EXPECT_EQ(json["bitmap"].get<std::string>().substr(0, 5), ".**..");
  EXPECT_EQ(json["bitmap"].get<std::string>().size(), 239U);
  EXPECT_THAT(SramKeys(json["windows"][0]),
              ElementsAre("offset", "size", "holder", "core_mask", "contexts",
                          "saved"));
}

TEST(SramOutputTest, WindowOutsideIsNotDrawn) {
  wire::Report report = Rk3588();
  report.sram_windows = {Window(230, 100, "x"),
                         Window(UINT64_MAX / 4096, 1, "y")};

  const Json json = SramOutput(report, "").json;

  EXPECT_EQ(json["bitmap"].get<std::string>().substr(229), ".*********");
}

TEST(SramOutputTest, WithoutAnyItSaysWhy) {
  wire::Report report = Rk3588();
  report.sram_total = report.sram_free = 0;

  const Output output = SramOutput(report, "no SRAM: reasons");

  EXPECT_EQ(output.text, "no SRAM: reasons\n");
  EXPECT_EQ(output.json["why"], "no SRAM: reasons");
  EXPECT_EQ(output.json["total"], 0);
}

class WhyNoSramTest : public ::testing::Test {
 protected:
  WhyNoSramTest() {
    std::string name = ::testing::TempDir() + "/sram_XXXXXX";
    root_ = mkdtemp(name.data());
    wire::SetText(board_.device, "rknnrt");
    wire::SetText(board_.soc, "rk3588");
    wire::SetText(board_.driver, "0.9.8");
  }
  ~WhyNoSramTest() override { fs::remove_all(root_); }

  void Write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  void WritePacked(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    gzFile file = gzopen((root_ + path).c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
  }
  std::string Why() const { return WhyNoSram(board_, root_, "6.1.0"); }

  std::string root_;
  wire::Report board_;
};

TEST_F(WhyNoSramTest, SocMayHaveNone) {
  wire::SetText(board_.soc, "rk3566");
  EXPECT_THAT(Why(), HasSubstr("no SRAM: the NPU of rk3566 has none"));
}

TEST_F(WhyNoSramTest, DriverMayBeOld) {
  wire::SetText(board_.driver, "0.7.2");
  EXPECT_THAT(Why(), HasSubstr("driver 0.7.2 < 0.8.0"));
}

TEST_F(WhyNoSramTest, KernelMayLackTheOption) {
  WritePacked("/proc/config.gz", "# CONFIG_ROCKCHIP_RKNPU_SRAM is not set\n");
  EXPECT_THAT(Why(), HasSubstr("CONFIG_ROCKCHIP_RKNPU_SRAM not set: build"));
}

TEST_F(WhyNoSramTest, OptionIsFoundInBootToo) {
  Write("/boot/config-6.1.0", "CONFIG_X=y\nCONFIG_ROCKCHIP_RKNPU_SRAM=y\n");
  Write("/proc/device-tree/npu@fdab0000/status", "okay");
  EXPECT_THAT(Why(), HasSubstr("no SRAM: no rockchip,sram in the device tree"));
}

TEST_F(WhyNoSramTest, WhatCannotBeToldIsSaid) {
  EXPECT_THAT(Why(), AllOf(HasSubstr("cannot be told here"),
                           HasSubstr("slower only by DDR contention")));
}

}  // namespace
}  // namespace rknnd::client
