// Datagrams as a hostile peer may send them, through the whole receive path of
// the session socket. First byte: how many fds come along; the rest is the
// datagram. What is taken for a frame must survive being sent on.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "base/posix/memfd.h"
#include "base/posix/socket.h"
#include "proto/wire/frame.h"

namespace {

using rknnd::base::Block;
using rknnd::wire::FrameResult;

void Require(bool holds) {
  if (!holds) std::abort();
}

FrameResult SendOn(const rknnd::wire::Frame& frame) {
  auto pair = rknnd::base::SeqpacketPair();
  Require(pair.ok());
  Require(rknnd::wire::SendFrame(pair->first.get(), frame, Block::kNo).ok());
  auto again = rknnd::wire::ReceiveFrame(pair->second.get(), Block::kNo);
  Require(again.ok());
  return std::move(*again);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  const auto bytes = std::as_bytes(std::span(data, size));
  auto pair = rknnd::base::SeqpacketPair();
  Require(pair.ok());
  // A body by memfd is the datagram's own bytes: a frame may claim any size.
  auto body = rknnd::base::MakeImmutableMemfd("fuzz", bytes);
  Require(body.ok());
  const std::vector<int> fds(data[0] % 3, body->get());
  if (!rknnd::base::SendMessage(pair->first.get(), bytes.subspan(1), fds,
                                Block::kNo)
           .ok()) {
    return 0;  // longer than the socket takes
  }
  auto result = rknnd::wire::ReceiveFrame(pair->second.get(), Block::kNo);
  if (!result.ok() || result->kind != FrameResult::Kind::kFrame) {
    return 0;
  }
  const FrameResult again = SendOn(result->frame);
  Require(again.kind == FrameResult::Kind::kFrame);
  Require(again.frame.verb == result->frame.verb);
  Require(again.frame.request == result->frame.request);
  Require(again.frame.body == result->frame.body);
  Require(again.frame.fds.size() == result->frame.fds.size());
  return 0;
}
