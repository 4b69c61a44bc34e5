#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "daemon/config/config.h"

namespace rknnd {
namespace {

using ::testing::HasSubstr;

// What is wrong with a text; "" if nothing is.
std::string LimitsComplaint(const std::string& text) {
  Config config;
  return std::string(ReadToml(text, "f", config).message());
}

TEST(LimitsConfigTest, LimitsOfUsersAndGroupsAreTakenOver) {
  Config config;
  const absl::Status status = ReadToml(R"(
[limits]
address_space = 1073741824
mappings = 4096
[limits.user]
memory = 4096
contexts = 5
buffers = 6
sessions = 7
queue = 8
[[limits.users]]
uid = 1000
memory = 8192
[[limits.users]]
user = "root"
memory = 0
contexts = 0
buffers = 0
sessions = 0
queue = 0
[[limits.groups]]
group = "root"
sessions = 2
queue = 3
)",
                                       "test.toml", config);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(config.address_space, 1'073'741'824U);
  EXPECT_EQ(config.mappings, 4096U);
  const core::UserLimits all{4096, 5, 6, 7, 8};
  EXPECT_EQ(config.user_limits, all);
  // What is not named is as in [limits.user]; 0 is none.
  const std::map<uint32_t, core::UserLimits> users = {
      {0, {0, 0, 0, 0, 0}}, {1000, {8192, 5, 6, 7, 8}}};
  EXPECT_EQ(config.users, users);
  const std::map<uint32_t, core::UserLimits> groups = {{0, {4096, 5, 6, 2, 3}}};
  EXPECT_EQ(config.groups, groups);
}

TEST(LimitsConfigTest, LimitsOfSessionsAreTakenOver) {
  Config config;
  ASSERT_TRUE(ReadToml("[limits]\npending_connections = 3\npending_of_socket = "
                       "2\nbuffer_bytes = 4096\n"
                       "dump_bytes = 8192\n",
                       "f", config)
                  .ok());
  EXPECT_EQ(config.server_limits.pending_connections, 3U);
  EXPECT_EQ(config.server_limits.pending_of_socket, 2U);
  EXPECT_EQ(config.limits.buffer_bytes, 4096U);
  EXPECT_EQ(config.limits.dump_bytes, 8192U);
}

TEST(LimitsConfigTest, WhoIsGivenAShareOnlyKeepsTheLimitsOfAll) {
  Config config;
  ASSERT_TRUE(ReadToml("[limits.user]\nmemory = 4096\n"
                       "[[limits.users]]\nuid = 7\nweight = 300\n",
                       "f", config)
                  .ok());
  EXPECT_TRUE(config.users.empty());
  EXPECT_EQ(config.scheduling.users[7].weight, 300U);
}

TEST(LimitsConfigTest, CoresAreTakenOver) {
  Config config;
  ASSERT_TRUE(ReadToml("[limits.user]\ncores = [0]\n"
                       "[[limits.users]]\nuid = 7\ncores = [1, 2]\n",
                       "f", config)
                  .ok());
  EXPECT_EQ(config.scheduling.share.cores, 1U);
  EXPECT_EQ(config.scheduling.users[7].cores, 6U);
  for (const char* wrong : {"0", "[]", "[3]", "[-1]", "[\"0\"]"}) {
    EXPECT_THAT(LimitsComplaint(std::string("[limits.user]\ncores = ") + wrong),
                HasSubstr("'f' line 2: key 'limits.user.cores'"))
        << wrong;
  }
}

TEST(LimitsConfigTest, UsersOfLimitsAreNamedOnceEach) {
  EXPECT_THAT(LimitsComplaint("[[limits.users]]\nmemory = 1\n"),
              HasSubstr("'limits.users.uid' is missing"));
  EXPECT_THAT(LimitsComplaint("[[limits.users]]\nuid = 7\nmemory = 1\n"
                              "[[limits.users]]\nuid = 7\nmemory = 1\n"),
              HasSubstr("line 4: key 'limits.users.uid' names user 7 again"));
}

TEST(LimitsConfigTest, EntryThatLimitsNothingIsAMistake) {
  EXPECT_THAT(LimitsComplaint("[[limits.users]]\nuid = 0\n"),
              HasSubstr("'f' line 1: key 'limits.users' limits nothing"));
}

TEST(LimitsConfigTest, SharesOfUsersAndGroupsAreTakenOver) {
  Config config;
  EXPECT_EQ(config.scheduling.share.ceiling, core::Priority::kMedium);
  const absl::Status status = ReadToml(R"(
[[limits.groups]]
gid = 5
max_priority = "high"
[[limits.users]]
uid = 1000
weight = 300
[[limits.users]]
user = "root"
max_priority = "high"
weight = 400
[limits.user]
max_priority = "low"
weight = 50
)",
                                       "f.toml", config);
  ASSERT_TRUE(status.ok()) << status;
  using core::Priority;
  using core::SharePolicy;
  EXPECT_EQ(config.scheduling.share, (SharePolicy{Priority::kLow, 50}));
  EXPECT_EQ(config.scheduling.users,
            (std::map<uint32_t, SharePolicy>{{0, {Priority::kHigh, 400}},
                                             {1000, {Priority::kLow, 300}}}));
  EXPECT_EQ(config.scheduling.groups,
            (std::map<uint32_t, SharePolicy>{{5, {Priority::kHigh, 50}}}));
}

TEST(LimitsConfigTest, UserWithoutAShareOfItsOwnHasThatOfItsGroups) {
  Config config;
  ASSERT_TRUE(
      ReadToml("[[limits.users]]\nuid = 7\nmemory = 8192\n", "f", config).ok());
  EXPECT_EQ(config.users[7].memory, 8192U);
  EXPECT_TRUE(config.scheduling.users.empty());
}

TEST(LimitsConfigTest, WrongSharesAreRefusedWithTheirLine) {
  const struct {
    const char *text, *says;
  } wrong[] = {
      {"[limits.user]\nmax_priority = \"urgent\"\n",
       "'f' line 2: key 'limits.user.max_priority' is 'urgent', must be "
       "\"high\", \"medium\" or \"low\""},
      {"[limits.user]\nweight = 0\n",
       "'f' line 2: key 'limits.user.weight' is 0, must be 1 to 1000"},
      {"[[limits.users]]\nuser = \"no such user\"\n",
       "'f' line 2: key 'limits.users.user' is 'no such user': this machine "
       "has no user of that name"},
      {"[[limits.groups]]\ngroup = \"no such group\"\n",
       "'f' line 2: key 'limits.groups.group' is 'no such group': this machine "
       "has no group of that name"},
      {"[[limits.users]]\nuid = 0\nuser = \"root\"\n", "stands beside 'user'"},
      {"[[limits.users]]\nuid = 0\nweight = 1\n"
       "[[limits.users]]\nuser = \"root\"\nweight = 1\n",
       "names user 0 again"},
      {"[[limits.groups]]\nweight = 5\n",
       "'f' line 1: key 'limits.groups.gid' is missing"},
      {"[[limits.groups]]\ngid = 5\nweight = 1\n"
       "[[limits.groups]]\ngid = 5\nweight = 1\n",
       "names group 5 again"},
      {"[[limits.groups]]\ngid = 5\nuid = 6\nweight = 1\n",
       "key 'limits.groups.uid' is unknown"},
      {"[limits]\ngroups = 5\n", "must be a list: [[limits.groups]]"},
  };
  for (const auto& one : wrong) {
    Config config;
    EXPECT_THAT(std::string(ReadToml(one.text, "f", config).message()),
                HasSubstr(one.says));
  }
}

}  // namespace
}  // namespace rknnd
