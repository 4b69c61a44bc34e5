// A message in the pieces in which gRPC received it, for protobuf to read from.
// Included by the two files that parse such messages, and by no header:
// protobuf stays in source files. Thread: one.

#ifndef DAEMON_TRANSPORT_GRPC_PIECES_STREAM_H_
#define DAEMON_TRANSPORT_GRPC_PIECES_STREAM_H_

#include <google/protobuf/io/zero_copy_stream.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rknnd::transport {

class PiecesStream final : public google::protobuf::io::ZeroCopyInputStream {
 public:
  // No piece is longer than an int.
  using Pieces = std::vector<std::span<const std::byte>>;

  // They outlive this.
  explicit PiecesStream(const Pieces& pieces) : pieces_(pieces) {}

  bool Next(const void** data, int* size) override {
    while (piece_ < pieces_.size() && at_ == pieces_[piece_].size()) {
      ++piece_;
      at_ = 0;
    }
    if (piece_ == pieces_.size()) return false;
    const auto rest = pieces_[piece_].subspan(at_);
    *data = rest.data();
    *size = static_cast<int>(rest.size());
    at_ += rest.size();
    count_ += *size;
    return true;
  }
  void BackUp(int count) override {
    at_ -= static_cast<size_t>(count);
    count_ -= count;
  }
  bool Skip(int count) override {
    const void* data = nullptr;
    int size = 0;
    while (count > 0) {
      if (!Next(&data, &size)) return false;
      if (size > count) BackUp(size - count);
      count -= std::min(size, count);
    }
    return true;
  }
  [[nodiscard]] int64_t ByteCount() const override { return count_; }

 private:
  const Pieces& pieces_;
  size_t piece_ = 0, at_ = 0;
  int64_t count_ = 0;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_PIECES_STREAM_H_
