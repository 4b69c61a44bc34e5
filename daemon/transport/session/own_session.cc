// Its requests are the daemon's own, and are checked as any client's.

#include "daemon/transport/session/own_session.h"

#include <algorithm>
#include <utility>

#include "base/status/status.h"

namespace rknnd::transport {
namespace {

constexpr uint32_t kFirstBuffer = 1;

}  // namespace

// Carries answers to the loop. A run of this kind is nobody's hot path: a post
// is what it costs.
class OwnSession::Answers final : public core::CompletionSink {
 public:
  Answers(base::Executor* loop, std::weak_ptr<OwnSession> session)
      : loop_(loop), session_(std::move(session)) {}

  void Complete(const core::JobCompletion& completion) override {
    loop_->Post([session = session_, completion] {
      const auto self = session.lock();
      if (self != nullptr) self->OnAnswer(completion);
    });
  }

 private:
  base::Executor* const loop_;
  const std::weak_ptr<OwnSession> session_;
};

absl::StatusOr<std::shared_ptr<OwnSession>> OwnSession::Open(
    const Parts& parts, core::SessionPeer peer) {
  std::shared_ptr<OwnSession> own(new OwnSession(parts));
  RKNND_ASSIGN_OR_RETURN(
      own->session_, parts.service->OpenSession(
                         std::move(peer),
                         std::make_shared<Answers>(parts.loop, own), nullptr));
  return own;
}

OwnSession::~OwnSession() {
  if (session_ == nullptr) return;
  const core::SessionId id = session_->id();
  session_.reset();
  parts_.service->CloseSession(id);
}

void OwnSession::Prepare(core::ContextRequest request, bool real_numbers,
                         StatusCallback done) {
  request.number = kContext;
  // Later: whoever is told may end this session, and core is in the middle of
  // answering.
  const StatusCallback later = [weak = weak_from_this(), loop = parts_.loop,
                                done = std::move(done)](absl::Status status) {
    loop->Post([weak, done, status = std::move(status)] {
      if (weak.lock() != nullptr) done(status);
    });
  };
  session_->CreateContext(
      request, [weak = weak_from_this(), real_numbers,
                later](absl::StatusOr<const driver::ModelInfo*> model) {
        const auto self = weak.lock();
        if (self == nullptr) return;
        if (!model.ok()) return later(model.status());
        if (!(*model)->runnable.ok()) return later((*model)->runnable);
        self->model_ = *model;
        self->AddTensor(real_numbers, later);
      });
}

const driver::TensorAttr& OwnSession::Attribute(size_t tensor) const {
  const driver::ProgramInfo& shapes = program();
  return tensor < shapes.inputs.size()
             ? shapes.inputs[tensor]
             : shapes.outputs[tensor - shapes.inputs.size()];
}

uint64_t OwnSession::SizeOf(size_t tensor, bool real_numbers) const {
  const driver::TensorAttr& attribute = Attribute(tensor);
  return real_numbers ? attribute.elements * sizeof(float) : attribute.size;
}

void OwnSession::AddTensor(bool real_numbers, const StatusCallback& done) {
  const size_t tensor = tensors_.size();
  if (tensor == program().inputs.size() + program().outputs.size()) {
    return done(absl::OkStatus());
  }
  session_->AllocateBuffer(kFirstBuffer + static_cast<uint32_t>(tensor),
                           std::max(SizeOf(tensor, real_numbers),
                                    Attribute(tensor).size_with_stride),
                           0,
                           [weak = weak_from_this(), real_numbers,
                            done](absl::StatusOr<core::BufferInfo> buffer) {
                             const auto self = weak.lock();
                             if (self == nullptr) return;
                             const absl::Status bound = self->BindTensor(
                                 real_numbers, std::move(buffer));
                             if (!bound.ok()) return done(bound);
                             self->AddTensor(real_numbers, done);
                           });
}

absl::Status OwnSession::BindTensor(bool real_numbers,
                                    absl::StatusOr<core::BufferInfo> buffer) {
  RKNND_RETURN_IF_ERROR(buffer.status());
  const size_t index = tensors_.size();
  const size_t inputs = program().inputs.size();
  const driver::TensorAttr& attribute = Attribute(index);
  Tensor tensor;
  tensor.size = SizeOf(index, real_numbers);
  RKNND_ASSIGN_OR_RETURN(
      tensor.memory,
      base::ToStatusOr(base::Mapping::OfFd(buffer->fd.get(), 0, buffer->size,
                                           base::Mapping::Access::kReadWrite)));
  core::BindRequest bind;
  bind.context = kContext;
  bind.direction =
      index < inputs ? driver::Direction::kInput : driver::Direction::kOutput;
  bind.index = static_cast<uint32_t>(index < inputs ? index : index - inputs);
  bind.buffer = kFirstBuffer + static_cast<uint32_t>(index);
  bind.size = buffer->size;
  bind.format.type =
      real_numbers ? driver::TensorType::kFloat32 : attribute.type;
  bind.format.layout = attribute.layout;
  RKNND_RETURN_IF_ERROR(session_->Bind(bind));
  tensors_.push_back(std::move(tensor));
  return absl::OkStatus();
}

std::span<std::byte> OwnSession::input(size_t index) const {
  return tensors_[index].memory.bytes().first(tensors_[index].size);
}

std::span<const std::byte> OwnSession::output(size_t index) const {
  const Tensor& tensor = tensors_[program().inputs.size() + index];
  return tensor.memory.bytes().first(tensor.size);
}

void OwnSession::Run(base::Nanoseconds deadline, RunCallback done) {
  core::JobSubmission job;
  job.context = kContext;
  job.sequence = ++sequence_;
  job.frame = sequence_;
  job.deadline = deadline;
  running_ = std::move(done);
  if (const absl::Status taken = session_->gate()->Submit(job); !taken.ok()) {
    core::JobCompletion refused;
    refused.sequence = sequence_;
    refused.status = taken;
    parts_.loop->Post([weak = weak_from_this(), refused] {
      const auto self = weak.lock();
      if (self != nullptr) self->OnAnswer(refused);
    });
    return;
  }
  parts_.waker->WakeOne();
}

void OwnSession::OnAnswer(const core::JobCompletion& completion) {
  if (completion.sequence != sequence_ || running_ == nullptr) return;
  std::exchange(running_, nullptr)(completion);
}

}  // namespace rknnd::transport
