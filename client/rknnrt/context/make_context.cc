#include "client/rknnrt/context/make_context.h"

#include <utility>

#include "client/rknnrt/call.h"
#include "client/rknnrt/internal_memory_type.h"
#include "client/rknnrt/profile.h"
#include "client/rknnrt/runtime.h"

namespace rknnd::client {

using base::Expected;

Outcome MakeContext(ContextRequest request,
                    const std::shared_ptr<ModelSource>& source,
                    ModelOrigin origin, const std::shared_ptr<Target>& target,
                    uint32_t* handle) {
  const uint32_t flags = request.flags;
  request.flags = WithProfile(flags);
  AskForSram(&request);
  if ((request.flags & RKNN_FLAG_SHARE_SRAM) != 0 &&
      (request.flags & RKNN_FLAG_ENABLE_SRAM) == 0) {
    return WrongParameter(
        "RKNN_FLAG_SHARE_SRAM shares the SRAM that RKNN_FLAG_ENABLE_SRAM asks "
        "for: pass both");
  }
  Expected<uint32_t> added = Runtime::Get().AddContext(
      [&](uint32_t number) -> Expected<std::shared_ptr<Context>> {
        request.number = number;
        Expected<std::shared_ptr<const ModelDescription>> model =
            target->CreateContext(request, source);
        if (!model.ok()) return std::move(model).error();
        if (source != nullptr) origin.id = source->id();
        TellModel(*target, number);
        auto context =
            std::make_shared<Context>(number, flags, target, *std::move(model));
        context->set_origin(origin);
        return context;
      });
  if (!added.ok()) {
    return Failure{std::move(added).error(), request.duplicate_of == 0
                                                 ? Subject::kModel
                                                 : Subject::kContext};
  }
  *handle = *added;
  return {};
}

}  // namespace rknnd::client
