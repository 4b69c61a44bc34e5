// The order in which a bridge's messages leave: those of one kind strictly one
// after the other, and large transfers beside them, so that a model that is
// being pushed does not hold up a run. Messages are made when the stream has
// room for them, from memory that stays as it is until then: nothing large is
// kept here.

#ifndef CLIENT_REMOTE_OUTBOX_H_
#define CLIENT_REMOTE_OUTBOX_H_

#include <deque>
#include <functional>
#include <memory>

#include "client/remote/stream.h"

namespace rknnd::client {

// Thread: bridge.
class Outbox {
 public:
  // The next message of several; null: there was no more.
  using Source = std::function<std::unique_ptr<v1::ToDaemon>()>;

  explicit Outbox(Stream* stream) : stream_(stream) {}

  // Behind all that was put here before.
  void Send(std::unique_ptr<v1::ToDaemon> message);
  void SendAll(Source source);
  // Once all that was put here before has left; what is put here later takes
  // turns with it.
  void SendBeside(Source source);

  // Gives the stream what it has room for.
  void Pump();

 private:
  struct Entry {
    Source source;
    bool beside = false;
  };

  std::unique_ptr<v1::ToDaemon> Next();
  std::unique_ptr<v1::ToDaemon> NextInOrder();

  Stream* const stream_;
  std::deque<Entry> in_order_;
  std::deque<Source> beside_;
  bool beside_next_ = false;
};

}  // namespace rknnd::client

#endif  // CLIENT_REMOTE_OUTBOX_H_
