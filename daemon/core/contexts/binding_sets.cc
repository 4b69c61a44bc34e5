// Keeps eight sets of bindings from one request at a time. Called on the loop.

#include "daemon/core/contexts/binding_sets.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"

namespace rknnd::core {

absl::Status BindingSets::CheckSet(uint32_t set, uint32_t context) {
  if (set < kBindingSets) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("set ", set, " of the bindings of context ", context,
                   " does not exist: there are 0 to ", kBindingSets - 1));
}

absl::Status BindingSets::Bind(const BindRequest& request,
                               std::shared_ptr<Buffer> buffer) {
  RKNND_RETURN_IF_ERROR(CheckSet(request.set, request.context));
  const bool binds = buffer != nullptr;
  RKNND_ASSIGN_OR_RETURN(
      auto changed, now_.Of(request.set)->With(request, std::move(buffer)));
  Change(request.set, std::move(changed), request.direction, request.index,
         binds);
  return absl::OkStatus();
}

absl::Status BindingSets::BindFrame(const FrameRequest& request,
                                    PlaneBuffers buffers) {
  RKNND_RETURN_IF_ERROR(CheckSet(request.set, request.context));
  RKNND_ASSIGN_OR_RETURN(
      auto changed,
      now_.Of(request.set)->WithFrame(request, std::move(buffers)));
  Change(request.set, std::move(changed), driver::Direction::kInput,
         request.index, /*own=*/true);
  return absl::OkStatus();
}

absl::Status BindingSets::SetInternal(const MemoryRequest& request,
                                      std::shared_ptr<Buffer> buffer) {
  RKNND_ASSIGN_OR_RETURN(auto changed,
                         first().WithInternal(request, std::move(buffer)));
  ChangeFirst(std::move(changed));
  return absl::OkStatus();
}

void BindingSets::ChooseRow(uint32_t row) {
  for (auto& other : now_.others_) {
    if (other != nullptr) other = other->ForRow(row);
  }
  ChangeFirst(first().ForRow(row));
}

void BindingSets::ChangeFirst(std::shared_ptr<const BindingSet> first) {
  now_.first_ = std::move(first);
  for (size_t i = 0; i < own_.size(); ++i) {
    auto& other = now_.others_[i];
    if (other != nullptr) other = other->Over(*now_.first_, own_[i]);
  }
}

void BindingSets::Change(uint32_t set,
                         std::shared_ptr<const BindingSet> changed,
                         driver::Direction direction, uint32_t index,
                         bool own) {
  if (set == 0) return ChangeFirst(std::move(changed));
  if (own_.size() < set) {
    own_.resize(set);
    now_.others_.resize(set);
  }
  TensorChoice& tensors = own_[set - 1];
  tensors.inputs.resize(changed->inputs().size());
  tensors.outputs.resize(changed->outputs().size());
  tensors.of(direction)[index] = own;
  const auto any = [](const std::vector<bool>& chosen) {
    return std::find(chosen.begin(), chosen.end(), true) != chosen.end();
  };
  auto& other = now_.others_[set - 1];
  if (any(tensors.inputs) || any(tensors.outputs)) {
    other = own ? std::move(changed) : changed->Over(first(), tensors);
  } else {
    other = nullptr;
  }
}

void BindingSets::Unbind(uint32_t context, const Buffer* buffer) {
  if (first().internal().buffer.get() == buffer) {
    // Taking away cannot be refused, here and below.
    MemoryRequest none;
    none.context = context;
    SetInternal(none, nullptr).IgnoreError();
  }
  for (uint32_t set = 0; set <= own_.size(); ++set) {
    for (const auto direction :
         {driver::Direction::kInput, driver::Direction::kOutput}) {
      const size_t tensors = direction == driver::Direction::kInput
                                 ? first().inputs().size()
                                 : first().outputs().size();
      for (size_t i = 0; i < tensors; ++i) {
        // A change may have left nothing of its own in the set.
        if (set > 0 && (now_.others_[set - 1] == nullptr ||
                        !own_[set - 1].of(direction)[i])) {
          continue;
        }
        TensorChoice one{std::vector<bool>(first().inputs().size()),
                         std::vector<bool>(first().outputs().size())};
        one.of(direction)[i] = true;
        if (now_.Of(set)->Count(buffer, one) == 0) continue;
        BindRequest none;
        none.context = context;
        none.direction = direction;
        none.index = static_cast<uint32_t>(i);
        none.set = set;
        Bind(none, nullptr).IgnoreError();
      }
    }
  }
}

uint32_t BindingSets::Count(const Buffer* buffer) const {
  uint32_t count = first().Count(buffer);
  for (size_t i = 0; i < own_.size(); ++i) {
    if (now_.others_[i] != nullptr) {
      count += now_.others_[i]->Count(buffer, own_[i]);
    }
  }
  return count;
}

}  // namespace rknnd::core
