// See the header; on the bridge's thread.

#include "client/remote/outbox.h"

#include <utility>

#include "rknnd/v1/remote.pb.h"

namespace rknnd::client {

void Outbox::Send(std::unique_ptr<v1::ToDaemon> message) {
  // std::function copies what it holds, and a message is not to be copied.
  auto shared =
      std::make_shared<std::unique_ptr<v1::ToDaemon>>(std::move(message));
  SendAll([shared] { return std::move(*shared); });
}

void Outbox::SendAll(Source source) {
  in_order_.push_back({std::move(source), false});
  Pump();
}

void Outbox::SendBeside(Source source) {
  in_order_.push_back({std::move(source), true});
  Pump();
}

void Outbox::Pump() {
  while (stream_->HasRoom()) {
    std::unique_ptr<v1::ToDaemon> message = Next();
    if (message == nullptr) return;
    stream_->Send(std::move(message));
  }
}

std::unique_ptr<v1::ToDaemon> Outbox::NextInOrder() {
  while (!in_order_.empty()) {
    Entry& first = in_order_.front();
    if (first.beside) {
      beside_.push_back(std::move(first.source));
    } else if (auto message = first.source()) {
      return message;
    }
    in_order_.pop_front();
  }
  return nullptr;
}

std::unique_ptr<v1::ToDaemon> Outbox::Next() {
  beside_next_ = !beside_next_;
  if (!beside_next_) {
    if (auto message = NextInOrder()) return message;
  }
  while (!beside_.empty()) {
    if (auto message = beside_.front()()) return message;
    beside_.pop_front();
  }
  return NextInOrder();
}

}  // namespace rknnd::client
