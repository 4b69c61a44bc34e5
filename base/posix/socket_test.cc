#include "base/posix/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace rknnd::base {
namespace {

std::span<const std::byte> Bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

bool ClosesOnExec(int fd) { return (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0; }

size_t OpenFds() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

bool IsReadable(int fd) {
  pollfd entry = {fd, POLLIN, 0};
  return poll(&entry, 1, 0) == 1;
}

// Sends past SendMessage's own checks, as a hostile peer does.
void SendRaw(int socket, std::string_view text, const std::vector<int>& fds) {
  iovec payload = {const_cast<char*>(text.data()), text.size()};
  std::vector<char> control(CMSG_SPACE(fds.size() * sizeof(int)));
  msghdr message = {};
  message.msg_iov = &payload;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  }
  ASSERT_EQ(sendmsg(socket, &message, MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

class MessageTest : public ::testing::Test {
 protected:
  MessageTest() {
    auto pair = *SeqpacketPair();
    ours_ = std::move(pair.first);
    theirs_ = std::move(pair.second);
  }
  Expected<ReceivedMessage> Receive(Block block = Block::kNo) {
    return ReceiveMessage(ours_.get(), buffer_, block);
  }
  [[nodiscard]] std::string_view Text(size_t size) const {
    return {reinterpret_cast<const char*>(buffer_.data()), size};
  }

  UniqueFd ours_, theirs_;
  std::array<std::byte, 64> buffer_ = {};
};

TEST_F(MessageTest, ArrivesWhole) {
  ASSERT_TRUE(SendMessage(theirs_.get(), Bytes("hello"), {}, Block::kNo).ok());
  ASSERT_TRUE(SendMessage(theirs_.get(), Bytes("you"), {}, Block::kNo).ok());
  const Expected<ReceivedMessage> first = Receive();
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(Text(first->size), "hello");
  const Expected<ReceivedMessage> second = Receive();
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(Text(second->size), "you");
}

TEST_F(MessageTest, BringsFdsThatCloseOnExec) {
  const UniqueFd event = *MakeEventFd();
  const std::array<int, 2> fds = {event.get(), STDIN_FILENO};
  ASSERT_TRUE(SendMessage(theirs_.get(), Bytes("x"), fds, Block::kNo).ok());
  const Expected<ReceivedMessage> message = Receive();
  ASSERT_TRUE(message.ok());
  ASSERT_EQ(message->fds.size(), 2U);
  EXPECT_TRUE(ClosesOnExec(message->fds[0].get()));
  EXPECT_TRUE(ClosesOnExec(message->fds[1].get()));
  SignalEventFd(event.get());
  EXPECT_TRUE(IsReadable(message->fds[0].get()));
}

TEST_F(MessageTest, AsManyFdsAsAllowedArrive) {
  const std::vector<int> fds(kMaxFdsPerMessage, STDERR_FILENO);
  ASSERT_TRUE(SendMessage(theirs_.get(), Bytes("x"), fds, Block::kNo).ok());
  const Expected<ReceivedMessage> message = Receive();
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->fds.size(), kMaxFdsPerMessage);
}

TEST_F(MessageTest, TooManyFdsAreAllClosedAndAnError) {
  SendRaw(theirs_.get(), "x",
          std::vector<int>(kMaxFdsPerMessage + 1, STDERR_FILENO));
  const size_t before = OpenFds();
  const Expected<ReceivedMessage> message = Receive();
  ASSERT_FALSE(message.ok());
  EXPECT_EQ(message.error().code, Code::kDataLoss);
  EXPECT_EQ(OpenFds(), before);
}

TEST_F(MessageTest, FdsThatDoNotFitThisProcessAreAnErrorAndNoneIsLeaked) {
  const std::array<int, 2> fds = {STDERR_FILENO, STDERR_FILENO};
  ASSERT_TRUE(SendMessage(theirs_.get(), Bytes("x"), fds, Block::kNo).ok());
  // Room for exactly one more number.
  const int next_free = Duplicate(STDERR_FILENO)->get();
  rlimit old = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &old), 0);
  const rlimit tight = {static_cast<rlim_t>(next_free) + 1, old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  const Expected<ReceivedMessage> message = Receive();
  setrlimit(RLIMIT_NOFILE, &old);
  ASSERT_FALSE(message.ok());
  EXPECT_EQ(message.error().code, Code::kDataLoss);
  EXPECT_LT(fcntl(next_free, F_GETFD), 0) << "leaked";
}

TEST_F(MessageTest, AnOversizeDatagramIsAnErrorAndItsFdsAreClosed) {
  SendRaw(theirs_.get(), std::string(buffer_.size() + 1, 'x'), {STDERR_FILENO});
  const size_t before = OpenFds();
  const Expected<ReceivedMessage> message = Receive();
  ASSERT_FALSE(message.ok());
  EXPECT_EQ(message.error().code, Code::kDataLoss);
  EXPECT_EQ(OpenFds(), before);
}

TEST_F(MessageTest, ADatagramThatJustFitsArrives) {
  SendRaw(theirs_.get(), std::string(buffer_.size(), 'x'), {});
  const Expected<ReceivedMessage> message = Receive();
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(message->size, buffer_.size());
}

TEST_F(MessageTest, TheEndIsTold) {
  theirs_.reset();
  const Expected<ReceivedMessage> message = Receive();
  ASSERT_TRUE(message.ok());
  EXPECT_TRUE(message->eof);
}

TEST_F(MessageTest, AnEmptyDatagramEndsTheConnectionAndItsFdsAreClosed) {
  SendRaw(theirs_.get(), "", {STDERR_FILENO});
  const size_t before = OpenFds();
  const Expected<ReceivedMessage> message = Receive();
  ASSERT_TRUE(message.ok());
  EXPECT_TRUE(message->eof);
  EXPECT_TRUE(message->fds.empty());
  EXPECT_EQ(OpenFds(), before);
}

TEST_F(MessageTest, ALastMessageArrivesEvenWhenThePeerLeftOursUnread) {
  ASSERT_TRUE(SendMessage(ours_.get(), Bytes("unread"), {}, Block::kNo).ok());
  ASSERT_TRUE(SendMessage(theirs_.get(), Bytes("last"), {}, Block::kNo).ok());
  theirs_.reset();
  const Expected<ReceivedMessage> message = Receive();
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(Text(message->size), "last");
  const Expected<ReceivedMessage> end = Receive();
  ASSERT_TRUE(end.ok());
  EXPECT_TRUE(end->eof);
}

TEST_F(MessageTest, NothingThereIsNoError) {
  const Expected<ReceivedMessage> message = Receive();
  ASSERT_TRUE(message.ok());
  EXPECT_TRUE(message->would_block);
  EXPECT_FALSE(message->eof);
}

TEST_F(MessageTest, BlockingWaitsAlsoOnANonBlockingSocket) {
  ASSERT_EQ(fcntl(ours_.get(), F_SETFL, O_NONBLOCK), 0);
  const pid_t child = fork();
  if (child == 0) {
    const bool sent =
        SendMessage(theirs_.get(), Bytes("late"), {}, Block::kNo).ok();
    _exit(sent ? 0 : 1);
  }
  const Expected<ReceivedMessage> message = Receive(Block::kYes);
  waitpid(child, nullptr, 0);
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(Text(message->size), "late");
}

TEST_F(MessageTest, SendingToNobodyIsUnavailableAndNoSignal) {
  theirs_.reset();
  const Expected<void> sent =
      SendMessage(ours_.get(), Bytes("x"), {}, Block::kNo);
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().code, Code::kUnavailable);
}

TEST_F(MessageTest, APeerThatDoesNotReadFillsItsQueue) {
  const std::string chunk(1024, 'x');
  Expected<void> sent;
  for (int i = 0; i < 100000 && sent.ok(); ++i) {
    sent = SendMessage(ours_.get(), Bytes(chunk), {}, Block::kNo);
  }
  ASSERT_FALSE(sent.ok());
  EXPECT_EQ(sent.error().code, Code::kResourceExhausted);
}

TEST_F(MessageTest, WhatCannotBeSentIsRefused) {
  EXPECT_EQ(SendMessage(ours_.get(), {}, {}, Block::kNo).error().code,
            Code::kInvalidArgument);
  const std::vector<int> fds(kMaxFdsPerMessage + 1, STDERR_FILENO);
  EXPECT_EQ(SendMessage(ours_.get(), Bytes("x"), fds, Block::kNo).error().code,
            Code::kInvalidArgument);
  const std::array<int, 1> closed = {-1};
  EXPECT_FALSE(SendMessage(ours_.get(), Bytes("x"), closed, Block::kNo).ok());
}

TEST_F(MessageTest, SocketPairsCloseOnExec) {
  EXPECT_TRUE(ClosesOnExec(ours_.get()));
  EXPECT_TRUE(ClosesOnExec(theirs_.get()));
}

class ListenTest : public ::testing::Test {
 protected:
  ListenTest() {
    std::string name = ::testing::TempDir() + "/rknnd-XXXXXX";
    folder_ = mkdtemp(name.data());
    path_ = folder_ + "/session.sock";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] size_t FilesInFolder() const {
    const std::filesystem::directory_iterator all(folder_);
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

  std::string folder_, path_;
};

TEST_F(ListenTest, AClientConnectsAndIsKnown) {
  const Expected<UniqueFd> listener = ListenUnix(path_, 0660);
  ASSERT_TRUE(listener.ok()) << listener.error().message;
  const Expected<UniqueFd> client = ConnectUnix(path_);
  ASSERT_TRUE(client.ok()) << client.error().message;
  const Expected<UniqueFd> server = Accept(listener->get());
  ASSERT_TRUE(server.ok());
  ASSERT_TRUE(server->valid());
  EXPECT_TRUE(ClosesOnExec(listener->get()));
  EXPECT_TRUE(ClosesOnExec(client->get()));
  EXPECT_TRUE(ClosesOnExec(server->get()));
  const Expected<PeerCredentials> peer = GetPeerCredentials(server->get());
  ASSERT_TRUE(peer.ok());
  EXPECT_EQ(peer->pid, getpid());
  EXPECT_EQ(peer->uid, geteuid());
  EXPECT_EQ(peer->gid, getegid());
}

TEST_F(ListenTest, PeersGroupsAreThoseOfItsProcess) {
  const Expected<UniqueFd> listener = ListenUnix(path_, 0600);
  ASSERT_TRUE(listener.ok()) << listener.error().message;
  const Expected<UniqueFd> client = ConnectUnix(path_);
  const Expected<UniqueFd> server = Accept(listener->get());
  ASSERT_TRUE(server.ok());
  const Expected<std::vector<gid_t>> groups = GetPeerGroups(server->get());
  ASSERT_TRUE(groups.ok()) << groups.error().message;
  if (groups->empty()) GTEST_SKIP() << "this kernel tells no groups";
  std::vector<gid_t> own(static_cast<size_t>(getgroups(0, nullptr)));
  ASSERT_GE(getgroups(static_cast<int>(own.size()), own.data()), 0);
  EXPECT_EQ(*groups, own);
}

TEST_F(ListenTest, TheModeIsAsAskedWhateverTheUmask) {
  const mode_t old = umask(0777);
  const Expected<UniqueFd> listener = ListenUnix(path_, 0620);
  umask(old);
  ASSERT_TRUE(listener.ok()) << listener.error().message;
  struct stat status = {};
  ASSERT_EQ(stat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0620U);
  EXPECT_EQ(FilesInFolder(), 1U);
}

TEST_F(ListenTest, NobodyWaitingIsAnInvalidFdNotAnError) {
  const Expected<UniqueFd> listener = ListenUnix(path_, 0600);
  ASSERT_TRUE(listener.ok());
  const Expected<UniqueFd> none = Accept(listener->get());
  ASSERT_TRUE(none.ok());
  EXPECT_FALSE(none->valid());
}

TEST_F(ListenTest, AStaleSocketIsReplaced) {
  { ASSERT_TRUE(ListenUnix(path_, 0600).ok()); }
  ASSERT_EQ(FilesInFolder(), 1U) << "the first listener left its name";
  const Expected<UniqueFd> second = ListenUnix(path_, 0600);
  ASSERT_TRUE(second.ok()) << second.error().message;
  EXPECT_TRUE(ConnectUnix(path_).ok());
  EXPECT_EQ(FilesInFolder(), 1U);
}

TEST_F(ListenTest, ALiveSocketIsLeftAlone) {
  const Expected<UniqueFd> first = ListenUnix(path_, 0600);
  ASSERT_TRUE(first.ok());
  const Expected<UniqueFd> second = ListenUnix(path_, 0600);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Code::kAlreadyExists);
  EXPECT_NE(second.error().message.find(path_), std::string::npos);
  EXPECT_TRUE(ConnectUnix(path_).ok());
}

TEST_F(ListenTest, AStreamSocketIsReplacedAndLeftAloneAsAnyOther) {
  {
    const Expected<UniqueFd> live = ListenUnix(path_, 0600, UnixKind::kStream);
    ASSERT_TRUE(live.ok()) << live.error().message;
    EXPECT_EQ(ListenUnix(path_, 0600, UnixKind::kStream).error().code,
              Code::kAlreadyExists);
    EXPECT_FALSE(ConnectUnix(path_).ok()) << "it is of another kind";
  }
  EXPECT_TRUE(ListenUnix(path_, 0600, UnixKind::kStream).ok());
}

TEST(ListenTcpTest, APortIsListenedOnOnce) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  const Expected<UniqueFd> first = ListenTcp(generic, size, 1000, "here");
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_TRUE(ClosesOnExec(first->get()));
  ASSERT_EQ(getsockname(first->get(), generic, &size), 0);
  const Expected<UniqueFd> second = ListenTcp(generic, size, 1000, "here");
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, Code::kAlreadyExists);
  EXPECT_NE(second.error().message.find("'here'"), std::string::npos);
}

TEST_F(ListenTest, AFileThatIsNoSocketIsLeftAlone) {
  const UniqueFd file(
      open(path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  ASSERT_TRUE(file.valid());
  const Expected<UniqueFd> listener = ListenUnix(path_, 0600);
  ASSERT_FALSE(listener.ok());
  EXPECT_EQ(listener.error().code, Code::kAlreadyExists);
}

TEST_F(ListenTest, APathThatIsTooLongIsNamedWithTheLimit) {
  const std::string path = folder_ + "/" + std::string(120, 'x');
  for (const Error& error :
       {ListenUnix(path, 0600).error(), ConnectUnix(path).error()}) {
    EXPECT_EQ(error.code, Code::kInvalidArgument);
    EXPECT_NE(error.message.find(path), std::string::npos);
    EXPECT_NE(error.message.find("107"), std::string::npos);
  }
}

TEST_F(ListenTest, TheLongestPathWorks) {
  const std::string path =
      folder_ + "/" + std::string(107 - folder_.size() - 1, 'x');
  const Expected<UniqueFd> listener = ListenUnix(path, 0600);
  ASSERT_TRUE(listener.ok()) << listener.error().message;
  EXPECT_TRUE(ConnectUnix(path).ok());
}

TEST_F(ListenTest, AMissingFolderIsNotFound) {
  EXPECT_EQ(ListenUnix(folder_ + "/none/s", 0600).error().code,
            Code::kNotFound);
}

TEST_F(ListenTest, ConnectingToAMissingPathIsNotFound) {
  EXPECT_EQ(ConnectUnix(path_).error().code, Code::kNotFound);
}

TEST_F(ListenTest, ConnectingToAStaleSocketIsUnavailable) {
  { ASSERT_TRUE(ListenUnix(path_, 0600).ok()); }
  EXPECT_EQ(ConnectUnix(path_).error().code, Code::kUnavailable);
}

TEST_F(ListenTest, AnotherProgramsSocketIsNamedSo) {
  const UniqueFd other(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  ASSERT_EQ(
      bind(other.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)),
      0);
  ASSERT_EQ(listen(other.get(), 1), 0);
  EXPECT_NE(ConnectUnix(path_).error().message.find("another program"),
            std::string::npos);
  EXPECT_EQ(ListenUnix(path_, 0600).error().code, Code::kAlreadyExists);
}

TEST_F(ListenTest, ThePeersPidFdFiresWhenItExits) {
  const Expected<UniqueFd> listener = ListenUnix(path_, 0600);
  ASSERT_TRUE(listener.ok());
  auto gate = *SeqpacketPair();
  const pid_t child = fork();
  if (child == 0) {
    const Expected<UniqueFd> client = ConnectUnix(path_);
    if (!client.ok()) _exit(1);
    gate.first.reset();
    std::array<std::byte, 1> byte = {};
    static_cast<void>(
        ReceiveMessage(gate.second.get(), byte, Block::kYes).ok());
    _exit(0);
  }
  gate.second.reset();
  pollfd waiting = {listener->get(), POLLIN, 0};
  ASSERT_EQ(poll(&waiting, 1, -1), 1);
  const UniqueFd server = *Accept(listener->get());
  const Expected<UniqueFd> pidfd = GetPeerPidFd(server.get());
  if (!pidfd.ok() && pidfd.error().code == Code::kUnimplemented) {
    gate.first.reset();
    waitpid(child, nullptr, 0);
    GTEST_SKIP() << pidfd.error().message;
  }
  ASSERT_TRUE(pidfd.ok()) << pidfd.error().message;
  EXPECT_TRUE(ClosesOnExec(pidfd->get()));
  EXPECT_FALSE(IsReadable(pidfd->get()));
  gate.first.reset();
  pollfd exited = {pidfd->get(), POLLIN, 0};
  EXPECT_EQ(poll(&exited, 1, -1), 1);
  waitpid(child, nullptr, 0);
}

TEST(PidFdTest, FiresWhenTheProcessExits) {
  auto gate = *SeqpacketPair();
  const pid_t child = fork();
  if (child == 0) {
    gate.first.reset();
    std::array<std::byte, 1> byte = {};
    static_cast<void>(
        ReceiveMessage(gate.second.get(), byte, Block::kYes).ok());
    _exit(0);
  }
  gate.second.reset();
  const Expected<UniqueFd> pidfd = OpenPidFd(child);
  ASSERT_TRUE(pidfd.ok()) << pidfd.error().message;
  EXPECT_TRUE(ClosesOnExec(pidfd->get()));
  EXPECT_FALSE(IsReadable(pidfd->get()));
  gate.first.reset();
  pollfd exited = {pidfd->get(), POLLIN, 0};
  EXPECT_EQ(poll(&exited, 1, -1), 1);
  waitpid(child, nullptr, 0);
  const Expected<UniqueFd> gone = OpenPidFd(child);
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code, Code::kNotFound);
}

TEST(PidFdTest, ProcessOfAnotherNameSpaceIsNotWatched) {
  const Expected<UniqueFd> pidfd = OpenPidFd(0);
  ASSERT_FALSE(pidfd.ok());
  EXPECT_EQ(pidfd.error().code, Code::kUnimplemented);
}

TEST(EventFdTest, SignalsAreCountedAndNeverBlock) {
  const Expected<UniqueFd> fd = MakeEventFd();
  ASSERT_TRUE(fd.ok());
  EXPECT_TRUE(ClosesOnExec(fd->get()));
  EXPECT_FALSE(IsReadable(fd->get()));
  SignalEventFd(fd->get());
  SignalEventFd(fd->get());
  uint64_t count = 0;
  ASSERT_EQ(read(fd->get(), &count, sizeof(count)),
            static_cast<ssize_t>(sizeof(count)));
  EXPECT_EQ(count, 2U);
}

TEST(EventFdTest, AFullCounterDoesNotBlockTheSignaller) {
  const Expected<UniqueFd> fd = MakeEventFd();
  ASSERT_TRUE(fd.ok());
  const uint64_t full = UINT64_MAX - 1;
  ASSERT_EQ(write(fd->get(), &full, sizeof(full)),
            static_cast<ssize_t>(sizeof(full)));
  SignalEventFd(fd->get());
  EXPECT_TRUE(IsReadable(fd->get()));
}

}  // namespace
}  // namespace rknnd::base
