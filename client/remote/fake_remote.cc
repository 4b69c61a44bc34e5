// Each session is a loop on a thread of gRPC's synchronous server.

#include "client/remote/fake_remote.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "base/posix/mutex.h"
#include "proto/wire/codec.h"
#include "proto/wire/ring.h"
#include "rknn_api.h"
#include "rknnd/v1/remote.grpc.pb.h"

namespace rknnd::client {
namespace {

constexpr size_t kPiece = 256 * 1024;

using Stream = grpc::ServerReaderWriter<v1::ToClient, v1::ToDaemon>;

template <class Message>
std::string BodyOf(const Message& message) {
  const auto body = wire::Encode(message);
  return {reinterpret_cast<const char*>(body->data()), body->size()};
}

template <class Message>
Message BodyIn(const v1::Frame& frame) {
  return *wire::Decode<Message>(std::as_bytes(std::span(frame.body())));
}

}  // namespace

struct FakeRemote::Impl final : v1::Remote::Service {
  // A client's, on its thread.
  struct Client {
    Stream* stream = nullptr;
    std::map<uint32_t, std::string> buffers;
    std::map<std::pair<bool, uint32_t>, wire::Bind> binds;  // by set
    std::map<uint32_t, std::pair<v1::Frame, uint64_t>> arriving;
  };

  grpc::Status Session(grpc::ServerContext* context, Stream* stream) override;
  void OnFrame(Client& session, const v1::Frame& frame);
  void OnRun(Client& session, const v1::Run& run);
  wire::ContextInfo Info() const;

  uint64_t elements = 0;
  int port = 0;
  std::unique_ptr<grpc::Server> server;

  mutable base::Mutex mutex;
  base::CondVar run_seen;
  std::string token RKNND_GUARDED_BY(mutex);
  bool answers_runs RKNND_GUARDED_BY(mutex) = true;
  bool silent RKNND_GUARDED_BY(mutex) = false;
  std::set<std::string> models RKNND_GUARDED_BY(mutex);
  Seen seen RKNND_GUARDED_BY(mutex);
};

grpc::Status FakeRemote::Impl::Session(grpc::ServerContext* context,
                                       Stream* stream) {
  {
    const base::MutexLock lock(mutex);
    const auto shown = context->client_metadata().find("authorization");
    const std::string said =
        shown == context->client_metadata().end()
            ? ""
            : std::string(shown->second.data(), shown->second.size());
    if (!token.empty() && said != "Bearer " + token) {
      return {grpc::StatusCode::UNAUTHENTICATED, "the token is not known"};
    }
    ++seen.sessions;
  }
  Client session;
  session.stream = stream;
  v1::ToDaemon message;
  while (stream->Read(&message)) {
    {
      const base::MutexLock lock(mutex);
      if (silent) continue;
    }
    switch (message.part_case()) {
      case v1::ToDaemon::kPing: {
        v1::ToClient pong;
        pong.mutable_pong()->set_token(message.ping().token());
        stream->Write(pong);
        break;
      }
      case v1::ToDaemon::kFrame: {
        uint64_t size = 0;
        for (const uint64_t part : message.frame().attachments()) size += part;
        if (size == 0) {
          OnFrame(session, message.frame());
        } else {
          session.arriving[message.frame().request()] = {message.frame(), size};
        }
        break;
      }
      case v1::ToDaemon::kChunk: {
        const auto found = session.arriving.find(message.chunk().request());
        if (found == session.arriving.end()) break;
        {
          const base::MutexLock lock(mutex);
          seen.uploaded_bytes += message.chunk().data().size();
          seen.largest_piece = std::max<uint64_t>(
              seen.largest_piece, message.chunk().data().size());
        }
        found->second.second -= message.chunk().data().size();
        if (found->second.second == 0) {
          const v1::Frame whole = found->second.first;
          session.arriving.erase(found);
          OnFrame(session, whole);
        }
        break;
      }
      case v1::ToDaemon::kWrite: {
        const v1::Data& data = message.write();
        session.buffers[data.buffer()].replace(data.offset(),
                                               data.data().size(), data.data());
        const base::MutexLock lock(mutex);
        seen.largest_piece =
            std::max<uint64_t>(seen.largest_piece, data.data().size());
        break;
      }
      case v1::ToDaemon::kRun:
        OnRun(session, message.run());
        break;
      default:
        break;
    }
  }
  return grpc::Status::OK;
}

wire::ContextInfo FakeRemote::Impl::Info() const {
  wire::TensorAttr attr{};
  attr.dims_count = 2;
  attr.dims[0] = 1;
  attr.dims[1] = static_cast<uint32_t>(elements);
  attr.elements = attr.size = attr.size_with_stride = elements;
  attr.type = RKNN_TENSOR_UINT8;
  attr.layout = RKNN_TENSOR_UNDEFINED;
  wire::ContextInfo info;
  wire::SetText(attr.name, "in");
  info.inputs = info.native_inputs = info.native_nhwc_inputs = {attr};
  wire::SetText(attr.name, "out");
  info.outputs = info.native_outputs = info.native_nhwc_outputs = {attr};
  return info;
}

void FakeRemote::Impl::OnFrame(Client& session, const v1::Frame& frame) {
  v1::ToClient message;
  v1::Frame* const reply = message.mutable_frame();
  reply->set_verb(frame.verb());
  reply->set_kind(static_cast<uint32_t>(wire::FrameKind::kReply));
  reply->set_request(frame.request());
  std::string attached;
  switch (static_cast<wire::Verb>(frame.verb())) {
    case wire::Verb::kHello: {
      const auto hello = BodyIn<wire::Hello>(frame);
      wire::Welcome welcome{};
      welcome.protocol = 1;
      welcome.features = hello.features;
      welcome.ring_entries = wire::kRingEntries;
      welcome.keeps_models = true;
      reply->set_body(BodyOf(welcome));
      const base::MutexLock lock(mutex);
      seen.last_features = hello.features;
      break;
    }
    case wire::Verb::kCreateContext: {
      const auto create = BodyIn<wire::CreateContext>(frame);
      const std::string model(reinterpret_cast<const char*>(create.model), 32);
      const base::MutexLock lock(mutex);
      if (models.contains(model)) {
        reply->set_body(BodyOf(Info()));
      } else {
        reply->set_code(static_cast<int32_t>(base::Code::kNotFound));
        const auto body = wire::EncodeFailure("no such model");
        reply->set_body(body.data(), body.size());
      }
      break;
    }
    case wire::Verb::kUploadModel: {
      const auto upload = BodyIn<wire::UploadModel>(frame);
      const base::MutexLock lock(mutex);
      ++seen.uploads;
      models.emplace(reinterpret_cast<const char*>(upload.model.data()), 32);
      break;
    }
    case wire::Verb::kAllocateBuffer: {
      const auto request = BodyIn<wire::AllocateBuffer>(frame);
      session.buffers[request.buffer].resize(request.size);
      wire::Buffer buffer{};
      buffer.size = request.size;
      reply->set_body(BodyOf(buffer));
      break;
    }
    case wire::Verb::kImportBuffer: {
      const auto request = BodyIn<wire::ImportBuffer>(frame);
      session.buffers[request.buffer].resize(request.size);
      wire::Buffer buffer{};
      buffer.size = request.size;
      reply->set_body(BodyOf(buffer));
      break;
    }
    case wire::Verb::kBind: {
      const auto bind = BodyIn<wire::Bind>(frame);
      session.binds[{bind.output, bind.set}] = bind;
      const base::MutexLock lock(mutex);
      ++seen.binds;
      break;
    }
    case wire::Verb::kSetWeightMemory:
      attached = "the weights";
      break;
    case wire::Verb::kTrace: {
      attached = std::string(3 * kPiece + 1, 't');
      wire::Trace trace{};
      trace.size = attached.size();
      reply->set_body(BodyOf(trace));
      break;
    }
    default:
      break;
  }
  if (!attached.empty()) reply->add_attachments(attached.size());
  session.stream->Write(message);
  for (size_t at = 0; at < attached.size(); at += kPiece) {
    v1::ToClient piece;
    piece.mutable_chunk()->set_request(frame.request());
    piece.mutable_chunk()->set_data(attached.substr(at, kPiece));
    session.stream->Write(piece);
  }
}

void FakeRemote::Impl::OnRun(Client& session, const v1::Run& run) {
  for (const v1::Data& data : run.inputs()) {
    session.buffers[data.buffer()].replace(data.offset(), data.data().size(),
                                           data.data());
  }
  const wire::Bind in = session.binds[{false, run.set()}];
  const wire::Bind out = session.binds[{true, run.set()}];
  {
    const base::MutexLock lock(mutex);
    ++seen.runs;
    seen.frames.push_back(run.frame());
    seen.inputs.push_back(in.buffer);
    seen.timeouts.push_back(run.timeout_ms());
    if (!session.arriving.empty()) ++seen.runs_during_upload;
    run_seen.notify_all();
    if (!answers_runs) return;
  }
  v1::ToClient message;
  v1::RunEnd* const end = message.mutable_run_end();
  end->set_slot(run.slot());
  end->set_sequence(run.sequence());
  end->set_frame(run.frame());
  if (run.operation() == static_cast<uint32_t>(wire::RingOperation::kRun)) {
    const std::string answer =
        session.buffers[in.buffer].substr(in.offset, elements);
    std::string& to = session.buffers[out.buffer];
    // All of the buffer, as memory that was used before.
    std::fill(to.begin(), to.end(), '#');
    to.replace(out.offset, elements, answer);
    for (const v1::Range& range : run.outputs()) {
      for (uint64_t at = 0; at < range.size(); at += kPiece) {
        v1::ToClient piece;
        v1::Data* const data =
            range.size() <= kPiece ? end->add_outputs() : piece.mutable_read();
        data->set_buffer(range.buffer());
        data->set_offset(range.offset() + at);
        data->set_data(
            to.substr(range.offset() + at,
                      std::min<uint64_t>(kPiece, range.size() - at)));
        if (range.size() > kPiece) session.stream->Write(piece);
      }
    }
  }
  session.stream->Write(message);
}

FakeRemote::FakeRemote(uint64_t elements) : impl_(std::make_unique<Impl>()) {
  impl_->elements = elements;
}

FakeRemote::~FakeRemote() { Stop(); }

void FakeRemote::Start() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + std::to_string(impl_->port),
                           grpc::InsecureServerCredentials(), &impl_->port);
  builder.RegisterService(impl_.get());
  impl_->server = builder.BuildAndStart();
}

void FakeRemote::Stop() {
  if (impl_->server == nullptr) return;
  impl_->server->Shutdown(std::chrono::system_clock::now());
  impl_->server->Wait();
  impl_->server.reset();
}

int FakeRemote::port() const { return impl_->port; }

std::string FakeRemote::address() const {
  return "127.0.0.1:" + std::to_string(impl_->port);
}

void FakeRemote::set_token(std::string token) {
  const base::MutexLock lock(impl_->mutex);
  impl_->token = std::move(token);
}

void FakeRemote::set_answers_runs(bool answers) {
  const base::MutexLock lock(impl_->mutex);
  impl_->answers_runs = answers;
}

void FakeRemote::set_silent(bool silent) {
  const base::MutexLock lock(impl_->mutex);
  impl_->silent = silent;
}

void FakeRemote::ForgetModels() {
  const base::MutexLock lock(impl_->mutex);
  impl_->models.clear();
}

void FakeRemote::AwaitRuns(uint64_t count) {
  const base::MutexLock lock(impl_->mutex);
  while (impl_->seen.runs < count) impl_->run_seen.wait(impl_->mutex);
}

FakeRemote::Seen FakeRemote::seen() const {
  const base::MutexLock lock(impl_->mutex);
  return impl_->seen;
}

}  // namespace rknnd::client
