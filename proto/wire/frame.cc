// Frames on a SOCK_SEQPACKET socket. The receiving half trusts nothing: not
// the length in the header, not the kind of file behind an fd.

#include "proto/wire/frame.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "base/posix/memfd.h"

namespace rknnd::wire {
namespace {

base::Error NoFrame(std::string what) {
  return {base::Code::kDataLoss, "protocol: " + std::move(what)};
}

// Copies a body out of the memfd that carried it.
base::Expected<std::vector<std::byte>> ReadMemfdBody(int fd, uint32_t size) {
  if (size > kMaxMemfdBody) {
    return NoFrame("body of " + std::to_string(size) + " bytes, at most " +
                   std::to_string(kMaxMemfdBody));
  }
  if (!base::HasSeals(fd, base::Seals::kImmutable)) {
    return NoFrame("body is no memfd sealed against shrink, grow and write");
  }
  struct stat status {};
  if (fstat(fd, &status) != 0 ||
      static_cast<uint64_t>(status.st_size) != size) {
    return NoFrame("memfd of the body and its header differ in size");
  }
  std::vector<std::byte> body(size);
  size_t done = 0;
  while (done < body.size()) {
    const ssize_t got = pread(fd, body.data() + done, body.size() - done,
                              static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return NoFrame("memfd of the body cannot be read");
    done += static_cast<size_t>(got);
  }
  return body;
}

}  // namespace

base::Expected<void> SendFrame(int socket, const Frame& frame,
                               base::Block block) {
  if (frame.body.size() > kMaxMemfdBody) {
    return base::Error{base::Code::kOutOfRange,
                       "message of " + std::to_string(frame.body.size()) +
                           " bytes, at most " + std::to_string(kMaxMemfdBody)};
  }
  FrameHeader header{};
  header.size = static_cast<uint32_t>(frame.body.size());
  header.verb = static_cast<uint16_t>(frame.verb);
  header.kind = static_cast<uint16_t>(frame.kind);
  header.request = frame.request;
  header.code = static_cast<int32_t>(frame.code);

  std::vector<int> fds;
  fds.reserve(frame.fds.size() + 1);
  for (const base::UniqueFd& fd : frame.fds) fds.push_back(fd.get());

  base::UniqueFd memfd;
  std::vector<std::byte> datagram(sizeof header);
  if (frame.body.size() > kMaxInlineBody) {
    header.flags |= kBodyInMemfd;
    auto made = base::MakeImmutableMemfd("rknnd-message", frame.body);
    if (!made.ok()) return std::move(made).error();
    memfd = *std::move(made);
    fds.push_back(memfd.get());
  } else {
    datagram.insert(datagram.end(), frame.body.begin(), frame.body.end());
  }
  std::memcpy(datagram.data(), &header, sizeof header);
  return base::SendMessage(socket, datagram, fds, block);
}

base::Expected<FrameResult> ReceiveFrame(int socket, base::Block block) {
  // Not on the stack: a host program's threads may have little of it.
  const std::unique_ptr<std::byte[]> buffer(new std::byte[kMaxDatagram]);
  auto received =
      base::ReceiveMessage(socket, {buffer.get(), kMaxDatagram}, block);
  if (!received.ok()) return std::move(received).error();

  FrameResult result{};
  if (received->would_block) {
    result.kind = FrameResult::Kind::kWouldBlock;
    return result;
  }
  if (received->eof) {
    result.kind = FrameResult::Kind::kEndOfFile;
    return result;
  }
  FrameHeader header;
  if (received->size < sizeof header) {
    return NoFrame("datagram of " + std::to_string(received->size) +
                   " bytes is shorter than a frame's header");
  }
  std::memcpy(&header, buffer.get(), sizeof header);
  if (header.kind > static_cast<uint16_t>(FrameKind::kEvent)) {
    return NoFrame("frame of unknown kind " + std::to_string(header.kind));
  }
  if ((header.flags & ~kBodyInMemfd) != 0) {
    return NoFrame("frame with unknown flags " + std::to_string(header.flags));
  }

  Frame& frame = result.frame;
  const size_t inline_size = received->size - sizeof header;
  if ((header.flags & kBodyInMemfd) != 0) {
    if (inline_size != 0) return NoFrame("frame with two bodies");
    if (received->fds.empty()) return NoFrame("frame without its body's memfd");
    auto body = ReadMemfdBody(received->fds.back().get(), header.size);
    if (!body.ok()) return std::move(body).error();
    frame.body = *std::move(body);
    received->fds.pop_back();
  } else {
    if (header.size != inline_size) {
      return NoFrame("frame announces " + std::to_string(header.size) +
                     " bytes and brings " + std::to_string(inline_size));
    }
    const std::byte* begin = buffer.get() + sizeof header;
    frame.body.assign(begin, begin + inline_size);
  }
  result.kind = FrameResult::Kind::kFrame;
  frame.verb = static_cast<Verb>(header.verb);
  frame.kind = static_cast<FrameKind>(header.kind);
  frame.request = header.request;
  frame.code = static_cast<base::Code>(header.code);
  frame.fds = std::move(received->fds);
  return result;
}

}  // namespace rknnd::wire
