// Threads: the bridge's, which calls, and gRPC's, which react. They meet under
// one lock, which is never held over a call of gRPC's that may react at once.

#include "client/remote/stream.h"

#include <dlfcn.h>
#include <grpc/grpc.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>
#include <grpcpp/support/client_callback.h>
#include <openssl/crypto.h>

#include <chrono>
#include <deque>
#include <string>
#include <utility>

#include "base/posix/blocked_signals.h"
#include "base/posix/mutex.h"
#include "rknnd/v1/remote.grpc.pb.h"

namespace rknnd::client {
namespace {

// Messages have 1 MiB and a little; a newer daemon's may have more.
constexpr int kLargestMessage = 32 << 20;
// Messages that have arrived and that nobody has taken: beyond them the daemon
// is not read any more.
constexpr size_t kMostUnread = 16;

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(
    const DialOptions& options) {
  if (!options.tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = options.roots;
  ssl.pem_private_key = options.key;
  ssl.pem_cert_chain = options.certificate;
  return grpc::SslCredentials(ssl);
}

std::shared_ptr<grpc::Channel> MakeChannel(const DialOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kLargestMessage);
  arguments.SetMaxSendMessageSize(-1);
  arguments.SetServiceConfigJSON(options.service_config);
  // A connection of its own, and no memory of failures of others' before it.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (!options.http_proxy) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(options.target, CredentialsOf(options),
                                   arguments);
}

class GrpcStream final
    : public Stream,
      private grpc::ClientBidiReactor<v1::ToDaemon, v1::ToClient> {
 public:
  GrpcStream(const DialOptions& options, std::function<void()> wake)
      : wake_(std::move(wake)),
        channel_(MakeChannel(options)),
        stub_(v1::Remote::NewStub(channel_)) {
    if (!options.token.empty()) {
      context_.AddMetadata("authorization", "Bearer " + options.token);
    }
  }

  void Start() {
    stub_->async()->Session(&context_, this);
    // Messages are sent and asked for from outside the reactions.
    AddHold();
    incoming_ = std::make_unique<v1::ToClient>();
    StartRead(incoming_.get());
    StartCall();
  }

  bool HasRoom() override {
    const base::MutexLock lock(mutex_);
    return !released_ && outgoing_.size() < kRoom;
  }

  void Send(std::unique_ptr<v1::ToDaemon> message) override {
    const v1::ToDaemon* first = nullptr;
    {
      const base::MutexLock lock(mutex_);
      if (released_) return;
      outgoing_.push_back(std::move(message));
      if (outgoing_.size() == 1) first = outgoing_.front().get();
    }
    // Only this thread releases the hold, so that the stream is still there.
    if (first != nullptr) StartWrite(first);
  }

  std::vector<std::unique_ptr<v1::ToClient>> Receive() override {
    std::vector<std::unique_ptr<v1::ToClient>> messages;
    v1::ToClient* next = nullptr;
    bool release = false;
    {
      const base::MutexLock lock(mutex_);
      messages.swap(unread_);
      if (!released_ && !failed_ && incoming_ == nullptr) {
        incoming_ = std::make_unique<v1::ToClient>();
        next = incoming_.get();
      }
      release = failed_ && !std::exchange(released_, released_ || failed_);
    }
    if (next != nullptr) StartRead(next);
    if (release) RemoveHold();
    return messages;
  }

  std::optional<base::Error> End() override {
    const base::MutexLock lock(mutex_);
    return end_;
  }

  void Cancel() override {
    {
      const base::MutexLock lock(mutex_);
      if (std::exchange(released_, true)) return;
    }
    context_.TryCancel();
    RemoveHold();
  }

  bool AwaitEnd(base::Nanoseconds timeout) override {
    const auto deadline =
        std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout);
    const base::MutexLock lock(mutex_);
    while (!done_) {
      if (ended_.wait_until(mutex_, deadline) == std::cv_status::timeout) break;
    }
    return done_;
  }

 private:
  void OnReadDone(bool ok) override {
    v1::ToClient* next = nullptr;
    {
      const base::MutexLock lock(mutex_);
      if (!ok) {
        failed_ = true;
        incoming_.reset();
      } else {
        unread_.push_back(std::move(incoming_));
        if (unread_.size() < kMostUnread) {
          incoming_ = std::make_unique<v1::ToClient>();
          next = incoming_.get();
        }
      }
    }
    if (next != nullptr) StartRead(next);
    wake_();
  }

  void OnWriteDone(bool ok) override {
    const v1::ToDaemon* next = nullptr;
    {
      const base::MutexLock lock(mutex_);
      outgoing_.pop_front();
      if (ok && !outgoing_.empty()) next = outgoing_.front().get();
    }
    if (next != nullptr) StartWrite(next);
    wake_();
  }

  void OnDone(const grpc::Status& status) override {
    {
      const base::MutexLock lock(mutex_);
      end_ = status.ok()
                 ? base::Error{base::Code::kUnavailable, "it ended the session"}
                 : base::Error{static_cast<base::Code>(status.error_code()),
                               status.error_message()};
    }
    wake_();
    // The last that is touched of this: it may go with the lock.
    const base::MutexLock lock(mutex_);
    done_ = true;
    ended_.notify_all();
  }

  const std::function<void()> wake_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Remote::Stub> stub_;
  grpc::ClientContext context_;

  base::Mutex mutex_;
  base::CondVar ended_;
  // The first is being written.
  std::deque<std::unique_ptr<v1::ToDaemon>> outgoing_ RKNND_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<v1::ToClient>> unread_ RKNND_GUARDED_BY(mutex_);
  // Being read into; null: nothing is.
  std::unique_ptr<v1::ToClient> incoming_ RKNND_GUARDED_BY(mutex_);
  bool failed_ RKNND_GUARDED_BY(mutex_) = false;    // nothing comes any more
  bool released_ RKNND_GUARDED_BY(mutex_) = false;  // the hold
  std::optional<base::Error> end_ RKNND_GUARDED_BY(mutex_);
  bool done_ RKNND_GUARDED_BY(mutex_) = false;
};

}  // namespace

void Stream::StartLibrary() {
  // Threads of gRPC may be in a handshake when the process ends. OpenSSL's own
  // handler at exit would take from them what they use, and leave them, and who
  // waits for them, hanging: the system takes it all back anyway. Looked up
  // where gRPC finds it: what is linked here by name is the copy that hashes
  // models.
  using InitCrypto = decltype(&OPENSSL_init_crypto);
  if (const auto init = reinterpret_cast<InitCrypto>(
          ::dlsym(RTLD_DEFAULT, "OPENSSL_init_crypto"));
      init != nullptr) {
    init(OPENSSL_INIT_NO_ATEXIT, nullptr);
  }
  // Its threads stay, too.
  const base::BlockedSignals blocked;
  grpc_init();
}

std::unique_ptr<Stream> Stream::Begin(const DialOptions& options,
                                      std::function<void()> wake) {
  auto stream = std::make_unique<GrpcStream>(options, std::move(wake));
  stream->Start();
  return stream;
}

}  // namespace rknnd::client
