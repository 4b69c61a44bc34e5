#include "client/rknnrt/custom/registration.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "client/rknnrt/custom/custom_operators.h"
#include "client/rknnrt/custom/opencl.h"
#include "client/rknnrt/custom/plugins.h"
#include "client/rknnrt/runtime.h"
#include "client/rknnrt/tensor.h"
#include "client/target/model_source.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Error;
using base::Expected;

bool IsOfPlugin(const rknn_custom_op& op) {
  const rknn_custom_op* const plugin = FindOperator(Plugins(), TypeOf(op));
  return plugin != nullptr && plugin->compute == op.compute;
}

// The model as one with these operators, as a context of its own.
struct Described {
  std::shared_ptr<ModelSource> source;
  custom::Model model;
};
Expected<Described> Describe(Context& context,
                             const std::shared_ptr<ModelSource>& source,
                             const std::vector<rknn_custom_op>& ops) {
  base::CustomOperatorsOption option;
  for (const rknn_custom_op& op : ops) option.types.emplace_back(TypeOf(op));
  Expected<std::shared_ptr<ModelSource>> whole =
      ModelSource::ForCustomOperators(source, option);
  if (!whole.ok()) return std::move(whole).error();
  Described described;
  described.source = *std::move(whole);
  // Only to be asked: a context under another number, which goes at once.
  Expected<uint32_t> handle = Runtime::Get().AddContext(
      [&](uint32_t number) -> Expected<std::shared_ptr<Context>> {
        ContextRequest request;
        request.number = number;
        request.flags = context.flags();
        auto answer = context.target().CreateContext(request, described.source);
        if (!answer.ok()) return std::move(answer).error();
        // It has none of them.
        const std::string& notes = (*answer)->custom_operators;
        Expected<custom::Model> model =
            notes.empty() ? custom::Model() : custom::Read(notes);
        if (!model.ok()) {
          static_cast<void>(context.target().DestroyContext(number).ok());
          return std::move(model).error();
        }
        described.model = *std::move(model);
        return std::make_shared<Context>(
            number, request.flags, context.shared_target(), *std::move(answer));
      });
  if (!handle.ok()) return std::move(handle).error();
  if (auto removed = Runtime::Get().RemoveContext(*handle); removed.ok()) {
    static_cast<void>((*removed)->Destroy().ok());
  }
  return described;
}

Expected<std::shared_ptr<CustomOperators>> MakeOperators(
    Context& context, const std::shared_ptr<ModelSource>& source,
    std::vector<rknn_custom_op> ops, std::shared_ptr<ModelSource>* whole) {
  Expected<Described> described = Describe(context, source, ops);
  if (!described.ok()) return std::move(described).error();
  if (described->model.parts.empty()) return std::shared_ptr<CustomOperators>();
  *whole = described->source;
  Expected<std::shared_ptr<CustomOperators>> made =
      CustomOperators::Make(context.shared_target(), context.flags(), source,
                            std::move(described->model), std::move(ops));
  if (!made.ok()) return made;
  if (Expected<void> begun = (*made)->Begin(); !begun.ok()) {
    return std::move(begun).error();
  }
  return made;
}

}  // namespace

Outcome CheckCustomOperator(const rknn_custom_op& op,
                            const std::vector<rknn_custom_op>& known) {
  const auto wrong = [&op](const std::string& what) -> Outcome {
    return Failure{{Code::kInvalidArgument,
                    "operator '" + std::string(TypeOf(op)) + "': " + what},
                   Subject::kNone};
  };
  const std::string_view type = TypeOf(op);
  if (type.empty() || type.size() == sizeof op.op_type) {
    return wrong("op_type is empty, or does not end");
  }
  if (type.find_first_of(",\n") != std::string_view::npos) {
    return wrong("op_type has a comma or a line end, which no operator has");
  }
  const uint32_t target = RawNumber(op.target);
  if (target == RKNN_TARGET_TYPE_GPU) {
    if (Expected<void> there = GpuKernel::Check(); !there.ok()) {
      return Failure{{there.error().code, "operator '" + std::string(type) +
                                              "': " + there.error().message},
                     Subject::kNone};
    }
  } else if (target != RKNN_TARGET_TYPE_CPU) {
    return wrong("target " + std::to_string(target) +
                 " is none of rknn_target_type");
  }
  if (op.compute == nullptr) {
    return wrong("compute is NULL: it is what computes the operator");
  }
  if (FindOperator(known, type) != nullptr) {
    return wrong("it is registered already");
  }
  return {};
}

Outcome RegisterCustomOperators(uint32_t handle, Context& context,
                                std::span<const rknn_custom_op> ops) {
  static auto* const registering = new base::Mutex;
  static std::atomic<std::thread::id> inside{};
  if (inside.load() == std::this_thread::get_id() || IsInCallback(context)) {
    return Failure{{Code::kFailedPrecondition,
                    "a callback of a custom operator may not register others"},
                   Subject::kContext};
  }
  const base::MutexLock lock(*registering);
  inside = std::this_thread::get_id();
  struct Leave {
    ~Leave() { inside = std::thread::id(); }
  } const leave;
  if (context.matmul() != nullptr) {
    return Failure{{Code::kInvalidArgument,
                    "a context of rknn_matmul_create has no operators"},
                   Subject::kContext};
  }
  const std::shared_ptr<CustomOperators> before = context.custom();
  std::vector<rknn_custom_op> all;
  if (before != nullptr) all = before->ops();
  for (const rknn_custom_op& op : ops) {
    std::erase_if(all, [&op](const rknn_custom_op& known) {
      return TypeOf(known) == TypeOf(op) && IsOfPlugin(known) &&
             !IsOfPlugin(op);
    });
    if (Outcome checked = CheckCustomOperator(op, all); !checked.ok())
      return checked;
    all.push_back(op);
  }
  Expected<ContextOrigin> origin = context.target().OriginOf(context.number());
  if (!origin.ok()) {
    return Failure{std::move(origin).error(), Subject::kContext};
  }
  const std::shared_ptr<ModelSource>& source = origin->source;
  std::shared_ptr<ModelSource> whole;
  Expected<std::shared_ptr<CustomOperators>> made =
      MakeOperators(context, source, all, &whole);
  // What the program leaves to the device is the device's.
  if (made.ok() && *made == nullptr) return {};
  if (made.ok() && !(*made)->declined().empty()) {
    const std::vector<std::string> declined = (*made)->declined();
    std::erase_if(all, [&declined](const rknn_custom_op& op) {
      return std::find(declined.begin(), declined.end(), TypeOf(op)) !=
             declined.end();
    });
    made->reset();
    made = MakeOperators(context, source, all, &whole);
  }
  if (!made.ok()) return Failure{std::move(made).error(), Subject::kContext};
  Expected<std::shared_ptr<Context>> changed =
      context.Become(whole, *std::move(made));
  if (!changed.ok()) {
    return Failure{std::move(changed).error(), Subject::kContext};
  }
  if (origin->core_mask != 0) {
    if (Outcome set = (*changed)->SetCoreMask(origin->core_mask); !set.ok()) {
      return set;
    }
  }
  Runtime::Get().ReplaceContext(handle, *std::move(changed));
  return {};
}

}  // namespace rknnd::client
