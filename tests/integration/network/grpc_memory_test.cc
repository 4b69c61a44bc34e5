// What peers of the gRPC port may make the daemon keep before anybody knows who
// they are: they send what gRPC would gather without end, and memory stays
// within what the configuration says, and others are answered.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/integration/harness/http2_client.h"
#include "tests/integration/harness/sanitized.h"
#include "tests/integration/network/grpc_harness.h"

namespace rknnd::integration {
namespace {

using testing::HasSubstr;
using Frame = Http2Frame;

constexpr char kMemoryToken[] = "0123456789abcdef0123456789abcdef";
constexpr uint64_t kMemory = 32 << 20;
// What is not counted: threads' stacks, what the heap keeps for later.
constexpr uint64_t kSlack = 64 << 20;
// A peer that is held back so long sends no more.
constexpr int kPatience = 3000;

class GrpcMemoryTest : public GrpcTest {
 protected:
  GrpcMemoryTest() {
    const std::string tokens =
        WriteFile(folder() + "/tokens", "user ci " + std::string(kMemoryToken));
    EXPECT_EQ(chmod(tokens.c_str(), 0600), 0);
    Serve("tokens = \"" + tokens + "\"\nmemory = " + std::to_string(kMemory) +
          "\nmessage_bytes = 8388608\nrequests = 64\nconnections = 128\n");
    EXPECT_TRUE(NeighbourIsAnswered());
    before_ = Resident();
  }

  // The most that it ever had in memory; what it has.
  uint64_t Resident() { return Status("VmHWM:"); }
  uint64_t ResidentNow() { return Status("VmRSS:"); }
  uint64_t Status(const std::string& field) {
    std::istringstream status(
        ReadText("/proc/" + std::to_string(daemon().pid()) + "/status"));
    for (std::string word; status >> word;) {
      if (word != field) continue;
      uint64_t kilobytes = 0;
      status >> kilobytes;
      return kilobytes << 10;
    }
    return 0;
  }
  bool NeighbourIsAnswered() {
    const GrpcClient client(Address(), {.token = kMemoryToken});
    return Metadata(client).ok();
  }

  // From so many connections at once, of which each sends what a function that
  // `make` made says.
  void Attack(int peers, bool listens,
              const std::function<std::function<std::string()>()>& make) {
    const auto port = static_cast<uint16_t>(std::stoi(Port()));
    std::vector<std::thread> threads;
    for (int i = 0; i < peers; ++i) {
      threads.emplace_back([&make, port, listens] {
        Http2Client client(port);
        client.Flood(make(), listens, kPatience);
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_TRUE(NeighbourIsAnswered());
    if (kSanitized) return;
    EXPECT_LT(Resident(), before_ + kMemory + kSlack);
  }
  // `first`, then `text` so often.
  static std::function<std::string()> Repeated(const std::string& first,
                                               const std::string& text,
                                               int times) {
    return [first, text, times, sent = 0]() mutable {
      const int now = sent++;
      if (now == 0) return first;
      return now <= times ? text : std::string();
    };
  }
  // So many calls, one after the other, each followed by `then` of its number.
  static std::function<std::string()> Calls(
      const std::string& path, int count,
      const std::function<std::string(uint32_t)>& then) {
    return [headers = EncodeCall(path), left = count, stream = uint32_t{1},
            then]() mutable {
      std::string calls;
      for (int i = 0; i < 50 && left > 0; ++i, --left, stream += 2) {
        calls +=
            EncodeHttp2(Frame::kHeaders, kHttp2EndHeaders, stream, headers) +
            then(stream);
      }
      return calls;
    };
  }
  static std::string TakeBack(uint32_t stream) {
    return EncodeHttp2(Frame::kReset, 0, stream, std::string("\0\0\0\10", 4));
  }

  uint64_t before_ = 0;
};

constexpr char kHealthWatch[] = "/grpc.health.v1.Health/Watch";
constexpr char kReflection[] =
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

TEST_F(GrpcMemoryTest, HeadersWithoutEnd) {
  const std::string first =
      EncodeHttp2(Frame::kHeaders, 0, 1, EncodeCall(kHealthWatch));
  const std::string more = EncodeHttp2(
      Frame::kContinuation, 0, 1, EncodeHeader("x", std::string(8000, 'y')));
  Attack(1, true, [&] { return Repeated(first, more, 30000); });
  EXPECT_THAT(daemon().log(), HasSubstr("a call's headers are too large"));
}

TEST_F(GrpcMemoryTest, CallsThatAreTakenBackAtOnce) {
  for (const char* path : {kHealthWatch, "/nobody/Nothing"}) {
    Attack(4, true, [&] { return Calls(path, 8000, TakeBack); });
  }
}

TEST_F(GrpcMemoryTest, ReflectionThatIsTakenBackWhileOthersHoldIt) {
  Attack(4, true, [] {
    return Calls(kReflection, 8000, [](uint32_t stream) {
      return stream < 40 ? std::string() : TakeBack(stream);
    });
  });
}

TEST_F(GrpcMemoryTest, CallsThatAreOpenedAndLeft) {
  Attack(8, true, [] {
    return Calls(kHealthWatch, 10000, [](uint32_t) { return std::string(); });
  });
}

TEST_F(GrpcMemoryTest, WhatACrowdLeavesIsGivenBackToTheKernel) {
  if (kSanitized) GTEST_SKIP() << "sanitizers keep what is freed";
  const uint64_t before = ResidentNow();
  Attack(100, true, [] {
    return Calls(kHealthWatch, 100, [](uint32_t) { return std::string(); });
  });
  const uint64_t of_crowd = Resident() - before;
  ASSERT_GT(of_crowd, uint64_t{16} << 20);
  EXPECT_TRUE(
      Eventually([&] { return ResidentNow() < before + of_crowd / 2; }));
}

TEST_F(GrpcMemoryTest, AnswersThatAreNotTaken) {
  Attack(4, false, [] {
    return Calls("/nobody/Nothing", 10000,
                 [](uint32_t) { return std::string(); });
  });
  const std::string settings = EncodeHttp2(Frame::kSettings, 0, 0);
  std::string many;
  for (int i = 0; i < 1000; ++i) many += settings;
  Attack(4, false, [&] { return Repeated(settings, many, 3000); });
}

TEST_F(GrpcMemoryTest, FramesThatMeanNothing) {
  const std::string frame =
      EncodeHttp2(Frame::kPriority, 0, 1, std::string(5, '\0'));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += frame;
  Attack(4, true, [&] { return Repeated(many, many, 10000); });
  EXPECT_THAT(daemon().log(), HasSubstr("it sends frames that mean nothing"));
}

TEST_F(GrpcMemoryTest, FramesThatAreOnlyBegun) {
  // Of no known kind, which no flow control holds back. gRPC would make room
  // for all of each.
  const std::string begun =
      EncodeHttp2(Frame{99}, 0, 0, std::string(500'000, '\0')).substr(0, 9);
  Attack(100, true, [&] { return Repeated(begun, "", 0); });
  EXPECT_THAT(daemon().log(), HasSubstr("a frame of no known kind"));
}

TEST_F(GrpcMemoryTest, HeadersThatExpand) {
  // An entry of 4000 bytes in HPACK's table, then named 15000 times a call.
  const std::string entry =
      "\x40" + EncodeHeader("a", std::string(3900, 'z')).substr(1);
  std::string first = EncodeHttp2(Frame::kHeaders, kHttp2EndHeaders, 1,
                                  EncodeCall(kHealthWatch) + entry);
  const auto make = [&] {
    return [first, stream = uint32_t{1}]() mutable {
      if (stream == 1) {
        stream += 2;
        return first;
      }
      stream += 2;
      return stream > 400
                 ? std::string()
                 : EncodeHttp2(
                       Frame::kHeaders, kHttp2EndHeaders, stream,
                       EncodeCall(kHealthWatch) + std::string(15000, '\xbe'));
    };
  };
  Attack(4, true, make);
}

}  // namespace
}  // namespace rknnd::integration
