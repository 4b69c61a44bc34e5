#include "tests/integration/harness/raw_client.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cstring>
#include <utility>

#include "base/posix/clock.h"
#include "base/posix/socket.h"
#include "tests/integration/harness/patience.h"

namespace rknnd::integration {

using base::Code;
using base::Error;
using base::Expected;

RawClient::RawClient(const std::string& path) {
  auto socket = base::ConnectUnix(path);
  if (!socket.ok()) {
    ADD_FAILURE() << socket.error().message;
    return;
  }
  socket_ = *std::move(socket);
}

void RawClient::SayHello() {
  wire::Hello hello{};
  hello.protocol_min = wire::kProtocolMinimum;
  hello.protocol_max = wire::kProtocolCurrent;
  wire::SetText(hello.comm, "raw");
  Expected<wire::Frame> reply = Ask(wire::Verb::kHello, hello);
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  const auto welcome = wire::Decode<wire::Welcome>(reply->body);
  ASSERT_TRUE(welcome.ok()) << welcome.error().message;
  ASSERT_EQ(reply->fds.size(), 2U);
  welcome_ = *welcome;
  auto mapping = base::Mapping::OfFd(reply->fds[0].get(), 0, wire::kRingBytes,
                                     base::Mapping::Access::kReadWrite);
  ASSERT_TRUE(mapping.ok()) << mapping.error().message;
  mapping_ = *std::move(mapping);
  doorbell_ = std::move(reply->fds[1]);
}

Expected<wire::Frame> RawClient::Receive() {
  const base::MonotonicClock clock;
  const base::Nanoseconds deadline = clock.Now() + kPatience;
  while (clock.Now() < deadline) {
    pollfd entry = {socket_.get(), POLLIN, 0};
    if (poll(&entry, 1, 1000) <= 0) continue;
    auto result = wire::ReceiveFrame(socket_.get(), base::Block::kNo);
    if (!result.ok()) return std::move(result).error();
    if (result->kind == wire::FrameResult::Kind::kEndOfFile) {
      return Error{Code::kUnavailable, "the daemon has closed the connection"};
    }
    if (result->kind == wire::FrameResult::Kind::kFrame) {
      return std::move(result->frame);
    }
  }
  return Error{Code::kDeadlineExceeded, "the daemon says nothing"};
}

Expected<wire::Frame> RawClient::Ask(wire::Verb verb,
                                     std::vector<std::byte> body,
                                     base::UniqueFd fd) {
  wire::Frame frame;
  frame.verb = verb;
  frame.request = ++last_request_;
  frame.body = std::move(body);
  if (fd.valid()) frame.fds.push_back(std::move(fd));
  if (auto sent = wire::SendFrame(socket_.get(), frame, base::Block::kYes);
      !sent.ok()) {
    return std::move(sent).error();
  }
  for (;;) {
    Expected<wire::Frame> reply = Receive();
    if (!reply.ok()) return reply;
    if (reply->request != last_request_) continue;
    if (reply->code != Code::kOk) return wire::DecodeFailure(*reply);
    return reply;
  }
}

wire::Report RawClient::Report(rknnd_v1_ReportKind kind) {
  auto reply = Ask(wire::Verb::kReport,
                   wire::ReportRequest{static_cast<uint32_t>(kind)});
  if (!reply.ok()) {
    ADD_FAILURE() << reply.error().message;
    return {};
  }
  auto report = wire::Decode<wire::Report>(reply->body);
  if (!report.ok()) {
    ADD_FAILURE() << report.error().message;
    return {};
  }
  return *std::move(report);
}

bool RawClient::SendBytes(std::span<const std::byte> bytes,
                          std::span<const int> fds) {
  // Not base::SendMessage, which refuses what a good peer does not send.
  iovec part = {const_cast<std::byte*>(bytes.data()), bytes.size()};
  std::vector<std::byte> control(CMSG_SPACE(fds.size_bytes()));
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  return sendmsg(socket_.get(), &message, MSG_NOSIGNAL) >= 0;
}

bool RawClient::WaitForClose() {
  for (;;) {
    const Expected<wire::Frame> frame = Receive();
    if (!frame.ok()) return frame.error().code != Code::kDeadlineExceeded;
  }
}

void RawClient::Ring() { base::SignalEventFd(doorbell_.get()); }

void RawClient::Push(const wire::Submission& entry) {
  const uint32_t tail = ring().header.tail.load();
  ring().submissions[tail % wire::kRingEntries] = entry;
  ring().header.tail.store(tail + 1);
}

Error RawClient::Submit(wire::Submission entry) {
  entry.sequence = ++last_sequence_;
  wire::Completion& completion = ring().completions[entry.slot];
  Push(entry);
  Ring();
  const bool answered =
      Eventually([&] { return completion.sequence.load() == entry.sequence; });
  if (!answered) return {Code::kDeadlineExceeded, "no completion"};
  return {static_cast<Code>(completion.code), ring().texts[entry.slot].text};
}

}  // namespace rknnd::integration
