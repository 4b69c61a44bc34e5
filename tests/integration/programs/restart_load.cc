// A program at work in every way the library has, which checks each answer and
// knows of no daemon that comes and goes: any call that fails and any answer
// that is not the right one ends it.
//
//   restart_load [--frames N] WAY MODEL [BARE WHOLE]
//
// WAY: bound, copy, duplicate, fences, internal, queue, rebound, stream;
// weights: of BARE, which takes its weights from MODEL and is WHOLE then. Works
// until its input ends; then one line: frames, and the longest and the median
// time between two of them in microseconds.

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rknnd.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kKinds = 5;
constexpr std::chrono::milliseconds kPatience(60'000);

void Require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

// Frames of a kind are alike, those of another are not.
std::vector<float> Frame(uint32_t elements, uint64_t kind) {
  std::vector<float> values(elements);
  for (uint32_t i = 0; i < elements; ++i) {
    values[i] =
        static_cast<float>(static_cast<int>((i * 7 + kind * 13) % 31) - 11) /
        16.0F;
  }
  return values;
}

// Tells apart what frames gave; counts, and times the distance of two.
class Checker {
 public:
  // Learns the answers on a context of its own.
  explicit Checker(rknnd::Context context);

  [[nodiscard]] const std::vector<float>& frame(uint64_t number) const {
    return frames_[number % kKinds];
  }
  void Check(const void* got, uint64_t number);
  void Report();

 private:
  std::array<std::vector<float>, kKinds> frames_, answers_;
  Clock::time_point last_ = Clock::now();
  std::vector<int64_t> gaps_;
};

// A context with memory for each of some sets of bindings, in floats.
class Worker {
 public:
  Worker(rknnd::Context made, uint32_t sets) : context(std::move(made)) {
    for (uint32_t set = 0; set < sets; ++set) {
      in.push_back(rknnd::Memory::Create(context, InTensor().elements() * 4));
      out.push_back(rknnd::Memory::Create(context, OutTensor().elements() * 4));
      Bind(set, set);
    }
  }

  [[nodiscard]] rknnd::Tensor InTensor() const {
    return context.inputs()[0].WithType(RKNN_TENSOR_FLOAT32);
  }
  [[nodiscard]] rknnd::Tensor OutTensor() const {
    return context.outputs()[0].WithType(RKNN_TENSOR_FLOAT32);
  }
  // The memories of that number to a set.
  void Bind(uint32_t set, size_t memories) {
    context.Bind(set, InTensor(), in[memories]);
    context.Bind(set, OutTensor(), out[memories]);
  }
  void Fill(size_t memories, const std::vector<float>& values) {
    std::copy(values.begin(), values.end(), in[memories].as<float>());
    std::memset(out[memories].data(), 0xee, out[memories].size());
  }

  rknnd::Context context;
  std::vector<rknnd::Memory> in, out;
};

Checker::Checker(rknnd::Context context) {
  Worker worker(std::move(context), 1);
  for (int kind = 0; kind < kKinds; ++kind) {
    frames_[kind] = Frame(worker.InTensor().elements(), kind);
    worker.Fill(0, frames_[kind]);
    worker.context.Run();
    const auto* const begin = worker.out[0].as<float>();
    answers_[kind].assign(begin, begin + worker.OutTensor().elements());
  }
  Require(answers_[0] != answers_[1], "all frames have one answer");
}

void Checker::Check(const void* got, uint64_t number) {
  const std::vector<float>& answer = answers_[number % kKinds];
  if (std::memcmp(got, answer.data(), answer.size() * sizeof(float)) != 0) {
    throw std::runtime_error("frame " + std::to_string(number) +
                             " has a wrong answer");
  }
  const Clock::time_point now = Clock::now();
  gaps_.push_back(
      std::chrono::duration_cast<std::chrono::microseconds>(now - last_)
          .count());
  last_ = now;
}

void Checker::Report() {
  Require(!gaps_.empty(), "no frame was computed");
  std::sort(gaps_.begin(), gaps_.end());
  std::printf("%zu %lld %lld\n", gaps_.size(),
              static_cast<long long>(gaps_.back()),
              static_cast<long long>(gaps_[gaps_.size() / 2]));
}

// So many frames, or, where none are given, until a line says that there are
// enough; some in any case.
uint64_t asked_frames = 0;

bool GoesOn(uint64_t frames) {
  constexpr uint64_t kSome = 20;
  if (asked_frames != 0) return frames < asked_frames;
  if (frames < kSome) return true;
  pollfd wait = {STDIN_FILENO, POLLIN, 0};
  return poll(&wait, 1, 0) == 0;
}

using Way = std::function<void(Checker&, const std::vector<std::string>&)>;

void RunSync(Worker& worker, Checker& checker) {
  for (uint64_t frame = 0; GoesOn(frame); ++frame) {
    worker.Fill(0, checker.frame(frame));
    worker.context.Run();
    checker.Check(worker.out[0].data(), frame);
  }
}

void Bound(Checker& checker, const std::vector<std::string>& models) {
  Worker worker(rknnd::Context::FromFile(models[0]), 1);
  RunSync(worker, checker);
}

void Duplicate(Checker& checker, const std::vector<std::string>& models) {
  const rknnd::Context first = rknnd::Context::FromFile(models[0]);
  Worker worker(first.Duplicate(), 1);
  RunSync(worker, checker);
}

void Stream(Checker& checker, const std::vector<std::string>& models) {
  Worker worker(rknnd::Context::FromFile(models[0]), 1);
  Require(worker.context.Admit(1.0F, true).fits != 0, "no room for a stream");
  RunSync(worker, checker);
}

void Internal(Checker& checker, const std::vector<std::string>& models) {
  rknnd::Context context =
      rknnd::Context::FromFile(models[0], RKNN_FLAG_INTERNAL_ALLOC_OUTSIDE);
  const rknnd::Memory internal = rknnd::Memory::Create(
      context, std::max(4096U, context.ModelMemory().total_internal_size));
  Require(rknn_set_internal_mem(context.handle(), internal.get()) == RKNN_SUCC,
          "rknn_set_internal_mem");
  Worker worker(std::move(context), 1);
  RunSync(worker, checker);
}

void Weights(Checker& checker, const std::vector<std::string>& models) {
  Require(models.size() == 3, "weights takes three models");
  const rknnd::Context owner = rknnd::Context::FromFile(models[0]);
  rknn_init_extend extend = {};
  extend.ctx = owner.handle();
  std::string path = models[1];
  rknn_context bare = 0;
  Require(rknn_init(&bare, path.data(), 0, RKNN_FLAG_SHARE_WEIGHT_MEM,
                    &extend) == RKNN_SUCC,
          "rknn_init with shared weights");
  rknn_tensor_attr in = {};
  rknn_tensor_attr out = {};
  Require(
      rknn_query(bare, RKNN_QUERY_INPUT_ATTR, &in, sizeof in) == RKNN_SUCC &&
          rknn_query(bare, RKNN_QUERY_OUTPUT_ATTR, &out, sizeof out) ==
              RKNN_SUCC,
      "rknn_query");
  in.type = out.type = RKNN_TENSOR_FLOAT32;
  const rknnd::Memory from = rknnd::Memory::Create(owner, in.n_elems * 4);
  const rknnd::Memory to = rknnd::Memory::Create(owner, out.n_elems * 4);
  Require(rknn_set_io_mem(bare, from.get(), &in) == RKNN_SUCC &&
              rknn_set_io_mem(bare, to.get(), &out) == RKNN_SUCC,
          "rknn_set_io_mem");
  for (uint64_t frame = 0; GoesOn(frame); ++frame) {
    const std::vector<float>& values = checker.frame(frame);
    std::copy(values.begin(), values.end(), from.as<float>());
    std::memset(to.data(), 0xee, to.size());
    if (rknn_run(bare, nullptr) != RKNN_SUCC) {
      throw std::runtime_error(rknnd_last_error());
    }
    checker.Check(to.data(), frame);
  }
  rknn_destroy(bare);
}

void Copy(Checker& checker, const std::vector<std::string>& models) {
  rknnd::Context context = rknnd::Context::FromFile(models[0]);
  for (uint64_t frame = 0; GoesOn(frame); ++frame) {
    std::vector<float> values = checker.frame(frame);
    rknn_input input = {};
    input.buf = values.data();
    input.size = static_cast<uint32_t>(values.size() * sizeof(float));
    input.type = RKNN_TENSOR_FLOAT32;
    input.fmt = context.inputs()[0].format();
    Require(rknn_inputs_set(context.handle(), 1, &input) == RKNN_SUCC,
            "rknn_inputs_set");
    context.Run();
    rknn_output output = {};
    output.want_float = 1;
    Require(
        rknn_outputs_get(context.handle(), 1, &output, nullptr) == RKNN_SUCC,
        "rknn_outputs_get");
    checker.Check(output.buf, frame);
    rknn_outputs_release(context.handle(), 1, &output);
  }
}

void Queue(Checker& checker, const std::vector<std::string>& models) {
  constexpr uint32_t kSets = 2;
  rknnd::Queue queue = rknnd::Queue::Create();
  Worker worker(rknnd::Context::FromFile(models[0]), kSets);
  uint64_t begun = 0;
  uint64_t ended = 0;
  const auto begin = [&](uint32_t set) {
    worker.Fill(set, checker.frame(begun));
    worker.context.Submit(rknnd::RunOptions().Set(set).Notify(queue));
    ++begun;
  };
  for (uint32_t set = 0; set < kSets; ++set) begin(set);
  while (ended < begun) {
    pollfd wait = {queue.fd(), POLLIN, 0};
    Require(poll(&wait, 1, static_cast<int>(kPatience.count())) == 1,
            "no completion came for a minute");
    while (const auto completion = queue.Next()) {
      Require(completion->ok(), "a run has failed");
      Require(completion->frame() == ended + 1, "frames come in another order");
      checker.Check(worker.out[completion->set()].data(), ended);
      ++ended;
      if (GoesOn(begun)) begin(completion->set());
    }
  }
}

// One set, whose memory is another one's each frame while others run.
void Rebound(Checker& checker, const std::vector<std::string>& models) {
  constexpr uint64_t kSlots = 3;
  Worker worker(rknnd::Context::FromFile(models[0]), kSlots);
  std::array<uint64_t, kSlots> runs{};
  uint64_t begun = 0;
  for (uint64_t ended = 0; ended < begun || GoesOn(begun);) {
    if (begun - ended < kSlots && GoesOn(begun)) {
      worker.Fill(begun % kSlots, checker.frame(begun));
      worker.Bind(0, begun % kSlots);
      runs[begun % kSlots] = worker.context.Submit();
      ++begun;
      continue;
    }
    worker.context.Wait(runs[ended % kSlots]);
    checker.Check(worker.out[ended % kSlots].data(), ended);
    ++ended;
  }
}

// The second context's run waits for the first one's, which is the one that is
// checked: the second has to find what the first wrote.
void Fences(Checker& checker, const std::vector<std::string>& models) {
  Worker first(rknnd::Context::FromFile(models[0]), 1);
  Worker second(rknnd::Context::FromFile(models[0]), 1);
  for (uint64_t frame = 0; GoesOn(frame); ++frame) {
    first.Fill(0, checker.frame(frame));
    second.Fill(0, checker.frame(frame));
    rknnd::Fence done;
    rknnd::Fence all;
    first.context.Submit(rknnd::RunOptions().Signal(&done));
    second.context.Submit(rknnd::RunOptions().After(done).Signal(&all));
    // Told of the end, or of the daemon's.
    Require(all.Wait(kPatience), "a fence was not told for a minute");
    second.context.Wait();
    const auto before = first.context.WaitFor(0, std::chrono::milliseconds(0));
    Require(before.has_value() && before->ok(), "it ran before its fence");
    checker.Check(second.out[0].data(), frame);
    checker.Check(first.out[0].data(), frame);
  }
}

int Main(const std::vector<std::string>& arguments) {
  const std::vector<std::pair<std::string, Way>> ways = {
      {"bound", Bound},     {"copy", Copy},         {"duplicate", Duplicate},
      {"fences", Fences},   {"internal", Internal}, {"queue", Queue},
      {"rebound", Rebound}, {"stream", Stream},     {"weights", Weights}};
  for (const auto& [name, way] : ways) {
    if (name != arguments[0]) continue;
    const std::vector<std::string> models(arguments.begin() + 1,
                                          arguments.end());
    Checker checker(rknnd::Context::FromFile(models.back()));
    std::puts("ready");
    std::fflush(stdout);
    way(checker, models);
    checker.Report();
    return 0;
  }
  std::fprintf(stderr, "no way '%s'\n", arguments[0].c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  try {
    if (arguments.size() > 2 && arguments[0] == "--frames") {
      asked_frames = std::stoull(arguments[1]);
      arguments.erase(arguments.begin(), arguments.begin() + 2);
    }
    if (arguments.size() >= 2) return Main(arguments);
    std::fputs("usage: restart_load [--frames N] WAY MODEL [BARE WHOLE]\n",
               stderr);
    return 2;
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
