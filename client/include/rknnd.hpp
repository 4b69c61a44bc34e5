// The C API for C++17 programs: contexts and memories that free themselves,
// tensors that know their types, errors as exceptions. All of it is inline, so
// a program built with one version of it runs with the library of another.
//
//   rknnd::Context detector = rknnd::Context::FromFile("detector.onnx");
//   rknnd::Memory frame = detector.AllocateInput(0);
//   rknnd::Memory boxes = detector.AllocateOutput(0);
//   detector.BindInput(0, frame);
//   detector.BindOutput(0, boxes);
//   ... write frame.as<int8_t>() ...
//   detector.Run();  // and read boxes.as<int8_t>()
//
// Many cameras on one thread, around epoll or poll:
//
//   rknnd::Queue ended = rknnd::Queue::Create();
//   ... watch ended.fd() for reading; for each frame that comes in:
//   camera.Submit(rknnd::RunOptions().Notify(
//       ended, [&](const rknnd::Completion& run) { ... }));
//   ended.Dispatch();  // whenever ended.fd() can be read
//
// Every function that fails throws rknnd::Error, and changes nothing then.
// Destructors never throw. A Memory or Context that was made by its default
// constructor, or moved from, is empty: it may be asked whether it is, be
// assigned to and destroyed, and be handed to functions, which fail; a Memory's
// data(), as(), size() and fd() ask for one that is not. Likewise a Queue and a
// Fence. Threads: as the C API; one object is used by one thread at a time.

#ifndef RKNND_HPP
#define RKNND_HPP

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rknn_api.h"
#include "rknnd.h"
#include "rknnd_error.hpp"
#include "rknnd_runs.hpp"

namespace rknnd {

// One input or output of a model, as rknn_query describes it. What a program
// puts into it or wants out of it in another form it says with With*().
class Tensor {
 public:
  // `attr` as rknn_query has filled it.
  explicit Tensor(const rknn_tensor_attr& attr) : attr_(attr) {}

  // As in the model's file.
  std::string name() const { return attr_.name; }
  // Extents, outermost first, in the order of format().
  std::vector<uint32_t> shape() const {
    return {attr_.dims, attr_.dims + attr_.n_dims};
  }
  // How many numbers it holds.
  uint32_t elements() const { return attr_.n_elems; }
  // To allocate for Context::Bind*, padding between rows included.
  uint32_t bytes() const {
    return attr_.size_with_stride > attr_.size ? attr_.size_with_stride
                                               : attr_.size;
  }
  // What one number is, and the order they lie in.
  rknn_tensor_type type() const { return attr_.type; }
  rknn_tensor_format format() const { return attr_.fmt; }
  // Of a quantised tensor: real = (integer - zero_point()) * scale().
  float scale() const { return attr_.scale; }
  int32_t zero_point() const { return attr_.zp; }

  // The integer for a real number, not yet clamped to the type's range.
  float Quantize(float real) const {
    return std::nearbyint(real / attr_.scale) + static_cast<float>(attr_.zp);
  }
  // The real number that an integer stands for.
  float Dequantize(int32_t integer) const {
    return static_cast<float>(integer - attr_.zp) * attr_.scale;
  }

  // The same tensor held in memory as another type or in another order. The
  // NPU's own (those of native_input() and native_output(), and UINT8 pixels
  // with channels last) cost nothing; any other is converted in each run, which
  // Context::Copies() counts as a copy.
  Tensor WithType(rknn_tensor_type type) const {
    Tensor other = *this;
    other.attr_.type = type;
    return other;
  }
  Tensor WithFormat(rknn_tensor_format format) const {
    Tensor other = *this;
    other.attr_.fmt = format;
    return other;
  }
  // Taken as it is, bit by bit: for native_input(), whose blocks of channels,
  // where it has them, are the program's to make only then.
  Tensor PassedThrough() const {
    Tensor other = *this;
    other.attr_.pass_through = 1;
    return other;
  }

  // For functions of the C API.
  const rknn_tensor_attr& attr() const { return attr_; }

 private:
  rknn_tensor_attr attr_;
};

class Context;

// Memory that the program and the NPU both reach. The program's sight of it
// goes with its object. What it is bound to holds it too: contexts go on
// running on it until something else is bound or they go themselves.
class Memory {
 public:
  // None.
  Memory() = default;
  // `bytes` zeroed bytes.
  inline static Memory Create(const Context& context, uint32_t bytes);
  // `bytes` from `offset` of a dma-buf, or of a memfd sealed against shrinking.
  // The fd may be closed afterwards.
  inline static Memory FromFd(const Context& context, int fd, uint32_t bytes,
                              int32_t offset = 0);
  Memory(Memory&& other) noexcept
      : context_(other.context_),
        memory_(std::exchange(other.memory_, nullptr)) {}
  // What this object had goes at once.
  Memory& operator=(Memory&& other) noexcept {
    if (this != &other) {
      Release();
      context_ = other.context_;
      memory_ = std::exchange(other.memory_, nullptr);
    }
    return *this;
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { Release(); }

  // Whether there is one.
  explicit operator bool() const { return memory_ != nullptr; }
  // Its first byte, and the same as a pointer to what lies there.
  void* data() const {
    return static_cast<char*>(memory_->virt_addr) + memory_->offset;
  }
  template <class Element>
  Element* as() const {
    return static_cast<Element*>(data());
  }
  // In bytes.
  uint32_t size() const { return memory_->size; }
  // Other programs may import it. Belongs to this object.
  int fd() const { return memory_->fd; }
  // A name for it that gRPC requests to the same daemon take.
  rknnd_buffer_key Key() const {
    rknnd_buffer_key key = {};
    detail::Check(rknnd_query_buffer_key(context_, memory_, &key, sizeof key));
    return key;
  }

  // Makes the CPU's cache agree: after writing what the NPU will read, before
  // reading what it wrote. Bound memory needs neither. Fails once the context
  // that the memory was made with has gone; all else goes on working then.
  void Sync(rknn_mem_sync_mode mode) const {
    detail::Check(rknn_mem_sync(context_, memory_, mode));
  }

  // For functions of the C API; null if empty. Belongs to this object.
  rknn_tensor_mem* get() const { return memory_; }

 private:
  void Release() noexcept {
    if (memory_ != nullptr) rknn_destroy_mem(context_, memory_);
    memory_ = nullptr;
  }

  Memory(rknn_context context, rknn_tensor_mem* memory)
      : context_(context), memory_(memory) {
    if (memory == nullptr) detail::Fail(RKNN_ERR_FAIL);
  }

  rknn_context context_ = 0;
  rknn_tensor_mem* memory_ = nullptr;
};

// The right to run one model, with its own bindings.
class Context {
 public:
  // None.
  Context() = default;
  // Loads a model. `flags`: RKNN_FLAG_*.
  static Context FromFile(const std::string& path, uint32_t flags = 0) {
    Context context;
    std::string name = path;
    detail::Check(rknn_init(&context.handle_, &name[0], 0, flags, nullptr));
    context.Describe();
    return context;
  }
  // The bytes may go after the call.
  static Context FromBytes(const void* bytes, uint32_t size,
                           uint32_t flags = 0) {
    // Size 0 would make the C API take the bytes for a path.
    if (size == 0) throw Error(RKNN_ERR_MODEL_INVALID, "the model is empty");
    Context context;
    detail::Check(rknn_init(&context.handle_, const_cast<void*>(bytes), size,
                            flags, nullptr));
    context.Describe();
    return context;
  }
  // Another context of the same model: its weights, none of its bindings.
  Context Duplicate() const {
    Context context;
    rknn_context original = handle_;
    detail::Check(rknn_dup_context(&original, &context.handle_));
    context.Describe();
    return context;
  }
  // The same in another process: a text that is handed to it, and its context.
  std::string Token() const {
    rknnd_token token = {};
    detail::Check(rknnd_model_token(handle_, &token));
    return token.text;
  }
  static Context FromToken(const std::string& text) {
    rknnd_token token = {};
    // What is too long is none; cut off, it is found to be none.
    text.copy(token.text, sizeof token.text - 1);
    Context context;
    detail::Check(rknnd_init_from_token(&context.handle_, &token));
    context.Describe();
    return context;
  }
  Context(Context&& other) noexcept { Swap(other); }
  // What this object had goes at once.
  Context& operator=(Context&& other) noexcept {
    Context(std::move(other)).Swap(*this);
    return *this;
  }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context() {
    if (handle_ != 0) rknn_destroy(handle_);
  }

  // Whether there is one.
  explicit operator bool() const { return handle_ != 0; }
  // For functions of the C API that have no member here.
  rknn_context handle() const { return handle_; }

  // As the model's file has them. Empty if this is.
  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }
  // As the NPU itself holds them: memory bound in this form costs no copy.
  Tensor native_input(uint32_t index) const {
    return Ask(RKNN_QUERY_NATIVE_INPUT_ATTR, index);
  }
  Tensor native_output(uint32_t index) const {
    return Ask(RKNN_QUERY_NATIVE_OUTPUT_ATTR, index);
  }

  // Memory of the right size for a tensor, not bound yet.
  Memory Allocate(const Tensor& tensor) const {
    return Memory::Create(*this, tensor.bytes());
  }
  Memory AllocateInput(uint32_t index) const {
    return Allocate(At(inputs_, index));
  }
  Memory AllocateOutput(uint32_t index) const {
    return Allocate(At(outputs_, index));
  }

  // For all runs that follow, until bound anew. `tensor` is one of this
  // context's and says what the memory holds. The context holds it from here
  // on.
  void Bind(const Tensor& tensor, const Memory& memory) {
    rknn_tensor_attr attr = tensor.attr();
    detail::Check(rknn_set_io_mem(handle_, memory.get(), &attr));
  }
  // The same, held as inputs() and outputs() have it.
  void BindInput(uint32_t index, const Memory& memory) {
    Bind(At(inputs_, index), memory);
  }
  void BindOutput(uint32_t index, const Memory& memory) {
    Bind(At(outputs_, index), memory);
  }

  // A camera's frame in place of an input's tensor, likewise.
  void BindFrame(uint32_t index, const rknnd_frame& frame) {
    detail::Check(rknnd_set_input_frame(handle_, index, &frame));
  }
  // Where that frame comes to lie in the input, to map boxes back.
  rknnd_placement Place(uint32_t index, const rknnd_frame& frame) const {
    rknnd_placement placement = {};
    detail::Check(rknnd_place_frame(handle_, index, &frame, &placement,
                                    sizeof placement));
    return placement;
  }

  // Runs the model once on what is bound, and waits for it. 0: as long as the
  // library allows. The number of the run.
  uint64_t Run(int32_t timeout_ms = 0) {
    rknn_run_extend extend = {};
    extend.timeout_ms = timeout_ms;
    detail::Check(rknn_run(handle_, &extend));
    return extend.frame_id;
  }

  // ---- runs that are not waited for ----

  // As above, for one of the RKNND_SETS sets of bindings: what is bound without
  // a number is set 0, and what a set does not bind is as in that one. A frame
  // can be filled in one set while another is computed.
  void Bind(uint32_t set, const Tensor& tensor, const Memory& memory) {
    rknn_tensor_attr attr = tensor.attr();
    detail::Check(rknnd_set_io_mem(handle_, set, memory.get(), &attr));
  }
  void BindInput(uint32_t set, uint32_t index, const Memory& memory) {
    Bind(set, At(inputs_, index), memory);
  }
  void BindOutput(uint32_t set, uint32_t index, const Memory& memory) {
    Bind(set, At(outputs_, index), memory);
  }

  // Begins a run; its number. What it is bound to is the NPU's until it has
  // ended.
  uint64_t Submit(const RunOptions& options = RunOptions()) {
    rknnd_run_options run = options.options_;
    int fence = -1;
    if (options.fence_ != nullptr) run.fence_out = &fence;
    void* kept = nullptr;
    if (options.handler_) {
      if (!*options.queue_) throw Error(RKNN_ERR_PARAM_INVALID, "no queue");
      run.user = kept = options.queue_->Keep(options.handler_);
    }
    uint64_t frame = 0;
    const int code = rknnd_submit(handle_, &run, &frame);
    if (code != RKNN_SUCC && kept != nullptr) options.queue_->Forget(kept);
    detail::Check(code);
    if (options.fence_ != nullptr) *options.fence_ = rknnd::Fence(fence);
    return frame;
  }
  // Waits for the end of a run without a queue, 0: of the oldest one. Throws
  // if that has not ended well, with its code.
  Completion Wait(uint64_t frame = 0) {
    rknnd_completion completion = {};
    detail::Check(
        rknnd_wait(handle_, frame, -1, &completion, sizeof completion));
    return Completion(completion);
  }
  // The same for no longer than is said: nothing if it has not ended by then.
  // How it has is the completion's code().
  std::optional<Completion> WaitFor(uint64_t frame,
                                    std::chrono::milliseconds timeout) {
    rknnd_completion completion = {};
    const int code = rknnd_wait(handle_, frame, detail::Milliseconds(timeout),
                                &completion, sizeof completion);
    // Filled when it has ended, whichever way.
    if (completion.context != 0) return Completion(completion);
    if (code == RKNN_ERR_TIMEOUT) return std::nullopt;
    detail::Fail(code);
  }
  // Takes back the run of that number, or with 0 all, as far as they wait for a
  // core; how many they were.
  uint32_t Cancel(uint64_t frame = 0) {
    uint32_t cancelled = 0;
    detail::Check(rknnd_cancel(handle_, frame, &cancelled));
    return cancelled;
  }

  // How its runs wait, from the next one on: all, up to `depth` of them (0: the
  // daemon's limit), or the newest only. Older ones than `max_age` are dropped,
  // 0: none is for its age.
  void SetQueuePolicy(
      rknnd_policy policy, uint32_t depth = 0,
      std::chrono::milliseconds max_age = std::chrono::milliseconds(0)) {
    rknnd_queue_policy request = {};
    request.size = sizeof request;
    request.policy = policy;
    request.depth = depth;
    request.max_age_ms = static_cast<uint32_t>(
        std::min<uint64_t>(detail::Positive(max_age.count()),
                           std::numeric_limits<uint32_t>::max()));
    detail::Check(rknnd_set_queue_policy(handle_, &request));
  }

  // Whether so many frames of this model a second fit beside what others have
  // reserved; `reserve`: and are kept room for, as long as the context exists.
  // Rate 0 gives that back.
  rknnd_admission Admit(float rate, bool reserve = false,
                        uint32_t priority = RKNN_FLAG_PRIOR_MEDIUM) {
    rknnd_stream stream = {};
    stream.size = sizeof stream;
    stream.rate = rate;
    stream.priority = priority;
    stream.reserve = reserve ? 1 : 0;
    rknnd_admission admission = {};
    detail::Check(rknnd_admit(handle_, &stream, &admission, sizeof admission));
    return admission;
  }

  // ---- what is asked and chosen between runs ----

  // On which cores it runs from now on.
  void SetCoreMask(rknn_core_mask mask) {
    detail::Check(rknn_set_core_mask(handle_, mask));
  }

  // What this model needs.
  rknn_mem_size ModelMemory() const {
    return Query<rknn_mem_size>(RKNN_QUERY_MEM_SIZE);
  }
  // What the model's author has put into its file.
  std::string CustomString() const {
    return Query<rknn_custom_string>(RKNN_QUERY_CUSTOM_STRING).string;
  }
  // What the NPU holds for all its users.
  rknnd_memory NpuMemory() const {
    rknnd_memory memory = {};
    detail::Check(rknnd_query_memory(handle_, &memory, sizeof memory));
    return memory;
  }
  // Bytes of tensors that were copied for this context so far, by direction and
  // reason.
  rknnd_copy_counters Copies() const {
    rknnd_copy_counters copies = {};
    detail::Check(rknnd_query_copies(handle_, &copies, sizeof copies));
    return copies;
  }
  // Times of the last run that succeeded. Fails before the first.
  rknnd_run_report LastRun() const {
    rknnd_run_report report = {};
    detail::Check(rknnd_last_run(handle_, &report));
    return report;
  }

 private:
  static const Tensor& At(const std::vector<Tensor>& tensors, uint32_t index) {
    if (index < tensors.size()) return tensors[index];
    const std::string name = "tensor " + std::to_string(index);
    const std::string count = std::to_string(tensors.size());
    throw Error(RKNN_ERR_PARAM_INVALID,
                name + " does not exist: the context has " + count);
  }

  template <class Struct>
  Struct Query(rknn_query_cmd command, Struct answer = {}) const {
    detail::Check(rknn_query(handle_, command, &answer, sizeof answer));
    return answer;
  }

  Tensor Ask(rknn_query_cmd command, uint32_t index) const {
    rknn_tensor_attr attr = {};
    attr.index = index;
    return Tensor(Query(command, attr));
  }

  void Describe() {
    const auto count = Query<rknn_input_output_num>(RKNN_QUERY_IN_OUT_NUM);
    for (uint32_t i = 0; i < count.n_input; ++i) {
      inputs_.push_back(Ask(RKNN_QUERY_INPUT_ATTR, i));
    }
    for (uint32_t i = 0; i < count.n_output; ++i) {
      outputs_.push_back(Ask(RKNN_QUERY_OUTPUT_ATTR, i));
    }
  }

  void Swap(Context& other) noexcept {
    std::swap(handle_, other.handle_);
    inputs_.swap(other.inputs_);
    outputs_.swap(other.outputs_);
  }

  rknn_context handle_ = 0;
  std::vector<Tensor> inputs_, outputs_;
};

Memory Memory::Create(const Context& context, uint32_t bytes) {
  // The C API says no more than that it made none.
  if (bytes == 0) throw Error(RKNN_ERR_PARAM_INVALID, "a memory of 0 bytes");
  return {context.handle(), rknn_create_mem(context.handle(), bytes)};
}

Memory Memory::FromFd(const Context& context, int fd, uint32_t bytes,
                      int32_t offset) {
  if (fd < 0 || bytes == 0 || offset < 0) {
    throw Error(RKNN_ERR_PARAM_INVALID,
                "a memory of " + std::to_string(bytes) + " bytes from " +
                    std::to_string(offset) + " of fd " + std::to_string(fd));
  }
  return {context.handle(), rknn_create_mem_from_fd(context.handle(), fd,
                                                    nullptr, bytes, offset)};
}

}  // namespace rknnd

#endif  // RKNND_HPP
