// The thread that begins to write to streams that have been idle: a worker that
// has ended a job must neither wait for gRPC nor allocate, and gRPC does both.
// One thread for all streams; what follows the first message of each is written
// by gRPC's own threads.

#ifndef DAEMON_TRANSPORT_GRPC_SESSION_SENDER_H_
#define DAEMON_TRANSPORT_GRPC_SESSION_SENDER_H_

#include <condition_variable>
#include <memory>
#include <thread>

#include "base/posix/mutex.h"

namespace rknnd::transport {

// Somebody who has something to send.
class Sendable {
 public:
  virtual ~Sendable() = default;
  // Begins to write. Thread: the sender's.
  virtual void SendNext() = 0;

 private:
  friend class Sender;
  std::shared_ptr<Sendable> next_;  // behind it in the sender's list
};

class Sender {
 public:
  Sender();
  ~Sender();
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  // SendNext is called soon, unless this stops. Whoever is in the list already
  // is not to be added again before that. Allocates nothing. Thread: any.
  void Add(std::shared_ptr<Sendable> sendable);
  // Joins the thread. Thread: not its own.
  void Stop();

 private:
  void Run();

  base::Mutex mutex_;
  base::CondVar wake_;
  std::shared_ptr<Sendable> first_ RKNND_GUARDED_BY(mutex_);
  Sendable* last_ RKNND_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ RKNND_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace rknnd::transport

#endif  // DAEMON_TRANSPORT_GRPC_SESSION_SENDER_H_
