// What a peer may send as rknnd.v1.ToDaemon, in pieces as gRPC hands it over:
// whatever the hand-written reader makes of it, protobuf's own must too.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>

#include "daemon/transport/grpc/session/message.h"
#include "rknnd/v1/remote.pb.h"

namespace {

using rknnd::transport::Pieces;

void Require(bool condition) {
  if (!condition) std::abort();
}

std::string Joined(const Pieces& pieces) {
  std::string all;
  for (const auto& piece : pieces) {
    all.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  // The first byte is how it is cut.
  const size_t cut = size_t{data[0]} + 1;
  const auto rest = std::as_bytes(std::span(data, size)).subspan(1);
  Pieces message;
  for (size_t at = 0; at < rest.size(); at += cut) {
    message.push_back(rest.subspan(at, std::min(cut, rest.size() - at)));
  }
  const auto read = rknnd::transport::ParseToDaemon(message);
  if (!read.ok()) return 0;
  rknnd::v1::ToDaemon whole;
  Require(whole.ParseFromArray(rest.data(), static_cast<int>(rest.size())));
  if (const auto* chunk = std::get_if<rknnd::transport::RemoteChunk>(&*read)) {
    Require(whole.has_chunk() && whole.chunk().request() == chunk->request);
    Require(whole.chunk().data() == Joined(chunk->data));
    Require(whole.chunk().data().size() == chunk->size);
  }
  if (const auto* write = std::get_if<rknnd::transport::RemoteData>(&*read)) {
    Require(whole.has_write() && whole.write().buffer() == write->buffer);
    Require(whole.write().offset() == write->offset);
    Require(whole.write().data() == Joined(write->data));
    Require(whole.write().data().size() == write->size);
  }
  return 0;
}
