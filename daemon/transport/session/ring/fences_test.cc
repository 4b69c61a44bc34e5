// Tests of what may be a fence, of every kind of fd that a client can send, and
// of the watching of real ones.

#include "daemon/transport/session/ring/fences.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/posix/memfd.h"
#include "base/posix/socket.h"

namespace rknnd::transport {
namespace {

using base::UniqueFd;
using core::FenceState;

std::pair<UniqueFd, UniqueFd> OpenPipe() {
  std::array<int, 2> ends{};
  EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::pair<UniqueFd, UniqueFd> Pair(int type) {
  std::array<int, 2> ends{};
  EXPECT_EQ(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

UniqueFd EventFd(unsigned count = 0) {
  return UniqueFd(eventfd(count, EFD_CLOEXEC));
}

// A folder that goes with its files.
class Folder {
 public:
  Folder() {
    std::string path = ::testing::TempDir() + "fencesXXXXXX";
    EXPECT_NE(mkdtemp(path.data()), nullptr);
    path_ = path;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  [[nodiscard]] std::string File(const std::string& name) const {
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

absl::Status CheckIn(const UniqueFd& fd, int doorbell = -1) {
  return CheckFence(7, /*out=*/false, fd.get(), doorbell);
}
absl::Status CheckOut(const UniqueFd& fd) {
  return CheckFence(7, /*out=*/true, fd.get(), -1);
}
bool Mentions(const absl::Status& status, const std::string& text) {
  return status.code() == absl::StatusCode::kInvalidArgument &&
         status.message().find(text) != std::string::npos;
}

// ---- what may be one --------------------------------------------------------

TEST(CheckFenceTest, KindsThatCannotBlockAreWaitedFor) {
  EXPECT_EQ(CheckIn(EventFd()), absl::OkStatus());
  EXPECT_EQ(CheckIn(OpenPipe().first), absl::OkStatus());
  EXPECT_EQ(CheckIn(Pair(SOCK_STREAM).first), absl::OkStatus());
  EXPECT_EQ(CheckIn(Pair(SOCK_DGRAM).first), absl::OkStatus());
  EXPECT_EQ(CheckIn(Pair(SOCK_SEQPACKET).first), absl::OkStatus());
  EXPECT_EQ(CheckIn(UniqueFd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC))),
            absl::OkStatus());
}

TEST(CheckFenceTest, FifoOfTheClientIsAPipe) {
  const Folder folder;
  ASSERT_EQ(mkfifo(folder.File("fifo").c_str(), 0600), 0);
  const UniqueFd fifo(
      open(folder.File("fifo").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(fifo.valid());
  EXPECT_EQ(CheckIn(fifo), absl::OkStatus());
}

TEST(CheckFenceTest, OwnEndOfASessionIsRefused) {
  const Folder folder;
  const UniqueFd listener =
      *base::ListenUnix(folder.File("session.sock"), 0600);
  const UniqueFd client = *base::ConnectUnix(folder.File("session.sock"));
  const absl::Status refused = CheckIn(client);
  EXPECT_TRUE(Mentions(refused, "fence 7 is a connection to a socket with a"))
      << refused;
  // Of a program that others connect to, it is as good as a socketpair's.
  EXPECT_EQ(CheckIn(*base::Accept(listener.get())), absl::OkStatus());
}

TEST(CheckFenceTest, EpollSetIsRefused) {
  const absl::Status refused = CheckIn(UniqueFd(epoll_create1(EPOLL_CLOEXEC)));
  EXPECT_TRUE(Mentions(refused, "fence 7 is an epoll set")) << refused;
}

TEST(CheckFenceTest, OwnDoorbellIsRefusedByWhicheverFdItComes) {
  const UniqueFd doorbell = *base::MakeEventFd();
  const UniqueFd copy = *base::Duplicate(doorbell.get());
  const UniqueFd other = *base::MakeEventFd();
  EXPECT_TRUE(Mentions(CheckIn(copy, doorbell.get()), "own doorbell"))
      << CheckIn(copy, doorbell.get());
  EXPECT_EQ(CheckIn(other, doorbell.get()), absl::OkStatus());
}

TEST(CheckFenceTest, FilesAndDevicesAreRefusedByName) {
  const Folder folder;
  const UniqueFd file(
      open(folder.File("plain").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_TRUE(Mentions(CheckIn(file), "plain': a fence is an eventfd"))
      << CheckIn(file);
  const UniqueFd device(open("/dev/null", O_RDWR | O_CLOEXEC));
  EXPECT_TRUE(Mentions(CheckIn(device), "'/dev/null'")) << CheckIn(device);
  const UniqueFd memory = *base::MakeMemfd("m", 4096);
  EXPECT_TRUE(Mentions(CheckIn(memory), "memfd:m")) << CheckIn(memory);
  const UniqueFd path(open("/", O_PATH | O_CLOEXEC));
  EXPECT_TRUE(Mentions(CheckIn(path), "'/'")) << CheckIn(path);
}

TEST(CheckFenceTest, FileThatIsNamedLikeAnotherKindIsAFile) {
  const Folder folder;
  const UniqueFd file(open(folder.File("anon_inode:[eventfd]").c_str(),
                           O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(file.valid());
  EXPECT_TRUE(Mentions(CheckIn(file), "a fence is")) << CheckIn(file);
}

TEST(CheckFenceTest, NameOfAFileReachesNoTerminal) {
  const Folder folder;
  const UniqueFd file(open(folder.File("a\x1b[2Jb").c_str(),
                           O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_TRUE(file.valid());
  EXPECT_EQ(CheckIn(file).message().find('\x1b'), std::string::npos);
}

TEST(CheckFenceTest, KindsWhosePollDependsOnWhoAsksAreRefused) {
  EXPECT_TRUE(Mentions(CheckIn(UniqueFd(inotify_init1(IN_CLOEXEC))),
                       "anon_inode:inotify"));
  sigset_t none;
  sigemptyset(&none);
  EXPECT_TRUE(Mentions(CheckIn(UniqueFd(signalfd(-1, &none, SFD_CLOEXEC))),
                       "anon_inode:[signalfd]"));
}

TEST(CheckFenceTest, SocketsOfTheNetworkAreRefused) {
  const UniqueFd tcp(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!tcp.valid()) GTEST_SKIP() << "no network sockets here";
  EXPECT_TRUE(Mentions(CheckIn(tcp), "a socket of the network"))
      << CheckIn(tcp);
  EXPECT_FALSE(CheckOut(tcp).ok());
}

TEST(CheckFenceTest, EndOfASocketpairIsSignalled) {
  EXPECT_EQ(CheckOut(Pair(SOCK_STREAM).first), absl::OkStatus());
  EXPECT_EQ(CheckOut(Pair(SOCK_SEQPACKET).first), absl::OkStatus());
  EXPECT_EQ(CheckOut(Pair(SOCK_DGRAM).first), absl::OkStatus());
}

TEST(CheckFenceTest, EventFdIsNotSignalledAndTheReasonIsTold) {
  const absl::Status refused = CheckOut(EventFd());
  EXPECT_TRUE(Mentions(refused, "its owner could make a write to it block"))
      << refused;
  EXPECT_TRUE(Mentions(refused, "socketpair")) << refused;
  EXPECT_TRUE(Mentions(CheckOut(OpenPipe().second), "'pipe:["));
}

TEST(CheckFenceTest, SocketThatLeadsToAServiceIsNotSignalled) {
  const Folder folder;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, folder.File("s").c_str(),
               sizeof address.sun_path - 1);
  const auto* name = reinterpret_cast<const sockaddr*>(&address);
  const UniqueFd service(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(bind(service.get(), name, sizeof address), 0);
  ASSERT_EQ(listen(service.get(), 1), 0);
  const UniqueFd client(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_TRUE(Mentions(CheckOut(client), "not connected")) << CheckOut(client);
  ASSERT_EQ(connect(client.get(), name, sizeof address), 0);
  EXPECT_TRUE(Mentions(CheckOut(client), "with a name, or leads to one"))
      << CheckOut(client);
  const UniqueFd accepted(
      accept4(service.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_TRUE(Mentions(CheckOut(accepted), "with a name"))
      << CheckOut(accepted);
  EXPECT_FALSE(CheckOut(service).ok());
}

TEST(CheckFenceTest, FdThatIsNoneIsRefused) {
  EXPECT_FALSE(CheckFence(7, false, -1, -1).ok());
  EXPECT_FALSE(CheckFence(7, true, 1'000'000, -1).ok());
}

// ---- watching ---------------------------------------------------------------

class RecordingRunner final : public core::Runner {
 public:
  void EnterWorker() override {}
  void RunReady() override {}
  void FenceReady(uint64_t token, FenceState state) override {
    ready.emplace_back(token, state);
  }
  std::vector<std::pair<uint64_t, FenceState>> ready;
};

using Ready = std::vector<std::pair<uint64_t, FenceState>>;

class FencesTest : public ::testing::Test {
 protected:
  FencesTest() { fences_.set_runner(&runner_); }

  static std::shared_ptr<core::Fence> MakeFence(UniqueFd fd, bool out = false) {
    auto fence = std::make_shared<core::Fence>();
    fence->number = 7;
    fence->out = out;
    fence->fd = std::move(fd);
    return fence;
  }
  static std::shared_ptr<core::Fence> FenceOf(const UniqueFd& fd,
                                              bool out = false) {
    return MakeFence(*base::Duplicate(fd.get()), out);
  }
  // What a worker does with the events that are there; how many they were.
  int Serve() {
    int served = 0;
    epoll_event event{};
    while (epoll_wait(epoll_.get(), &event, 1, 0) == 1) {
      EXPECT_EQ(EventKind(event.data.u64), WorkerEvent::kFence);
      fences_.OnFenceEvent(EventNumber(event.data.u64));
      ++served;
    }
    return served;
  }

  const UniqueFd epoll_{epoll_create1(EPOLL_CLOEXEC)};
  RecordingRunner runner_;
  Fences fences_{epoll_.get()};
};

TEST_F(FencesTest, EachKindIsSignalledWhenItCanBeRead) {
  struct Case {
    const char* name;
    UniqueFd watched, other;
    std::function<void(const Case&)> signal;
  };
  std::vector<Case> cases;
  const auto write_other = [](const Case& c) {
    EXPECT_EQ(write(c.other.get(), "x", 1), 1);
  };
  auto pipe = OpenPipe();
  cases.push_back(
      {"pipe", std::move(pipe.first), std::move(pipe.second), write_other});
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET, SOCK_DGRAM}) {
    auto pair = Pair(type);
    cases.push_back(
        {"socket", std::move(pair.first), std::move(pair.second), write_other});
  }
  UniqueFd event = EventFd();
  UniqueFd copy = *base::Duplicate(event.get());
  cases.push_back({"eventfd", std::move(event), std::move(copy),
                   [](const Case& c) { base::SignalEventFd(c.other.get()); }});
  for (const Case& c : cases) {
    const auto fence = FenceOf(c.watched);
    EXPECT_EQ(fences_.Look(*fence), FenceState::kPending) << c.name;
    ASSERT_EQ(fences_.Watch(5, fence), absl::OkStatus());
    EXPECT_EQ(Serve(), 0) << c.name;
    c.signal(c);
    EXPECT_EQ(fences_.Look(*fence), FenceState::kSignalled) << c.name;
    EXPECT_EQ(Serve(), 1) << c.name;
    EXPECT_EQ(runner_.ready, (Ready{{5, FenceState::kSignalled}})) << c.name;
    // Once.
    EXPECT_EQ(Serve(), 0) << c.name;
    EXPECT_EQ(fences_.watched(), 0U);
    runner_.ready.clear();
  }
}

TEST_F(FencesTest, EachKindWithAnotherEndSaysThatItWasClosed) {
  std::vector<std::pair<UniqueFd, UniqueFd>> pairs;
  pairs.push_back(OpenPipe());
  pairs.push_back(Pair(SOCK_STREAM));
  pairs.push_back(Pair(SOCK_SEQPACKET));
  for (auto& [watched, other] : pairs) {
    const auto fence = FenceOf(watched);
    ASSERT_EQ(fences_.Watch(5, fence), absl::OkStatus());
    other.reset();
    EXPECT_EQ(Serve(), 1);
    EXPECT_EQ(fences_.Look(*fence), FenceState::kClosed);
    EXPECT_EQ(runner_.ready, (Ready{{5, FenceState::kClosed}}));
    runner_.ready.clear();
  }
}

TEST_F(FencesTest, WhatWasSignalledBeforeItWasClosedIsSignalled) {
  std::vector<std::pair<UniqueFd, UniqueFd>> pairs;
  pairs.push_back(OpenPipe());
  pairs.push_back(Pair(SOCK_STREAM));
  pairs.push_back(Pair(SOCK_SEQPACKET));
  for (auto& [watched, other] : pairs) {
    const auto fence = FenceOf(watched);
    ASSERT_EQ(fences_.Watch(5, fence), absl::OkStatus());
    EXPECT_EQ(write(other.get(), "x", 1), 1);
    other.reset();
    EXPECT_EQ(fences_.Look(*fence), FenceState::kSignalled);
    EXPECT_EQ(Serve(), 1);
    EXPECT_EQ(runner_.ready, (Ready{{5, FenceState::kSignalled}}));
    runner_.ready.clear();
  }
}

TEST_F(FencesTest, EndThatSendsNoMoreIsClosed) {
  auto [watched, other] = Pair(SOCK_STREAM);
  const auto fence = FenceOf(watched);
  ASSERT_EQ(shutdown(other.get(), SHUT_WR), 0);
  EXPECT_EQ(fences_.Look(*fence), FenceState::kClosed);
}

TEST_F(FencesTest, TimerIsSignalledWhenItExpires) {
  const UniqueFd timer(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC));
  const auto fence = FenceOf(timer);
  ASSERT_EQ(fences_.Watch(5, fence), absl::OkStatus());
  itimerspec soon{};
  soon.it_value.tv_nsec = 1;
  ASSERT_EQ(timerfd_settime(timer.get(), 0, &soon, nullptr), 0);
  epoll_event event{};
  ASSERT_EQ(epoll_wait(epoll_.get(), &event, 1, 10'000), 1);
  fences_.OnFenceEvent(EventNumber(event.data.u64));
  EXPECT_EQ(runner_.ready, (Ready{{5, FenceState::kSignalled}}));
}

TEST_F(FencesTest, SeveralJobsOfOneFenceHearOfItInTheirOrder) {
  const UniqueFd event = EventFd();
  const auto fence = FenceOf(event);
  for (const uint64_t token : {3, 1, 2}) {
    ASSERT_EQ(fences_.Watch(token, fence), absl::OkStatus());
  }
  fences_.Unwatch(1);
  base::SignalEventFd(event.get());
  EXPECT_EQ(Serve(), 1);
  EXPECT_EQ(runner_.ready,
            (Ready{{3, FenceState::kSignalled}, {2, FenceState::kSignalled}}));
}

TEST_F(FencesTest, FenceIsWaitedForByTheWorkersThatTookItsJob) {
  const UniqueFd busy_epoll(epoll_create1(EPOLL_CLOEXEC));
  const UniqueFd event = EventFd(1);
  std::thread([&] {
    fences_.EnterWorker(busy_epoll.get());
    EXPECT_EQ(fences_.Watch(1, FenceOf(event)), absl::OkStatus());
  }).join();
  EXPECT_EQ(Serve(), 0);
  epoll_event found{};
  ASSERT_EQ(epoll_wait(busy_epoll.get(), &found, 1, 0), 1);
  // By whichever thread: it leaves the set that it was in.
  fences_.Unwatch(1);
  EXPECT_EQ(epoll_wait(busy_epoll.get(), &found, 1, 0), 0);
  EXPECT_EQ(fences_.watched(), 0U);
}

TEST_F(FencesTest, OneFdThatIsRegisteredTwiceIsTwoFences) {
  const UniqueFd event = EventFd();
  ASSERT_EQ(fences_.Watch(1, FenceOf(event)), absl::OkStatus());
  ASSERT_EQ(fences_.Watch(2, FenceOf(event)), absl::OkStatus());
  EXPECT_EQ(fences_.watched(), 2U);
  base::SignalEventFd(event.get());
  EXPECT_EQ(Serve(), 2);
  EXPECT_EQ(runner_.ready.size(), 2U);
}

TEST_F(FencesTest, OwnerWhoTogglesAFenceIsHeardOnce) {
  const UniqueFd event = EventFd();
  ASSERT_EQ(fences_.Watch(1, FenceOf(event)), absl::OkStatus());
  int served = 0;
  for (int i = 0; i < 1000; ++i) {
    base::SignalEventFd(event.get());
    served += Serve();
    uint64_t count = 0;
    EXPECT_EQ(read(event.get(), &count, sizeof count), 8);
  }
  EXPECT_EQ(served, 1);
}

TEST_F(FencesTest, FenceThatWasSignalledForAMomentWasSignalled) {
  const UniqueFd event = EventFd(1);
  ASSERT_EQ(fences_.Watch(1, FenceOf(event)), absl::OkStatus());
  epoll_event found{};
  ASSERT_EQ(epoll_wait(epoll_.get(), &found, 1, 0), 1);
  // Between the event and the look at it.
  uint64_t count = 0;
  ASSERT_EQ(read(event.get(), &count, sizeof count), 8);
  fences_.OnFenceEvent(EventNumber(found.data.u64));
  EXPECT_EQ(runner_.ready, (Ready{{1, FenceState::kSignalled}}));
}

TEST_F(FencesTest, LateEventOfAFenceThatWasTakenOutFindsNothing) {
  const UniqueFd event = EventFd(1);
  ASSERT_EQ(fences_.Watch(1, FenceOf(event)), absl::OkStatus());
  epoll_event found{};
  ASSERT_EQ(epoll_wait(epoll_.get(), &found, 1, 0), 1);
  fences_.Unwatch(1);
  ASSERT_EQ(fences_.Watch(2, FenceOf(EventFd())), absl::OkStatus());
  fences_.OnFenceEvent(EventNumber(found.data.u64));
  EXPECT_TRUE(runner_.ready.empty());
  EXPECT_EQ(fences_.watched(), 1U);
}

TEST_F(FencesTest, UnwatchedFenceKeepsNeitherItsFdNorAPlaceInTheSet) {
  auto [watched, other] = OpenPipe();
  std::weak_ptr<core::Fence> gone;
  {
    const auto fence = MakeFence(std::move(watched));
    gone = fence;
    ASSERT_EQ(fences_.Watch(1, fence), absl::OkStatus());
    ASSERT_EQ(fences_.Watch(2, fence), absl::OkStatus());
  }
  fences_.Unwatch(1);
  EXPECT_FALSE(gone.expired());
  fences_.Unwatch(2);
  EXPECT_TRUE(gone.expired());
  // The last reader has gone.
  pollfd writer{other.get(), POLLOUT, 0};
  ASSERT_EQ(poll(&writer, 1, 0), 1);
  EXPECT_NE(writer.revents & POLLERR, 0);
}

TEST_F(FencesTest, SignalReachesTheOtherEndAndNeverBlocks) {
  auto [near, far] = Pair(SOCK_STREAM);
  const auto fence = FenceOf(near, /*out=*/true);
  fences_.Signal(fence);
  EXPECT_EQ(fences_.Look(*FenceOf(far)), FenceState::kSignalled);
  // The owner shares the flags, and reads nothing.
  ASSERT_EQ(fcntl(near.get(), F_SETFL, 0), 0);
  const int small = 1;
  setsockopt(near.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
  for (int i = 0; i < 100'000; ++i) fences_.Signal(fence);
  // Nor does a closed one end the process.
  far.reset();
  fences_.Signal(fence);
}

TEST_F(FencesTest, ChainedFencesAreSignalledOrClosedFromEndToEnd) {
  auto [daemons, clients] = Pair(SOCK_SEQPACKET);
  auto out = MakeFence(std::move(daemons), /*out=*/true);
  const auto in = FenceOf(clients);
  ASSERT_EQ(fences_.Watch(1, in), absl::OkStatus());
  out.reset();
  EXPECT_EQ(Serve(), 1);
  EXPECT_EQ(runner_.ready, (Ready{{1, FenceState::kClosed}}));
}

TEST_F(FencesTest, FenceThatTheSetDoesNotTakeIsNamedAndForgotten) {
  Fences broken(-1);
  const absl::Status failed = broken.Watch(1, FenceOf(EventFd()));
  EXPECT_FALSE(failed.ok());
  EXPECT_NE(failed.message().find("watch fence 7"), std::string::npos);
  EXPECT_EQ(broken.watched(), 0U);
  broken.Unwatch(1);
}

}  // namespace
}  // namespace rknnd::transport
