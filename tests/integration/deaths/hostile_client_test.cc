// What a hostile process sends to the session socket. It gets an error or is
// disconnected; its neighbour does not notice.

#include "tests/integration/deaths/hostile_client.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/posix/memfd.h"
#include "base/posix/socket.h"
#include "base/posix/testing/lingering.h"
#include "base/posix/unique_fd.h"

namespace rknnd::integration {
namespace {

using base::Code;
using base::testing::Lingering;
using testing::HasSubstr;

MATCHER_P2(IsRefused, code, words,
           std::string("is refused with the words \"") + words + "\"") {
  if (arg.ok()) return false;
  *result_listener << "it says '" << arg.error().message << "'";
  return arg.error().code == code &&
         arg.error().message.find(words) != std::string::npos;
}

// ---- the socket -------------------------------------------------------------

TEST_F(HostileClientTest, GarbageBeforeHelloIsDisconnected) {
  std::minstd_rand random(1);
  for (const size_t size : {1, 23, 24, 25, 4096, 65536}) {
    RawClient client(daemon().socket());
    client.SendBytes(Noise(random, size));
    ASSERT_TRUE(client.WaitForClose()) << size << " bytes";
  }
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(HostileClientTest, GarbageAfterHelloIsDisconnected) {
  std::minstd_rand random(2);
  for (const size_t size : {1, 23, 24, 4096, 65536}) {
    RawClient client(daemon().socket());
    client.SayHello();
    client.SendBytes(Noise(random, size));
    ASSERT_TRUE(client.WaitForClose()) << size << " bytes";
  }
}

TEST_F(HostileClientTest, GarbageInEveryBodyIsRefused) {
  std::minstd_rand random(3);
  enemy_->SayHello();
  for (uint16_t verb = 0; verb < 256; ++verb) {
    for (const size_t size : {0, 7, 300, 30000}) {
      // Any answer will do, and the connection goes on.
      const auto reply =
          enemy_->Ask(static_cast<wire::Verb>(verb), Noise(random, size));
      if (!reply.ok()) {
        ASSERT_NE(reply.error().code, Code::kDeadlineExceeded) << verb;
        ASSERT_NE(reply.error().message, "") << verb;
      }
    }
  }
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(HostileClientTest, DescriptorsThatTakeAnHourToCloseHoldUpNobody) {
  std::minstd_rand random(4);
  std::vector<Lingering> lingering(3);
  std::vector<RawClient> clients;
  for (size_t i = 0; i < lingering.size(); ++i) {
    ASSERT_TRUE(lingering[i].near.valid());
    clients.emplace_back(daemon().socket());
  }
  clients[1].SayHello();
  // The daemon's are the last ones: it does not look until ours are gone.
  daemon().Stand();
  const auto send = [&](size_t i, const std::vector<std::byte>& bytes) {
    const int fd = lingering[i].near.get();
    EXPECT_TRUE(clients[i].SendBytes(bytes, std::span(&fd, 1)));
    lingering[i].near.reset();
  };
  // In no frame at all; in a request that is refused; and of one who is gone
  // before they are looked at.
  send(0, Noise(random, 1));
  wire::FrameHeader header{};
  header.verb = static_cast<uint16_t>(wire::Verb::kReleaseBuffer);
  const auto bytes = std::as_bytes(std::span(&header, 1));
  send(1, {bytes.begin(), bytes.end()});
  send(2, Noise(random, 1));
  clients.pop_back();
  daemon().GoOn();
  EXPECT_TRUE(clients[0].WaitForClose());
  enemy_->SayHello();
  EXPECT_TRUE(enemy_->Ask(wire::Verb::kReport, wire::ReportRequest{}).ok());
}

TEST_F(HostileClientTest, CrowdThatWaitsForAnswersHoldsUpItsOwnUserOnly) {
  enemy_->SayHello();
  // Each waits twenty thousand times for what only the end of the connection
  // brings: every answer is sent past all of them.
  constexpr size_t kThreads = 32;
  constexpr size_t kEach = 20'000;
  std::vector<std::thread> crowd;
  for (size_t i = 0; i < kThreads; ++i) {
    crowd.emplace_back([socket = enemy_->socket()] {
      std::vector<pollfd> waits(kEach, {socket, 0, 0});
      while (poll(waits.data(), waits.size(), -1) < 0) {
      }
    });
  }
  EXPECT_TRUE(Eventually([this] {
    EXPECT_TRUE(enemy_->Ask(wire::Verb::kReport, wire::ReportRequest{}).ok());
    return daemon().log().find("they are told late from now on") !=
           std::string::npos;
  }));
  // In their order, and to the end.
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(enemy_->Ask(wire::Verb::kReport, wire::ReportRequest{}).ok());
  }
  EXPECT_TRUE(NeighbourIsWell());
  shutdown(enemy_->socket(), SHUT_RDWR);
  for (std::thread& thread : crowd) thread.join();
}

TEST_F(HostileClientTest, RequestsBeforeHelloAreRefused) {
  EXPECT_THAT(enemy_->Ask(wire::Verb::kReport, wire::ReportRequest{}),
              IsRefused(Code::kFailedPrecondition, "before 'Hello'"));
}

TEST_F(HostileClientTest, ProtocolThatIsNotSpokenIsRefused) {
  wire::Hello hello{};
  hello.protocol_min = 1000;
  hello.protocol_max = 2000;
  EXPECT_THAT(enemy_->Ask(wire::Verb::kHello, hello),
              IsRefused(Code::kFailedPrecondition, "1000"));
}

TEST_F(HostileClientTest, ClaimsOfHugeBodiesAreDisconnected) {
  enemy_->SayHello();
  wire::FrameHeader header{};
  header.size = std::numeric_limits<uint32_t>::max();
  header.verb = static_cast<uint16_t>(wire::Verb::kReport);
  header.flags = wire::kBodyInMemfd;
  const auto memfd = base::MakeMemfd("short", 4096);
  ASSERT_TRUE(memfd.ok());
  const int fd = memfd->get();
  enemy_->SendBytes(std::as_bytes(std::span(&header, 1)), {&fd, 1});
  EXPECT_TRUE(enemy_->WaitForClose());
}

TEST_F(HostileClientTest, FloodOfDescriptorsLeavesNone) {
  const size_t before = daemon().open_fds();
  const auto memfd = base::MakeMemfd("many", 4096);
  ASSERT_TRUE(memfd.ok());
  const std::vector<int> fds(200, memfd->get());
  for (int i = 0; i < 20; ++i) {
    RawClient client(daemon().socket());
    client.SayHello();
    wire::FrameHeader header{};
    header.verb = static_cast<uint16_t>(wire::Verb::kReport);
    ASSERT_TRUE(client.SendBytes(std::as_bytes(std::span(&header, 1)), fds));
    ASSERT_TRUE(client.WaitForClose());
  }
  EXPECT_TRUE(Eventually([&] { return daemon().open_fds() <= before; }));
}

TEST_F(HostileClientTest, DescriptorsWithVerbsThatTakeNoneAreClosed) {
  enemy_->SayHello();
  (void)enemy_->Report(rknnd_v1_ReportKind_REPORT_STATUS);
  const size_t before = daemon().open_fds();
  for (int i = 0; i < 100; ++i) {
    auto memfd = base::MakeMemfd("unasked", 4096);
    ASSERT_TRUE(memfd.ok());
    EXPECT_TRUE(
        enemy_
            ->Ask(wire::Verb::kReport, wire::ReportRequest{}, *std::move(memfd))
            .ok());
  }
  // The last may be closed after its answer.
  EXPECT_TRUE(Eventually([&] { return daemon().open_fds() <= before; }));
}

TEST_F(HostileClientTest, OneThatNeverReadsIsDisconnected) {
  enemy_->SayHello();
  wire::Frame request;
  request.verb = wire::Verb::kReport;
  request.body = *wire::Encode(wire::ReportRequest{});
  bool closed = false;
  // Far more answers than any socket holds.
  for (int i = 0; i < 200'000 && !closed; ++i) {
    request.request = static_cast<uint32_t>(i);
    const auto sent =
        wire::SendFrame(enemy_->socket(), request, base::Block::kNo);
    if (sent.ok()) continue;
    if (sent.error().code != Code::kResourceExhausted) closed = true;
    // Its own queue is full: the daemon has stopped listening to it, which is
    // as good.
    if (sent.error().code == Code::kResourceExhausted) break;
  }
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(HostileClientTest, OperatorsVerbsAreRefusedHere) {
  enemy_->SayHello();
  EXPECT_THAT(enemy_->Ask(wire::Verb::kDrain, wire::Empty{}),
              IsRefused(Code::kPermissionDenied, "admin.sock"));
}

// ---- numbers ----------------------------------------------------------------

TEST_F(HostileClientTest, NumbersOfAnotherSessionMeanNothing) {
  enemy_->SayHello();
  const uint32_t context = NeighboursContext();
  const uint32_t buffer = NeighboursBuffer();
  constexpr char kNotHere[] = "does not exist in this session";

  wire::DestroyContext destroy{};
  destroy.context = context;
  EXPECT_THAT(enemy_->Ask(wire::Verb::kDestroyContext, destroy),
              IsRefused(Code::kNotFound, kNotHere));
  wire::SetCoreMask mask{};
  mask.context = context;
  EXPECT_THAT(enemy_->Ask(wire::Verb::kSetCoreMask, mask),
              IsRefused(Code::kNotFound, kNotHere));
  EXPECT_THAT(enemy_->Ask(wire::Verb::kSetShapes, wire::SetShapes{context, {}}),
              IsRefused(Code::kNotFound, kNotHere));
  wire::MemorySizeRequest memory{};
  memory.context = context;
  EXPECT_THAT(enemy_->Ask(wire::Verb::kMemorySize, memory),
              IsRefused(Code::kNotFound, kNotHere));
  wire::PerfDetailRequest perf{};
  perf.context = context;
  EXPECT_THAT(enemy_->Ask(wire::Verb::kPerfDetail, perf),
              IsRefused(Code::kNotFound, kNotHere));
  wire::ReleaseBuffer release{};
  release.buffer = buffer;
  EXPECT_THAT(enemy_->Ask(wire::Verb::kReleaseBuffer, release),
              IsRefused(Code::kNotFound, kNotHere));
  wire::CreateContext create = NeighboursModel(7);
  create.duplicate_of = context;
  EXPECT_THAT(enemy_->Ask(wire::Verb::kCreateContext, create),
              IsRefused(Code::kInvalidArgument, "does not exist"));

  ASSERT_TRUE(enemy_->Ask(wire::Verb::kCreateContext, NeighboursModel(7)).ok());
  wire::Bind bind{};
  bind.context = 7;
  bind.buffer = buffer;
  bind.size = 64;
  EXPECT_THAT(enemy_->Ask(wire::Verb::kBind, bind),
              IsRefused(Code::kNotFound, kNotHere));

  wire::Submission job{};
  job.operation = static_cast<uint32_t>(wire::RingOperation::kRun);
  job.context = context;
  const base::Error answer = enemy_->Submit(job);
  EXPECT_EQ(answer.code, Code::kNotFound);
  EXPECT_THAT(answer.message, HasSubstr(kNotHere));
}

TEST_F(HostileClientTest, HugeSizesAndOffsetsAreRefused) {
  enemy_->SayHello();
  for (const uint64_t size : {(uint64_t{1} << 32) + 1, uint64_t{1} << 63,
                              ~uint64_t{0}, ~uint64_t{4094}}) {
    wire::AllocateBuffer allocate{};
    allocate.buffer = 1;
    allocate.size = size;
    const auto reply = enemy_->Ask(wire::Verb::kAllocateBuffer, allocate);
    ASSERT_FALSE(reply.ok()) << size;
    EXPECT_NE(reply.error().message, "") << size;
  }
  ASSERT_TRUE(enemy_->Ask(wire::Verb::kCreateContext, NeighboursModel(7)).ok());
  wire::AllocateBuffer allocate{};
  allocate.buffer = 1;
  allocate.size = 4096;
  ASSERT_TRUE(enemy_->Ask(wire::Verb::kAllocateBuffer, allocate).ok());
  const uint64_t huge[] = {4097, uint64_t{1} << 32, uint64_t{1} << 63,
                           ~uint64_t{0}};
  for (const uint64_t number : huge) {
    wire::Bind bind{};
    bind.context = 7;
    bind.buffer = 1;
    bind.offset = number;
    bind.size = 64;
    EXPECT_THAT(enemy_->Ask(wire::Verb::kBind, bind),
                IsRefused(Code::kInvalidArgument, "are not inside the buffer"));
    bind.offset = 64;
    bind.size = number;
    EXPECT_THAT(enemy_->Ask(wire::Verb::kBind, bind),
                IsRefused(Code::kInvalidArgument, "are not inside the buffer"));
  }
  wire::Bind strides{};
  strides.context = 7;
  strides.buffer = 1;
  strides.size = 4096;
  strides.w_stride = std::numeric_limits<uint32_t>::max();
  strides.h_stride = std::numeric_limits<uint32_t>::max();
  EXPECT_FALSE(enemy_->Ask(wire::Verb::kBind, strides).ok());
  strides.h_stride = 0;
  strides.index = std::numeric_limits<uint32_t>::max();
  EXPECT_THAT(enemy_->Ask(wire::Verb::kBind, strides),
              IsRefused(Code::kInvalidArgument, "does not exist"));
}

TEST_F(HostileClientTest, FramesAndAddressesThatAreNoneAreRefused) {
  enemy_->SayHello();
  ASSERT_TRUE(enemy_->Ask(wire::Verb::kCreateContext, NeighboursModel(7)).ok());
  wire::AllocateBuffer allocate{};
  allocate.buffer = 1;
  allocate.size = 4096;
  ASSERT_TRUE(enemy_->Ask(wire::Verb::kAllocateBuffer, allocate).ok());
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  const auto refused = [&](const auto& change) {
    wire::BindFrame frame{};
    frame.context = 7;
    frame.format = 1;
    frame.width = frame.height = 16;
    frame.planes_count = 2;
    frame.planes[0].buffer = frame.planes[1].buffer = 1;
    frame.planes[0].size = frame.planes[1].size = 4096;
    change(frame);
    const auto reply = enemy_->Ask(wire::Verb::kBindFrame, frame);
    EXPECT_FALSE(reply.ok());
  };
  refused([](auto& frame) { frame.context = kMost; });
  refused([](auto& frame) { frame.index = kMost; });
  refused([](auto& frame) { frame.format = kMost; });
  refused([](auto& frame) { frame.width = frame.height = kMost; });
  refused([](auto& frame) { frame.planes[1].buffer = kMost; });
  refused([](auto& frame) { frame.planes[0].stride = kMost; });
  refused([](auto& frame) { frame.planes[0].offset = ~uint64_t{0}; });
  refused([](auto& frame) { frame.planes[0].size = ~uint64_t{0}; });
  refused([](auto& frame) { frame.crop_x = frame.crop_width = kMost; });
  refused([](auto& frame) { frame.fit = kMost; });
  refused([](auto& frame) { frame.planes_count = 0; });

  wire::ImportPhysical physical{};
  physical.buffer = 2;
  for (const uint64_t address : {uint64_t{0}, ~uint64_t{0}}) {
    physical.address = address;
    for (const uint64_t size : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
      physical.size = size;
      EXPECT_FALSE(enemy_->Ask(wire::Verb::kImportPhysical, physical).ok());
    }
  }
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(HostileClientTest, ShapesThatAreNoneAreRefused) {
  enemy_->SayHello();
  ASSERT_TRUE(enemy_->Ask(wire::Verb::kCreateContext, NeighboursModel(7)).ok());
  wire::InputShape shape{};
  shape.dims_count = 16;
  std::fill(std::begin(shape.dims), std::end(shape.dims),
            std::numeric_limits<uint32_t>::max());
  EXPECT_THAT(enemy_->Ask(wire::Verb::kSetShapes, wire::SetShapes{7, {shape}}),
              IsRefused(Code::kInvalidArgument, "has one fixed shape"));
  EXPECT_THAT(enemy_->Ask(wire::Verb::kSetShapes, wire::SetShapes{7, {}}),
              IsRefused(Code::kInvalidArgument, "0 shapes given"));
  const std::vector<wire::InputShape> many(wire::kMaxTensors, shape);
  EXPECT_THAT(enemy_->Ask(wire::Verb::kSetShapes, wire::SetShapes{7, many}),
              IsRefused(Code::kInvalidArgument, "1024 shapes given"));
  shape.layout = std::numeric_limits<uint32_t>::max();
  EXPECT_THAT(enemy_->Ask(wire::Verb::kSetShapes, wire::SetShapes{7, {shape}}),
              IsRefused(Code::kInvalidArgument, "is no tensor layout"));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(HostileClientTest, ModelThatIsNotWhatItsHashSaysIsRefused) {
  enemy_->SayHello();
  const std::string text = "anything at all";
  wire::UploadModel upload;
  upload.name = "forged.onnx";
  upload.model.fill(0x11);
  auto memfd = base::MakeImmutableMemfd(
      "forged", std::as_bytes(std::span(text.data(), text.size())));
  ASSERT_TRUE(memfd.ok());
  EXPECT_THAT(enemy_->Ask(wire::Verb::kUploadModel, upload, *std::move(memfd)),
              IsRefused(Code::kInvalidArgument, "has the SHA-256"));
  auto writable = base::MakeMemfd("writable", 4096);
  ASSERT_TRUE(writable.ok());
  EXPECT_THAT(
      enemy_->Ask(wire::Verb::kUploadModel, upload, *std::move(writable)),
      IsRefused(Code::kInvalidArgument, "sealed"));
}

}  // namespace
}  // namespace rknnd::integration
