// What rknnctl says of memory against what the kernel says of the daemon, the
// limits on it, and what a large one costs the others.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/memfd.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/proc.h"
#include "tests/integration/harness/rknnctl.h"
#include "tests/integration/harness/sanitized.h"

namespace rknnd::integration {
namespace {

using base::Code;
using nlohmann::json;

class MemoryAccountsTest : public IntegrationTest {
 protected:
  void StartLimitedDaemon(const std::string& config) {
    DaemonOptions options;
    options.more = {"--config", WriteFile(folder() + "/limits.toml", config)};
    StartDaemon(std::move(options));
  }
  json Memory() { return AskRknnctl(folder(), daemon().target(), {"mem"}); }
  // The loader may hold a model file's bytes for a moment longer, the pager
  // pages of what has gone.
  json SettledMemory() {
    json memory;
    EXPECT_TRUE(Eventually([&] {
      memory = Memory();
      return memory["kinds"]["other"] == 0;
    }));
    return memory;
  }
};

struct Sums {
  uint64_t size = 0, rss = 0;
};

Sums SumOf(pid_t pid, const std::vector<std::string>& prefixes) {
  Sums sums;
  for (const std::string& prefix : prefixes) {
    for (const NamedMapping& mapping : MappingsOf(pid, prefix)) {
      sums.size += mapping.size;
      sums.rss += mapping.rss;
    }
  }
  return sums;
}

testing::AssertionResult WithinTwoPercent(uint64_t said, uint64_t kernel) {
  const uint64_t off = said > kernel ? said - kernel : kernel - said;
  if (off * 50 <= kernel) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << said << " bytes are said, the kernel says " << kernel;
}

TEST_F(MemoryAccountsTest, SumIsWhatTheKernelReportsForTheDaemon) {
  StartDaemon();
  const TestModel heavy = MakeHeavy(folder());
  const TestModel chain = MakeChain(folder());
  const TestModel conv = MakeConvNet(folder());
  const auto one = StartClient();
  const auto two = StartClient();
  const auto three = StartClient();
  for (const auto& [client, model] :
       {std::pair(one.get(), &heavy), std::pair(two.get(), &chain),
        std::pair(three.get(), &conv)}) {
    ASSERT_TRUE(Done(client->Do("init m " + model->path)));
    ASSERT_TRUE(Done(client->Do("bind_all m")));
  }
  // Weights that two processes use are there once.
  ASSERT_TRUE(Done(two->Do("init heavy " + heavy.path)));
  ASSERT_TRUE(Done(two->Do("import i m sealed 8388608 8388608 0")));
  ASSERT_TRUE(Done(three->Do("create c m 5000000")));
  ASSERT_TRUE(Done(three->Do("run m")));

  const json kinds = SettledMemory()["kinds"];

  const pid_t pid = daemon().pid();
  // What is ours, what clients brought, and dma-bufs where there are any.
  const Sums all =
      SumOf(pid, {"/memfd:rknnd-weights", "/memfd:rknnd-buffer",
                  "/memfd:runner", "/dmabuf:", "anon_inode:dmabuf"});
  const auto weight = kinds["weight"].get<uint64_t>();
  const uint64_t total =
      weight + kinds["internal"].get<uint64_t>() + kinds["io"].get<uint64_t>();
  EXPECT_TRUE(WithinTwoPercent(total, all.size));
  EXPECT_TRUE(WithinTwoPercent(total, all.rss));
  EXPECT_TRUE(
      WithinTwoPercent(weight, SumOf(pid, {"/memfd:rknnd-weights"}).size));
  EXPECT_GT(total, 20U << 20);
  RecordProperty("said", std::to_string(total));
  RecordProperty("kernel", std::to_string(all.size));
}

TEST_F(MemoryAccountsTest, NothingIsMappedWhenAllHaveGone) {
  StartDaemon();
  const TestModel conv = MakeConvNet(folder());
  {
    const auto client = StartClient();
    ASSERT_TRUE(Done(client->Do("init m " + conv.path)));
    ASSERT_TRUE(Done(client->Do("import i m sealed 8388608 8388608 0")));
    ASSERT_TRUE(Done(client->Do("create c m 5000000")));
  }
  EXPECT_TRUE(Eventually([&] {
    return SumOf(daemon().pid(), {"/memfd:rknnd-buffer", "/memfd:runner",
                                  "/dmabuf:", "anon_inode:dmabuf"})
               .size == Memory()["kinds"]["internal"];
  }));
}

// ---- limits -----------------------------------------------------------------

TEST_F(MemoryAccountsTest, ExhaustedBudgetNamesTheLargestHolders) {
  StartLimitedDaemon("[limits]\naddress_space = 16777216\n");
  StartNeighbour();
  const TestModel conv = MakeConvNet(folder());
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init m " + conv.path)));
  ASSERT_TRUE(Done(client->Do("create big m 12582912")));

  EXPECT_THAT(client->Do("create more m 8388608"),
              Fails(RKNN_ERR_FAIL, "limit 'address_space' of 16777216 bytes"));
  EXPECT_THAT(client->Do("import more m sealed 8388608 8388608 0"),
              Fails(RKNN_ERR_FAIL, "the largest holders: session"));
  const TestModel heavy = MakeHeavy(folder());
  EXPECT_THAT(client->Do("init h " + heavy.path),
              Fails(RKNN_ERR_MALLOC_FAIL, "'address_space'"));

  EXPECT_TRUE(NeighbourIsWell());
  ASSERT_TRUE(Done(client->Do("destroy_mem m big")));
  EXPECT_TRUE(Done(client->Do("create more m 8388608")));
  const json budget = Memory()["budget"];
  EXPECT_EQ(budget["total"], 16777216);
  EXPECT_LE(budget["used"], budget["total"]);
}

TEST_F(MemoryAccountsTest, UsersLimitIsThatOfAllItsProcesses) {
  StartLimitedDaemon("[limits.user]\nmemory = 1048576\ncontexts = 2\n");
  const TestModel conv = MakeConvNet(folder());
  const auto first = StartClient();
  const auto second = StartClient();
  ASSERT_TRUE(Done(first->Do("init m " + conv.path)));
  ASSERT_TRUE(Done(second->Do("init m " + conv.path)));
  ASSERT_TRUE(Done(first->Do("create a m 786432")));

  EXPECT_THAT(second->Do("create a m 524288"),
              Fails(RKNN_ERR_FAIL, "'limits.user.memory' of 1048576 bytes"));
  EXPECT_THAT(second->Do("dup n m"),
              Fails(RKNN_ERR_MALLOC_FAIL, "'limits.user.contexts' is 2"));
  EXPECT_TRUE(Done(second->Do("create a m 131072")));
}

// As another user, where this one may become another: then the kernel tells the
// daemon so of whoever connects meanwhile. Of this thread alone.
class AsSomebodyElse {
 public:
  static constexpr uid_t kSomebody = 12345;
  AsSomebodyElse() { syscall(SYS_setresuid, -1, kSomebody, -1); }
  ~AsSomebodyElse() { syscall(SYS_setresuid, -1, 0, -1); }
  AsSomebodyElse(const AsSomebodyElse&) = delete;
  AsSomebodyElse& operator=(const AsSomebodyElse&) = delete;
};

TEST_F(MemoryAccountsTest, MappingsOfOneUserLeaveRoomForAnothersModel) {
  if (geteuid() != 0) GTEST_SKIP() << "only root may become another user";
  StartLimitedDaemon("socket_mode = 0o666\n[limits]\nmappings = 4096\n");
  std::filesystem::permissions(folder(), std::filesystem::perms(0755));
  std::vector<std::unique_ptr<RawClient>> greedy;
  {
    const AsSomebodyElse other;
    for (int i = 0; i < 4; ++i) {
      greedy.push_back(std::make_unique<RawClient>(daemon().socket()));
      greedy.back()->SayHello();
    }
  }
  uint32_t made = 0;
  base::Error refused{Code::kOk, ""};
  for (; made < 4096 && refused.code == Code::kOk; ++made) {
    wire::AllocateBuffer allocate{};
    allocate.buffer = made / 4 + 1;
    allocate.size = 4096;
    const auto answer =
        greedy[made % 4]->Ask(wire::Verb::kAllocateBuffer, allocate);
    if (!answer.ok()) refused = answer.error();
  }
  // Nine tenths of three quarters, of which each session has four.
  EXPECT_EQ(made - 1, 2765U - 16);
  EXPECT_EQ(refused.code, Code::kResourceExhausted);
  EXPECT_THAT(refused.message,
              testing::HasSubstr("user 12345 has 2765 of the 3072 mappings"));

  StartNeighbour();
  const TestModel conv = MakeConvNet(folder());
  const auto client = StartClient();
  EXPECT_TRUE(Done(client->Do("init m " + conv.path)));
  EXPECT_TRUE(Done(client->Do("create more m 8192")));
  EXPECT_TRUE(NeighbourIsWell());
}

// ---- a large one beside the others ------------------------------------------

TEST_F(MemoryAccountsTest, OthersAreAnsweredWhileALargeImportIsMade) {
  constexpr uint64_t kLarge = uint64_t{256} << 20;
  StartDaemon();
  RawClient importer(daemon().socket());
  importer.SayHello();
  RawClient other(daemon().socket());
  other.SayHello();
  const auto is_answered = [&] {
    pollfd answer{importer.socket(), POLLIN, 0};
    return poll(&answer, 1, 0) != 0;
  };

  // The daemon has begun with it and is not done: whatever is answered between
  // the two was answered meanwhile. On a machine that is busy with other things
  // the import may be done before we look; not each time.
  bool meanwhile = false;
  for (uint32_t number = 1; number <= 20 && !meanwhile; ++number) {
    wire::ImportBuffer import{};
    import.buffer = number;
    import.size = kLarge;
    wire::Frame request;
    request.verb = wire::Verb::kImportBuffer;
    request.request = number;
    request.body = *wire::Encode(import);
    auto memfd = base::MakeMemfd("large", kLarge);
    ASSERT_TRUE(memfd.ok());
    request.fds.push_back(*std::move(memfd));
    ASSERT_TRUE(
        wire::SendFrame(importer.socket(), request, base::Block::kYes).ok());
    while (!is_answered() &&
           other.Report(rknnd_v1_ReportKind_REPORT_MEMORY).memory.io < kLarge) {
      ASSERT_FALSE(HasFailure());
    }
    wire::AllocateBuffer allocate{};
    allocate.buffer = 1;
    allocate.size = 4096;
    ASSERT_TRUE(other.Ask(wire::Verb::kAllocateBuffer, allocate).ok());
    wire::ReleaseBuffer release{};
    release.buffer = 1;
    ASSERT_TRUE(other.Ask(wire::Verb::kReleaseBuffer, release).ok());
    meanwhile = !is_answered();

    const auto reply = importer.Receive();
    ASSERT_TRUE(reply.ok());
    ASSERT_EQ(reply->code, Code::kOk);
    release.buffer = number;
    ASSERT_TRUE(importer.Ask(wire::Verb::kReleaseBuffer, release).ok());
  }

  EXPECT_TRUE(meanwhile);
}

TEST_F(MemoryAccountsTest, WhatLargeModelsLeaveIsGivenBackToTheKernel) {
  if (kSanitized) GTEST_SKIP() << "a sanitizer's allocator keeps what it has";
  StartLimitedDaemon("grace = 0\n");
  const TestModel heavy = MakeHeavy(folder());
  const auto client = StartClient();
  const uint64_t before = UseOf(daemon().pid()).rss;
  // After the first the C library takes as large a piece for one to keep.
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(Done(client->Do("init m " + heavy.path)));
    ASSERT_TRUE(Done(client->Do("destroy m")));
  }
  uint64_t after = 0;
  // A model's own size is 64 MiB.
  constexpr uint64_t kMost = uint64_t{24} << 20;
  EXPECT_TRUE(Eventually([&] {
    after = UseOf(daemon().pid()).rss;
    return after < before + kMost;
  })) << after
      << " bytes, before " << before;
}

}  // namespace
}  // namespace rknnd::integration
