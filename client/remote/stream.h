// One rknnd.v1.Remote.Session stream and its channel: messages in, messages
// out. All that is gRPC's ends here; its threads take every signal as blocked,
// because the thread that begins the stream has them blocked.

#ifndef CLIENT_REMOTE_STREAM_H_
#define CLIENT_REMOTE_STREAM_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/posix/clock.h"
#include "base/values/expected.h"
#include "client/remote/dial_options.h"

namespace rknnd::v1 {
class ToClient;
class ToDaemon;
}  // namespace rknnd::v1

namespace rknnd::client {

// Thread: one, but where noted.
class Stream {
 public:
  // What waits to be written: one is on its way, the next is ready for it.
  static constexpr size_t kRoom = 2;

  // Begins it; whether there is a daemon shows later. `wake` is called on
  // threads of gRPC's when there may be something to Receive, room to Send, or
  // an end; never after End() has returned true.
  static std::unique_ptr<Stream> Begin(const DialOptions& options,
                                       std::function<void()> wake);
  // Starts gRPC for as long as the process lives, so that what is registered
  // for its end afterwards runs before gRPC's own. Thread: any.
  static void StartLibrary();
  // Only after AwaitEnd.
  virtual ~Stream() = default;

  [[nodiscard]] virtual bool HasRoom() = 0;
  virtual void Send(std::unique_ptr<v1::ToDaemon> message) = 0;
  // All that has arrived, in order.
  virtual std::vector<std::unique_ptr<v1::ToClient>> Receive() = 0;
  // Why it has ended; nothing while it lasts.
  virtual std::optional<base::Error> End() = 0;

  // Ends it soon.
  virtual void Cancel() = 0;
  // Waits until no thread of gRPC's is in it any more; false when that did not
  // happen in time, and then it must stay as it is for ever.
  virtual bool AwaitEnd(base::Nanoseconds timeout) = 0;
};

}  // namespace rknnd::client

#endif  // CLIENT_REMOTE_STREAM_H_
