// A session of the client library over a bridge, with a daemon that lives in
// the test, dies and comes back.

#include "client/remote/bridge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/posix/clock.h"
#include "base/posix/mapping.h"
#include "base/posix/memfd.h"
#include "base/posix/socket.h"
#include "client/remote/fake_remote.h"
#include "client/session/target.h"
#include "proto/wire/features.h"
#include "rknn_api.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Expected;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint32_t kContext = 0x4001;
constexpr base::Nanoseconds kPatience = 30 * base::kSecond;

std::string Numbers(size_t size, char first) {
  std::string bytes(size, '\0');
  std::iota(bytes.begin(), bytes.end(), first);
  return bytes;
}

class BridgeTest : public testing::Test {
 protected:
  void Start(uint64_t elements) {
    remote_ = std::make_unique<FakeRemote>(elements);
    remote_->Start();
  }

  Expected<base::UniqueFd> Dial(const std::string& address) {
    auto dial = ReadDialOptions(address);
    if (!dial.ok()) return dial.error();
    BridgeOptions options;
    options.dial = *std::move(dial);
    options.timeout = dial_timeout_;
    options.progress = [](void* user, const char* /*what*/, uint64_t done,
                          uint64_t total) {
      *static_cast<std::atomic<uint64_t>*>(user) = done == total ? total : 0;
    };
    options.user = &pushed_;
    options.ping_interval = ping_interval_;
    options.silence = silence_;
    auto opened = Bridge::Open(std::move(options));
    if (!opened.ok()) return opened.error();
    bridges_.push_back(std::move(opened->bridge));
    return std::move(opened->socket);
  }

  void Open() { Open(remote_->address()); }
  void Open(const std::string& address) {
    SessionOptions options;
    options.dial = [this, address] { return Dial(address); };
    options.name = "the test's daemon";
    auto opened = Target::Open(std::move(options));
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    target_ = *std::move(opened);
  }

  Expected<std::shared_ptr<const ModelDescription>> Create(
      uint32_t number, const std::string& model = "model") {
    auto source =
        ModelSource::OfBytes(std::as_bytes(std::span(model)), std::nullopt);
    ContextRequest request;
    request.number = number;
    return target_->CreateContext(request, *source);
  }

  // Memory of the session with these bytes.
  struct Memory {
    BufferHandle handle;
    base::Mapping mapping;

    [[nodiscard]] std::string text() const {
      return {reinterpret_cast<const char*>(mapping.data()), mapping.size()};
    }
    void Set(const std::string& bytes) {
      std::memcpy(mapping.data(), bytes.data(), bytes.size());
    }
  };
  Memory Make(uint64_t size) {
    Memory memory;
    memory.handle = *target_->AllocateBuffer(size, 0);
    memory.mapping = *base::Mapping::OfFd(memory.handle.fd, 0, size,
                                          base::Mapping::Access::kReadWrite);
    return memory;
  }

  Expected<void> Bind(Direction direction, const Memory& memory,
                      uint64_t offset = 0, uint32_t set = 0) {
    Binding binding;
    binding.buffer = memory.handle.number;
    binding.offset = offset;
    binding.size = memory.mapping.size() - offset;
    binding.type = RKNN_TENSOR_UINT8;
    binding.layout = RKNN_TENSOR_UNDEFINED;
    binding.set = set;
    return target_->Bind(kContext, direction, 0, binding);
  }

  static RunRequest Request(uint64_t frame = 0, uint32_t timeout_ms = 0) {
    RunRequest request;
    request.context = kContext;
    request.frame = frame;
    request.timeout_ms = timeout_ms;
    return request;
  }

  base::Nanoseconds dial_timeout_ = kPatience;
  base::Nanoseconds ping_interval_ = 15 * base::kSecond;
  base::Nanoseconds silence_ = 45 * base::kSecond;
  std::atomic<uint64_t> pushed_{0};
  std::unique_ptr<FakeRemote> remote_;
  std::shared_ptr<Target> target_;
  std::vector<std::unique_ptr<Bridge>> bridges_;
};

// ---- what travels -----------------------------------------------------------

TEST_F(BridgeTest, TensorsGoThereAndComeBack) {
  for (const uint64_t elements : {uint64_t{1000}, uint64_t{3'000'000}}) {
    SCOPED_TRACE(elements);
    Start(elements);
    Open();
    ASSERT_TRUE(Create(kContext).ok());
    Memory in = Make(elements);
    const Memory out = Make(elements);
    ASSERT_TRUE(Bind(Direction::kInput, in).ok());
    ASSERT_TRUE(Bind(Direction::kOutput, out).ok());
    in.Set(Numbers(elements, 1));
    const auto report = target_->Run(Request());
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_TRUE(out.text() == in.text());
    // No message is large, so that none waits long behind another.
    EXPECT_LE(remote_->seen().largest_piece, uint64_t{1} << 20);
  }
}

TEST_F(BridgeTest, MemoryBesideATensorStaysThePrograms) {
  Start(100);
  Open();
  ASSERT_TRUE(Create(kContext).ok());
  Memory both = Make(4096);
  ASSERT_TRUE(Bind(Direction::kInput, both, 0).ok());
  ASSERT_TRUE(Bind(Direction::kOutput, both, 1000).ok());
  std::string bytes(4096, 'x');
  bytes.replace(0, 100, Numbers(100, 1));
  both.Set(bytes);
  ASSERT_TRUE(target_->Run(Request()).ok());
  bytes.replace(1000, 100, Numbers(100, 1));
  EXPECT_TRUE(both.text() == bytes);
}

TEST_F(BridgeTest, MemoryOfTheProgramIsUsedAsItIs) {
  Start(100);
  Open();
  ASSERT_TRUE(Create(kContext).ok());
  auto file = base::MakeMemfd("program", 4096);
  ASSERT_TRUE(file.ok());
  Memory in;
  in.handle = *target_->ImportBuffer(file->get(), 4096);
  in.mapping = *base::Mapping::OfFd(file->get(), 0, 4096,
                                    base::Mapping::Access::kReadWrite);
  const Memory out = Make(100);
  ASSERT_TRUE(Bind(Direction::kInput, in).ok());
  ASSERT_TRUE(Bind(Direction::kOutput, out).ok());
  in.Set(Numbers(100, 7));
  ASSERT_TRUE(target_->Run(Request()).ok());
  EXPECT_EQ(out.text().substr(0, 100), Numbers(100, 7));
}

TEST_F(BridgeTest, MemoryThatMayShrinkIsRefused) {
  Start(100);
  Open();
  const base::UniqueFd file(memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(file.get(), 4096), 0);
  const auto refused = target_->ImportBuffer(file.get(), 4096);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("F_SEAL_SHRINK"));
}

TEST_F(BridgeTest, AModelIsSentOnceAndInPieces) {
  Start(16);
  Open();
  const std::string model = Numbers(3'000'000, 3);
  ASSERT_TRUE(Create(kContext, model).ok());
  ASSERT_TRUE(Create(kContext + 1, model).ok());
  const FakeRemote::Seen seen = remote_->seen();
  EXPECT_EQ(seen.uploads, 1U);
  EXPECT_EQ(seen.uploaded_bytes, model.size());
  EXPECT_LE(seen.largest_piece, uint64_t{1} << 20);
  EXPECT_EQ(pushed_.load(), model.size());
}

TEST_F(BridgeTest, WeightsComeIntoTheProgramsMemory) {
  Start(16);
  Open();
  ASSERT_TRUE(Create(kContext).ok());
  const Memory memory = Make(4096);
  ASSERT_TRUE(
      target_->SetWeightMemory(kContext, {memory.handle.number, 16, 100}).ok());
  EXPECT_EQ(memory.text().substr(16, 11), "the weights");
}

TEST_F(BridgeTest, ARepliesFileComesAsOne) {
  Start(16);
  auto socket = Dial(remote_->address());
  ASSERT_TRUE(socket.ok()) << socket.error().message;
  const base::Nanoseconds deadline = base::MonotonicClock().Now() + kPatience;
  std::optional<wire::SessionClient> client(*std::move(socket));
  const auto hello = client->SayHello(Connection::Introduction(), deadline);
  ASSERT_TRUE(hello.ok()) << hello.error().message;
  auto connection = Connection::AwaitWelcome(client, deadline);
  ASSERT_TRUE(connection.ok()) << connection.error().message;
  const auto reply =
      (*connection)
          ->Request(wire::Verb::kTrace, *wire::Encode(wire::TraceRequest{}), {},
                    kPatience);
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  ASSERT_EQ(reply->fds.size(), 1U);
  EXPECT_TRUE(base::HasSeals(reply->fds[0].get(), base::Seals::kImmutable));
  const auto trace = wire::Decode<wire::Trace>(reply->body);
  EXPECT_EQ(static_cast<uint64_t>(lseek(reply->fds[0].get(), 0, SEEK_END)),
            trace->size);
}

TEST_F(BridgeTest, MannersOfARingStayBetweenItsEnds) {
  Start(16);
  Open();
  EXPECT_EQ(remote_->seen().last_features &
                (wire::kFeatureSpin | wire::kFeatureMemorySync),
            0U);
}

TEST_F(BridgeTest, APhysicalAddressIsNoMemoryOfTheBoards) {
  Start(16);
  Open();
  const auto refused = target_->ImportPhysical(0x1000, 4096);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("of this machine"));
}

// ---- fences, cancels, limits ------------------------------------------------

class BridgeFenceTest : public BridgeTest {
 protected:
  void SetUp() override {
    Start(100);
    Open();
    ASSERT_TRUE(Create(kContext).ok());
    first_ = Make(100);
    second_ = Make(100);
    out_ = Make(100);
    ASSERT_TRUE(Bind(Direction::kInput, first_).ok());
    ASSERT_TRUE(Bind(Direction::kOutput, out_).ok());
    first_.Set(Numbers(100, 1));
    second_.Set(Numbers(100, 2));
    auto ends = base::BytePair();
    signal_ = std::move(ends->first);
    fence_ = std::move(ends->second);
  }

  RunRef StartFenced(uint64_t frame, uint32_t timeout_ms = 0) {
    RunRequest request = Request(frame, timeout_ms);
    request.fence_in = *target_->RegisterFence(fence_.get());
    return *target_->Start(request);
  }

  void Signal() const { ASSERT_EQ(write(signal_.get(), "x", 1), 1); }

  bool Await(StartedRun& run) {
    return target_->Await(run, base::MonotonicClock().Now() + kPatience);
  }

  Memory first_, second_, out_;
  base::UniqueFd signal_, fence_;
};

TEST_F(BridgeFenceTest, ARunIsSentWhenItsFenceIsSignalled) {
  const RunRef run = StartFenced(1);
  const RunRef behind = *target_->Start(Request(2));
  // A request goes behind all runs that were started: both were seen.
  ASSERT_TRUE(target_->SetCoreMask(kContext, 1).ok());
  EXPECT_FALSE(target_->Look(*run));
  EXPECT_FALSE(target_->Look(*behind));
  Signal();
  ASSERT_TRUE(Await(*run));
  ASSERT_TRUE(Await(*behind));
  // Runs of one context end in the order of their start.
  EXPECT_THAT(remote_->seen().frames, ElementsAre(1, 2));
  EXPECT_EQ(out_.text(), first_.text());
}

TEST_F(BridgeFenceTest, ARunThatWaitsKeepsWhatWasBoundAtItsStart) {
  const RunRef run = StartFenced(1);
  ASSERT_TRUE(Bind(Direction::kInput, second_).ok());
  Signal();
  ASSERT_TRUE(Await(*run));
  EXPECT_EQ(out_.text(), first_.text());
  ASSERT_TRUE(target_->Run(Request(2)).ok());
  EXPECT_EQ(out_.text(), second_.text());
}

TEST_F(BridgeFenceTest, ARunThatWaitsCanBeTakenBack) {
  const RunRef run = StartFenced(5);
  const auto taken = target_->Cancel(kContext, 5);
  ASSERT_TRUE(taken.ok());
  EXPECT_EQ(*taken, 1U);
  ASSERT_TRUE(Await(*run));
  EXPECT_EQ(run->code, Code::kCancelled);
}

TEST_F(BridgeFenceTest, ARunWaitsForItsFenceAsLongAsItsTimeout) {
  const RunRef run = StartFenced(1, 50);
  ASSERT_TRUE(Await(*run));
  EXPECT_EQ(run->code, Code::kDeadlineExceeded);
  EXPECT_THAT(run->text, HasSubstr("for its fence"));
  EXPECT_EQ(remote_->seen().runs, 0U);
}

TEST_F(BridgeFenceTest, AFenceThatIsClosedEndsItsRun) {
  const RunRef run = StartFenced(1);
  signal_.reset();
  ASSERT_TRUE(Await(*run));
  EXPECT_EQ(run->code, Code::kFailedPrecondition);
  EXPECT_THAT(run->text, HasSubstr("was closed"));
}

TEST_F(BridgeFenceTest, TheEndOfARunIsTold) {
  auto out = target_->MakeFence();
  ASSERT_TRUE(out.ok());
  RunRequest request = Request(1);
  request.fence_out = out->number;
  const RunRef run = *target_->Start(request);
  pollfd wait{out->fd.get(), POLLIN, 0};
  ASSERT_EQ(poll(&wait, 1, static_cast<int>(kPatience / base::kMillisecond)),
            1);
  EXPECT_TRUE(target_->Look(*run));
}

// ---- lost and found ---------------------------------------------------------

TEST_F(BridgeFenceTest, ALostStreamMakesALateAnswerAndNoError) {
  remote_->set_answers_runs(false);
  Expected<RunReport> report = RunReport{};
  std::thread runner([&] { report = target_->Run(Request(7)); });
  remote_->AwaitRuns(1);
  remote_->Stop();
  remote_->set_answers_runs(true);
  // Models too: they are sent again.
  remote_->ForgetModels();
  remote_->Start();
  runner.join();
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(out_.text(), first_.text());
  EXPECT_EQ(remote_->seen().uploads, 2U);
}

TEST_F(BridgeTest, WorkGoesOnAtTheOtherHost) {
  Start(100);
  FakeRemote other(100);
  other.Start();
  Open("ipv4:" + remote_->address() + "," + other.address());
  ASSERT_TRUE(Create(kContext).ok());
  Memory in = Make(100);
  const Memory out = Make(100);
  ASSERT_TRUE(Bind(Direction::kInput, in).ok());
  ASSERT_TRUE(Bind(Direction::kOutput, out).ok());
  in.Set(Numbers(100, 1));
  ASSERT_TRUE(target_->Run(Request()).ok());
  FakeRemote& has_it = other.seen().sessions != 0 ? other : *remote_;
  FakeRemote& has_none = &has_it == &other ? *remote_ : other;
  has_it.Stop();
  in.Set(Numbers(100, 9));
  const auto report = target_->Run(Request());
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(out.text(), in.text());
  EXPECT_EQ(has_none.seen().runs, 1U);
}

TEST_F(BridgeTest, ADaemonOfWhichNothingIsHeardIsGivenUp) {
  Start(16);
  ping_interval_ = 20 * base::kMillisecond;
  silence_ = 200 * base::kMillisecond;
  auto socket = Dial(remote_->address());
  ASSERT_TRUE(socket.ok()) << socket.error().message;
  remote_->set_silent(true);
  pollfd end{socket->get(), POLLRDHUP, 0};
  EXPECT_EQ(poll(&end, 1, static_cast<int>(kPatience / base::kMillisecond)), 1);
}

// ---- no session, and why ----------------------------------------------------

TEST_F(BridgeTest, AWrongTokenIsSaid) {
  Start(16);
  remote_->set_token("right");
  ASSERT_EQ(setenv("RKNND_TOKEN", "wrong", 1), 0);
  const auto refused = Dial(remote_->address());
  ASSERT_EQ(setenv("RKNND_TOKEN", "right", 1), 0);
  const auto taken = Dial(remote_->address());
  unsetenv("RKNND_TOKEN");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kUnauthenticated);
  EXPECT_THAT(refused.error().message, HasSubstr("RKNND_TOKEN"));
  EXPECT_TRUE(taken.ok()) << taken.error().message;
}

TEST_F(BridgeTest, APortThatNobodyListensOnIsRefused) {
  Start(16);
  const std::string address = remote_->address();
  remote_->Stop();
  const auto refused = Dial(address);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message,
            "no rknnd at " + address +
                ": refused. On the board: rknnctl status; the port is off "
                "until grpc.listen is set");
}

TEST_F(BridgeTest, ANameThatNobodyHasIsSaid) {
  addrinfo* found = nullptr;
  const int code =
      getaddrinfo("no-such-board.invalid", nullptr, nullptr, &found);
  if (code == 0) freeaddrinfo(found);
  if (code != EAI_NONAME) {
    GTEST_SKIP() << "no name server here says that there is no such name";
  }
  const auto refused = Dial("no-such-board.invalid:8001");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message,
              HasSubstr("no rknnd at no-such-board.invalid:8001: name "
                        "unknown"));
}

TEST_F(BridgeTest, AServerThatSaysNothingTimesOut) {
  dial_timeout_ = 300 * base::kMillisecond;
  Start(16);
  remote_->set_silent(true);
  const auto refused = Dial(remote_->address());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr(": timed out. On the board"));
}

}  // namespace
}  // namespace rknnd::client
