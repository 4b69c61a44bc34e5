// Tests of the command line: what it does to paths.

#include "daemon/process/command_line.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <optional>

namespace rknnd {
namespace {

TEST(CommandLineTest, PathsBeginInTheCurrentFolder) {
  std::array<const char*, 9> arguments = {
      "rknnd",       "--socket",           "./run/s.sock",
      "--cache-dir", "../cache",           "--state-dir",
      "/var/lib/x",  "--model-repository", "models"};
  int code = 0;
  const std::optional<CommandLine> line =
      ParseCommandLine(static_cast<int>(arguments.size()),
                       const_cast<char**>(arguments.data()), &code);
  ASSERT_TRUE(line.has_value());
  const std::filesystem::path here = std::filesystem::current_path();
  EXPECT_EQ(line->socket, here / "run/s.sock");
  EXPECT_EQ(line->cache_dir, here.parent_path() / "cache");
  EXPECT_EQ(line->state_dir, "/var/lib/x");
  EXPECT_EQ(line->model_repository, here / "models");
}

TEST(CommandLineTest, AnEmptyFolderStaysEmpty) {
  std::array<const char*, 3> arguments = {"rknnd", "--cache-dir", ""};
  int code = 0;
  const std::optional<CommandLine> line =
      ParseCommandLine(static_cast<int>(arguments.size()),
                       const_cast<char**>(arguments.data()), &code);
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->cache_dir, "");
  EXPECT_EQ(line->model_repository, std::nullopt);
}

}  // namespace
}  // namespace rknnd
