// See raw_peer.h.

#include "bench/hostile/raw_peer.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <stdexcept>

#include "base/posix/memfd.h"
#include "base/posix/socket.h"
#include "base/values/sha256.h"

namespace rknnd::bench {
namespace {

constexpr int kTries = 1000;

}  // namespace

RawPeer::RawPeer(const std::string& socket) {
  for (int i = 0; i < kTries; ++i) {
    auto connected = base::ConnectUnix(socket);
    if (connected) {
      socket_ = *std::move(connected);
      return;
    }
    poll(nullptr, 0, 1);
  }
  throw std::runtime_error("cannot connect to '" + socket + "'");
}

bool RawPeer::SayHello() {
  wire::Hello hello{};
  hello.protocol_min = wire::kProtocolMinimum;
  hello.protocol_max = wire::kProtocolCurrent;
  wire::SetText(hello.comm, "hostile");
  auto reply = Ask(wire::Verb::kHello, hello);
  if (!reply || reply->fds.size() != 2) return false;
  auto mapping = base::Mapping::OfFd(reply->fds[0].get(), 0, wire::kRingBytes,
                                     base::Mapping::Access::kReadWrite);
  if (!mapping) return false;
  mapping_ = *std::move(mapping);
  doorbell_ = std::move(reply->fds[1]);
  return true;
}

base::Expected<wire::Frame> RawPeer::AskBytes(wire::Verb verb,
                                              std::vector<std::byte> body,
                                              int fd) {
  wire::Frame frame;
  frame.verb = verb;
  frame.request = ++last_request_;
  frame.body = std::move(body);
  if (fd >= 0) {
    auto copy = base::Duplicate(fd);
    if (!copy) return std::move(copy).error();
    frame.fds.push_back(*std::move(copy));
  }
  if (auto sent = wire::SendFrame(socket_.get(), frame, base::Block::kYes);
      !sent) {
    return std::move(sent).error();
  }
  for (;;) {
    auto reply = wire::ReceiveFrame(socket_.get(), base::Block::kYes);
    if (!reply) return std::move(reply).error();
    if (reply->kind == wire::FrameResult::Kind::kEndOfFile) {
      return base::Error{base::Code::kUnavailable, "it was disconnected"};
    }
    if (reply->frame.request != last_request_) continue;
    if (reply->frame.code != base::Code::kOk) {
      return wire::DecodeFailure(reply->frame);
    }
    return std::move(reply->frame);
  }
}

base::Expected<void> RawPeer::Load(const std::string& name,
                                   const std::string& model, uint32_t context) {
  const auto bytes = std::as_bytes(std::span(model.data(), model.size()));
  const base::Sha256Digest hash = base::Sha256Of(bytes);
  auto memfd = base::MakeImmutableMemfd("model", bytes);
  if (!memfd) return std::move(memfd).error();
  wire::UploadModel upload;
  upload.name = name;
  upload.model = hash;
  if (auto sent = Ask(wire::Verb::kUploadModel, upload, memfd->get()); !sent) {
    return std::move(sent).error();
  }
  wire::CreateContext create{};
  create.context = context;
  std::copy(hash.begin(), hash.end(), std::begin(create.model));
  auto created = Ask(wire::Verb::kCreateContext, create);
  if (!created) return std::move(created).error();
  auto info = wire::Decode<wire::ContextInfo>(created->body);
  if (!info) return std::move(info).error();
  info_ = *std::move(info);
  return {};
}

base::Expected<void> RawPeer::BindNew(uint32_t context,
                                      const wire::TensorAttr& attr, bool output,
                                      uint32_t buffer) {
  wire::AllocateBuffer allocate{};
  allocate.buffer = buffer;
  allocate.size = attr.size_with_stride;
  if (auto got = Ask(wire::Verb::kAllocateBuffer, allocate); !got) {
    return std::move(got).error();
  }
  wire::Bind bind{};
  bind.context = context;
  bind.output = output;
  bind.buffer = buffer;
  bind.size = attr.size_with_stride;
  bind.type = attr.type;
  bind.layout = attr.layout;
  if (auto bound = Ask(wire::Verb::kBind, bind); !bound) {
    return std::move(bound).error();
  }
  return {};
}

// Not by base::SendMessage, which refuses what good peers do not send.
bool RawPeer::SendBytes(std::span<const std::byte> bytes,
                        std::span<const int> fds) {
  iovec part = {const_cast<std::byte*>(bytes.data()), bytes.size()};
  std::vector<std::byte> control(CMSG_SPACE(fds.size_bytes()));
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  return sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

void RawPeer::Ring() { base::SignalEventFd(doorbell_.get()); }

void RawPeer::Push(const wire::Submission& entry) {
  const uint32_t tail = ring().header.tail.load();
  ring().submissions[tail % wire::kRingEntries] = entry;
  ring().header.tail.store(tail + 1);
}

void RawPeer::Run(wire::Submission entry) {
  entry.operation = static_cast<uint32_t>(wire::RingOperation::kRun);
  entry.sequence = ++last_sequence_;
  const wire::Completion& completion =
      ring().completions[entry.slot % wire::kRingEntries];
  Push(entry);
  Ring();
  pollfd end = {socket_.get(), 0, 0};
  while (completion.sequence.load() != entry.sequence) {
    if (poll(&end, 1, 0) > 0) throw std::runtime_error("disconnected");
  }
}

std::vector<std::byte> Noise(uint64_t seed, size_t size) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

}  // namespace rknnd::bench
