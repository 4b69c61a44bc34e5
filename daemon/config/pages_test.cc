#include "daemon/config/pages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace rknnd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string FileText(const std::string& path_in_tree) {
  std::ifstream file(RKNND_SOURCE_ROOT "/" + path_in_tree);
  EXPECT_TRUE(file.is_open()) << path_in_tree;
  return {std::istreambuf_iterator<char>(file), {}};
}

KnownKey Key(const std::string& name) {
  for (const KnownKey& key : KnownKeys()) {
    if (key.name == name) return key;
  }
  ADD_FAILURE() << name;
  return {};
}

TEST(ConfigPagesTest, DocumentationHasTheRowOfEachKey) {
  constexpr char kPage[] = "docs/configuration.md";
  const std::string page = FileText(kPage);
  for (const KnownKey& key : KnownKeys()) {
    const std::string row = MarkdownRow(key);
    EXPECT_TRUE(page.find("\n" + row + "\n") != std::string::npos)
        << kPage << " lacks this line, or has another for " << key.name << ":\n"
        << row << "\nOr have all written: " RKNND_BINARY_ROOT
        << "/pages/config_pages tables " << kPage << " " << kPage;
  }
  // Not the pages themselves: they are long.
  EXPECT_TRUE(page == WithMarkdownRows(page))
      << kPage << " has a row of no key, or lacks one";
}

TEST(ConfigPagesTest, RowSaysAllThatIsKnown) {
  EXPECT_THAT(
      MarkdownRow(Key("limits.memory")),
      HasSubstr("| `limits.memory` | bytes | from 4096 | 4 GiB | reload "
                "| Memory of a session. |"));
  EXPECT_THAT(MarkdownRow(Key("memory.isolate")),
              HasSubstr("| text | `\"strict\"`, `\"off\"` | `\"strict\"` | "
                        "restart |"));
  EXPECT_THAT(MarkdownRow(Key("limits.users.queue")),
              HasSubstr("| number | | as in `[limits.user]` | reload |"));
}

TEST(ConfigPagesTest, RowsAreWrittenWhereTheyBelong) {
  const std::string before = MarkdownRow(Key("socket_mode"));
  const std::string row = MarkdownRow(Key("socket_group"));
  const std::string after = MarkdownRow(Key("admin_mode"));
  const std::string page = FileText("docs/configuration.md");
  const auto with = [&](const std::string& middle) {
    std::string text = page;
    const std::string rows = before + "\n" + row + "\n" + after;
    const size_t at = text.find(rows);
    EXPECT_NE(at, std::string::npos);
    return text.replace(at, rows.size(), before + "\n" + middle + after);
  };
  EXPECT_EQ(WithMarkdownRows(with("")), page) << "missing";
  EXPECT_EQ(WithMarkdownRows(
                with("| `socket_group` | number | | 7 | reload | Old. |\n")),
            page)
      << "wrong";
  EXPECT_EQ(WithMarkdownRows(
                with(row + "\n| `gone` | number | | 7 | reload | Old. |\n")),
            page)
      << "of no key";
}

TEST(ConfigPagesTest, ManualPageHasEachKey) {
  const auto page = ManualPage(FileText("docs/man/rknnd.toml.5.in"));
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(*page,
              AllOf(HasSubstr(".It Cm weight Pq live\nPart of the NPU's time "),
                    HasSubstr("Type: number, 1 to 1000; default: 100.\n"),
                    HasSubstr(".It Cm pace\n"), Not(HasSubstr("\n@keys"))));
}

TEST(ConfigPagesTest, WhatATextDoesNotAskForIsNamed) {
  const std::string text = FileText("packaging/rknnd.toml.in");
  const auto with = [&text](const std::string& line, const std::string& other) {
    std::string changed = text;
    changed.replace(changed.find(line), line.size(), other);
    return std::string(ExampleFile(changed).status().message());
  };
  EXPECT_EQ(with("@keys limits@", "@keys limits@"), "");
  EXPECT_THAT(with("@keys limits@\n", ""),
              HasSubstr("key 'limits.sessions' is in no line '@keys TABLE@'"));
  EXPECT_THAT(with("@keys physical_memory@\n", ""),
              HasSubstr("key 'physical_memory.uid' is in no line"));
  EXPECT_THAT(with("soc pace", "soc pacee"),
              HasSubstr("'@keys . device soc pacee cache@': not all of these "
                        "are keys"));
  EXPECT_THAT(with("@keys limits@", "@keys limit@"),
              HasSubstr("line '@keys limit@': not all"));
}

}  // namespace
}  // namespace rknnd
