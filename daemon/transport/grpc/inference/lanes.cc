#include "daemon/transport/grpc/inference/lanes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "base/values/overflow.h"
#include "driver/memory/cache_sync.h"

namespace rknnd::transport {
namespace {

// rknn_init's flags: MEDIUM, and a context that only tells what a model is.
constexpr uint32_t kPriorityMedium = 1;
constexpr uint32_t kInfoOnly = 0x100;
// Where each tensor starts in the lane's memory: cache lines of their own.
constexpr uint64_t kAlignment = 64;

// Bytes that any datatype of a tensor needs.
uint64_t LargestSize(const std::vector<int64_t>& shape,
                     const TensorView& tensor) {
  size_t element = DatatypeSize(tensor.datatype);
  for (const Datatype each : tensor.accepted) {
    element = std::max(element, DatatypeSize(each));
  }
  return CountElements(shape).value_or(0) * element;
}

absl::Status RegionGone() {
  return absl::NotFoundError(
      "the shared-memory region has gone while the request waited: its owner "
      "has released the memory or ended, or it was unregistered");
}

uint64_t Place(uint64_t bytes, uint64_t* total) {
  const uint64_t start = *total;
  *total += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  return start;
}

}  // namespace

void LaneMaker::Look(const core::ModelId& id, ViewCallback done) {
  core::ContextRequest request;
  request.number = NextContext();
  request.model = id;
  request.flags = kInfoOnly;
  session_->CreateContext(
      request, [this, id, number = request.number, done = std::move(done)](
                   absl::StatusOr<const driver::ModelInfo*> info) {
        if (!info.ok()) return done(info.status());
        auto view = MakeModelView(id, **info);
        session_->DestroyContext(number).IgnoreError();
        if (!view.ok()) return done(view.status());
        done(std::make_shared<const ModelView>(*std::move(view)));
      });
}

void LaneMaker::WithContext(
    const std::shared_ptr<const ModelView>& model, const Key& key,
    const std::function<void(absl::StatusOr<uint32_t>)>& done) {
  const auto found = contexts_.find(key);
  if (found != contexts_.end()) return done(found->second);
  core::ContextRequest request;
  request.number = NextContext();
  request.model = key.id;
  request.flags = kPriorityMedium;
  session_->CreateContext(
      request, [this, key, model, done, number = request.number](
                   const absl::StatusOr<const driver::ModelInfo*>& made) {
        if (!made.ok()) return done(made.status());
        absl::Status chosen;
        if (model->rows.size() > 1) {
          chosen =
              session_->SetShapes(number, model->rows[key.row].choice).status();
        }
        if (!chosen.ok()) {
          session_->DestroyContext(number).IgnoreError();
          return done(chosen);
        }
        contexts_[key] = number;
        done(number);
      });
}

void LaneMaker::Make(const std::shared_ptr<const ModelView>& model,
                     uint32_t row, uint32_t number, LaneCallback done) {
  const Key key{model->id, row, number % cores_};
  const uint32_t set = number / cores_;
  WithContext(
      model, key,
      [this, model, row, set,
       done = std::move(done)](absl::StatusOr<uint32_t> context) {
        if (!context.ok()) return done(context.status());
        uint64_t total = 0;
        std::vector<uint64_t> inputs, outputs;
        const RowView& shapes = model->rows[row];
        for (size_t i = 0; i < shapes.inputs.size(); ++i) {
          inputs.push_back(
              Place(LargestSize(shapes.inputs[i], model->inputs[i]), &total));
        }
        for (size_t i = 0; i < shapes.outputs.size(); ++i) {
          outputs.push_back(
              Place(LargestSize(shapes.outputs[i], model->outputs[i]), &total));
        }
        const uint32_t buffer = NextBuffer();
        session_->AllocateBuffer(
            buffer, total, 0,
            [this, id = model->id, buffer, total, set, context = *context,
             inputs, outputs, done](absl::StatusOr<core::BufferInfo> made) {
              if (!made.ok()) return done(made.status());
              buffers_[id].push_back(buffer);
              auto lane = std::make_unique<Lane>();
              lane->context = context;
              lane->set = set;
              lane->buffer = buffer;
              lane->fd = std::move(made->fd);
              lane->dma_buf = driver::IsDmaBuf(lane->fd.get());
              auto memory = base::ToStatusOr(base::Mapping::OfFd(
                  lane->fd.get(), 0, static_cast<size_t>(total),
                  base::Mapping::Access::kReadWrite));
              if (!memory.ok()) return done(memory.status());
              lane->memory = *std::move(memory);
              // As starts of what Bind makes of them.
              const auto from = [&](uint64_t start) {
                return lane->memory.bytes().subspan(static_cast<size_t>(start));
              };
              for (const uint64_t start : inputs) {
                lane->inputs.push_back(from(start));
              }
              for (const uint64_t start : outputs) {
                lane->outputs.push_back(from(start));
              }
              lane->bound.inputs.resize(inputs.size());
              lane->bound.outputs.resize(outputs.size());
              done(std::move(lane));
            });
      });
}

absl::StatusOr<uint32_t> LaneMaker::BufferOf(const NamedRegion& region) {
  const auto found = regions_.find(region.id);
  if (found != regions_.end()) return found->second;
  if (!has_region_(region.id)) return RegionGone();
  const uint32_t number = NextBuffer();
  RKNND_RETURN_IF_ERROR(session_->AdoptBuffer(number, region.key).status());
  regions_[region.id] = number;
  return number;
}

absl::Status LaneMaker::Bind(Lane& lane, const LaneBindings& bindings,
                             const std::vector<NamedRegion>& regions) {
  const auto bind = [&](driver::Direction direction, uint32_t index,
                        const PortBinding& port, PortBinding& bound,
                        std::span<std::byte> own) -> absl::Status {
    if (port == bound && bound.bytes != 0) return absl::OkStatus();
    bound = {};
    core::BindRequest request;
    request.context = lane.context;
    request.set = lane.set;
    request.direction = direction;
    request.index = index;
    request.format = port.format;
    request.size = port.bytes;
    if (port.region == 0) {
      request.buffer = lane.buffer;
      request.offset = static_cast<uint64_t>(own.data() - lane.memory.data());
    } else {
      const auto named = std::find_if(
          regions.begin(), regions.end(),
          [&](const auto& each) { return each.id == port.region; });
      if (named == regions.end()) {
        return RegionGone();
      }
      RKNND_ASSIGN_OR_RETURN(request.buffer, BufferOf(*named));
      request.offset = port.offset;
    }
    RKNND_RETURN_IF_ERROR(session_->Bind(request));
    bound = port;
    return absl::OkStatus();
  };
  for (uint32_t i = 0; i < bindings.inputs.size(); ++i) {
    RKNND_RETURN_IF_ERROR(bind(driver::Direction::kInput, i, bindings.inputs[i],
                               lane.bound.inputs[i], lane.inputs[i]));
  }
  for (uint32_t i = 0; i < bindings.outputs.size(); ++i) {
    RKNND_RETURN_IF_ERROR(bind(driver::Direction::kOutput, i,
                               bindings.outputs[i], lane.bound.outputs[i],
                               lane.outputs[i]));
  }
  return absl::OkStatus();
}

void LaneMaker::Drop(const core::ModelId& id) {
  for (auto context = contexts_.begin(); context != contexts_.end();) {
    if (context->first.id != id) {
      ++context;
      continue;
    }
    session_->DestroyContext(context->second).IgnoreError();
    context = contexts_.erase(context);
  }
  const auto buffers = buffers_.find(id);
  if (buffers == buffers_.end()) return;
  for (const uint32_t buffer : buffers->second) {
    session_->ReleaseBuffer(buffer).IgnoreError();
  }
  buffers_.erase(buffers);
}

void LaneMaker::DropRegion(uint64_t region) {
  const auto found = regions_.find(region);
  if (found == regions_.end()) return;
  // NOT_FOUND where its owner has given it up.
  session_->ReleaseBuffer(found->second).IgnoreError();
  regions_.erase(found);
}

}  // namespace rknnd::transport
