// rknnd.hpp against the whole stack in this process (target local:): objects
// that free themselves, errors that carry their reason, and how much memory
// contexts cost with and without sharing.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/posix/child_process.h"
#include "base/posix/memfd.h"
#include "base/values/half.h"
#include "client/include/rknnd.hpp"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/models.h"
#include "tests/integration/harness/patience.h"

namespace rknnd::integration {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class CppApiTest : public testing::Test {
 protected:
  // The library reads it at its first call.
  static void SetUpTestSuite() { setenv("RKNND_TARGET", "local:", 1); }

  void SetUp() override {
    auto made = base::TemporaryFolder::Make();
    ASSERT_TRUE(made.ok()) << made.error().message;
    folder_.emplace(*std::move(made));
  }

  [[nodiscard]] const std::string& folder() const { return folder_->path(); }

 private:
  std::optional<base::TemporaryFolder> folder_;
};

void Fill(const Memory& memory, const std::vector<float>& values) {
  base::FloatToHalf(values, {memory.as<uint16_t>(), values.size()});
}

std::vector<float> Read(const Memory& memory, size_t count) {
  std::vector<float> values(count);
  base::HalfToFloat({memory.as<const uint16_t>(), count}, values);
  return values;
}

constexpr size_t kReluNumbers = 16;

// A context of MakeRelu's network with memory on both sides.
struct Relu {
  explicit Relu(Context made) : context(std::move(made)) {
    const Tensor in = context.inputs()[0].WithType(RKNN_TENSOR_FLOAT16);
    const Tensor out = context.outputs()[0].WithType(RKNN_TENSOR_FLOAT16);
    input = Memory::Create(context, kReluNumbers * 2);
    output = Memory::Create(context, kReluNumbers * 2);
    context.Bind(in, input);
    context.Bind(out, output);
  }

  Context context;
  Memory input, output;
};

TEST_F(CppApiTest, AContextOfAFileRunsOnBoundMemoryWithoutACopy) {
  Relu relu(Context::FromFile(MakeRelu(folder()).path));
  std::vector<float> numbers(kReluNumbers, -1);
  numbers[3] = 2.5F;
  Fill(relu.input, numbers);
  EXPECT_EQ(relu.context.Run(), 1U);
  std::vector<float> expected(kReluNumbers, 0);
  expected[3] = 2.5F;
  EXPECT_EQ(Read(relu.output, kReluNumbers), expected);
  EXPECT_EQ(relu.context.LastRun().frame_id, 1U);
  EXPECT_EQ(relu.context.Copies().to_device_conversion, 0U);
}

TEST_F(CppApiTest, AContextOfBytesDescribesItsTensors) {
  const std::string bytes = ReadText(MakeConvNet(folder()).path);
  const Context context =
      Context::FromBytes(bytes.data(), static_cast<uint32_t>(bytes.size()));
  ASSERT_EQ(context.inputs().size(), 1U);
  EXPECT_EQ(context.inputs()[0].name(), "image");
  EXPECT_THAT(context.inputs()[0].shape(), ElementsAre(1, 16, 16, 3));
  EXPECT_EQ(context.inputs()[0].format(), RKNN_TENSOR_NHWC);
  EXPECT_EQ(context.outputs()[0].elements(), 4U * 16 * 16);
}

TEST_F(CppApiTest, ADuplicateOutlivesItsOriginal) {
  Context original = Context::FromFile(MakeRelu(folder()).path);
  Relu copy(original.Duplicate());
  original = Context();
  Fill(copy.input, std::vector<float>(kReluNumbers, 7));
  copy.context.Run();
  EXPECT_EQ(Read(copy.output, kReluNumbers),
            std::vector<float>(kReluNumbers, 7));
}

TEST_F(CppApiTest, MemoryOfADescriptorIsReadWhereItLies) {
  Relu relu(Context::FromFile(MakeRelu(folder()).path));
  constexpr int32_t kOffset = 4096;
  auto fd = base::MakeMemfd("frame", kOffset + kReluNumbers * 2);
  ASSERT_TRUE(fd.ok());
  const Memory frame =
      Memory::FromFd(relu.context, fd->get(), kReluNumbers * 2, kOffset);
  fd->reset();
  relu.context.Bind(relu.context.inputs()[0].WithType(RKNN_TENSOR_FLOAT16),
                    frame);
  Fill(frame, std::vector<float>(kReluNumbers, 5));
  relu.context.Run();
  EXPECT_EQ(Read(relu.output, kReluNumbers),
            std::vector<float>(kReluNumbers, 5));
}

TEST_F(CppApiTest, FailuresCarryTheCodeAndTheReason) {
  try {
    Context::FromFile(folder() + "/nowhere.onnx");
    FAIL() << "a model that is not there was loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), RKNN_ERR_MODEL_INVALID);
    EXPECT_THAT(error.what(), HasSubstr("nowhere.onnx"));
  }
  Context context = Context::FromFile(MakeRelu(folder()).path);
  try {
    context.Run();
    FAIL() << "a context without inputs ran";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), RKNN_ERR_INPUT_INVALID);
  }
  EXPECT_THROW(Context::FromBytes("", 0), Error);
}

int CodeOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_STRNE(error.what(), "");
    return error.code();
  }
  return RKNN_SUCC;
}

TEST_F(CppApiTest, WrongParametersAreErrorsOfOurs) {
  Context context = Context::FromFile(MakeRelu(folder()).path);
  const Memory memory = context.AllocateInput(0);
  for (const std::function<void()>& call : std::vector<std::function<void()>>{
           [&] { (void)context.AllocateInput(1); },
           [&] { (void)context.AllocateOutput(1); },
           [&] { context.BindInput(1, memory); },
           [&] { context.BindOutput(1, memory); },
           [&] { (void)Memory::Create(context, 0); },
           [&] { (void)Memory::FromFd(context, -1, 16); }}) {
    EXPECT_EQ(CodeOf(call), RKNN_ERR_PARAM_INVALID);
  }
}

TEST_F(CppApiTest, AssignmentReleasesWhatWasThere) {
  Context context = Context::FromFile(MakeRelu(folder()).path);
  const uint64_t before = context.NpuMemory().io;
  Memory first = Memory::Create(context, 1 << 20);
  const uint64_t with_one = context.NpuMemory().io;
  ASSERT_GT(with_one, before);
  Memory second = Memory::Create(context, 1 << 20);
  first = std::move(second);
  EXPECT_EQ(context.NpuMemory().io, with_one);
  EXPECT_FALSE(
      second);  // NOLINT(bugprone-use-after-move): that is the question
  ASSERT_TRUE(first);
  Memory& same = first;
  first = std::move(same);
  EXPECT_TRUE(first);
  EXPECT_EQ(context.NpuMemory().io, with_one);

  Context other = context.Duplicate();
  const rknn_context gone = other.handle();
  Context third = context.Duplicate();
  other = std::move(third);
  EXPECT_FALSE(third);  // NOLINT(bugprone-use-after-move)
  rknn_input_output_num count;
  EXPECT_NE(rknn_query(gone, RKNN_QUERY_IN_OUT_NUM, &count, sizeof count),
            RKNN_SUCC);
  Context& itself = other;
  other = std::move(itself);
  EXPECT_TRUE(other);
  EXPECT_EQ(other.inputs().size(), 1U);
}

TEST_F(CppApiTest, QuantizationGoesBothWays) {
  rknn_tensor_attr attr = {};
  attr.scale = 0.5F;
  attr.zp = -3;
  const Tensor tensor(attr);
  EXPECT_EQ(tensor.Quantize(2), 1);
  EXPECT_EQ(tensor.Dequantize(1), 2);
}

// ---- runs that are not waited for ----

using std::chrono::milliseconds;

// Longer than a loaded machine takes; a test that needs it has failed.
constexpr milliseconds kPatience(60'000);

bool Readable(int fd, milliseconds patience = milliseconds(0)) {
  pollfd look = {fd, POLLIN, 0};
  return poll(&look, 1, static_cast<int>(patience.count())) == 1;
}

// An eventfd that nobody has signalled.
Fence Unsignalled() { return Fence(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }

void Signal(const Fence& fence) {
  const uint64_t one = 1;
  ASSERT_EQ(write(fence.fd(), &one, sizeof one), 8);
}

TEST_F(CppApiTest, ARunIsSubmittedAndWaitedFor) {
  Relu relu(Context::FromFile(MakeRelu(folder()).path));
  Fill(relu.input, std::vector<float>(kReluNumbers, 3));
  const uint64_t frame = relu.context.Submit();
  EXPECT_EQ(frame, 1U);
  const Completion run = relu.context.Wait(frame);
  EXPECT_TRUE(run.ok());
  EXPECT_EQ(run.frame(), frame);
  EXPECT_EQ(run.context(), relu.context.handle());
  EXPECT_GT(run.run_time().count(), 0);
  EXPECT_GE(run.total_time(), run.run_time());
  EXPECT_EQ(Read(relu.output, kReluNumbers),
            std::vector<float>(kReluNumbers, 3));
  relu.context.Submit(RunOptions().Frame(77));
  EXPECT_EQ(relu.context.Wait().frame(), 77U);
}

TEST_F(CppApiTest, AFailedSubmissionOrRunThrowsItsReason) {
  Context bare = Context::FromFile(MakeRelu(folder()).path);
  EXPECT_NE(CodeOf([&] {
              bare.Submit();
              bare.Wait();
            }),
            RKNN_SUCC);
  Relu relu(bare.Duplicate());
  EXPECT_EQ(CodeOf([&] { relu.context.Submit(RunOptions().Set(RKNND_SETS)); }),
            RKNN_ERR_PARAM_INVALID);
  EXPECT_NE(CodeOf([&] { relu.context.Wait(999); }), RKNN_SUCC);
  relu.context.Submit();
  EXPECT_TRUE(relu.context.Wait().ok());
}

TEST_F(CppApiTest, AQueueTellsOfTheEndOfRunsOfSeveralContexts) {
  const Queue queue = Queue::Create();
  Relu first(Context::FromFile(MakeRelu(folder()).path));
  Relu second(first.context.Duplicate());
  // Not const: they take from it.
  Queue ended = Queue::Create();
  int mark = 0;
  EXPECT_FALSE(ended.Next());
  EXPECT_FALSE(Readable(ended.fd()));
  first.context.Submit(RunOptions().Notify(ended).User(&mark));
  second.context.Submit(RunOptions().Notify(ended));
  std::vector<rknn_context> heard;
  while (heard.size() < 2) {
    ASSERT_TRUE(Readable(ended.fd(), kPatience));
    while (const std::optional<Completion> run = ended.Next()) {
      EXPECT_TRUE(run->ok());
      EXPECT_EQ(run->user(),
                run->context() == first.context.handle() ? &mark : nullptr);
      heard.push_back(run->context());
    }
  }
  EXPECT_THAT(heard, testing::UnorderedElementsAre(first.context.handle(),
                                                   second.context.handle()));
  // It may be readable a moment longer (rknnd.h), but nothing more is there.
  EXPECT_TRUE(Eventually([&] {
    EXPECT_FALSE(ended.Next());
    return !Readable(ended.fd());
  }));
  EXPECT_FALSE(Readable(queue.fd()));
}

TEST_F(CppApiTest, HandlersAreCalledByDispatchOnce) {
  Relu relu(Context::FromFile(MakeRelu(folder()).path));
  Queue ended = Queue::Create();
  int called = 0;
  std::function<void(const Completion&)> again;
  again = [&](const Completion& run) {
    EXPECT_TRUE(run.ok());
    EXPECT_EQ(run.user(), nullptr);
    // From inside, to the same queue.
    if (++called < 5) relu.context.Submit(RunOptions().Notify(ended, again));
  };
  relu.context.Submit(RunOptions().Notify(ended, again));
  uint32_t dispatched = 0;
  while (dispatched < 5) {
    ASSERT_TRUE(Readable(ended.fd(), kPatience));
    dispatched += ended.Dispatch();
  }
  EXPECT_EQ(called, 5);
  EXPECT_EQ(ended.Dispatch(), 0U);
}

TEST_F(CppApiTest, AHandlerThatThrowsLosesNothingBehindIt) {
  Relu relu(Context::FromFile(MakeRelu(folder()).path));
  Queue ended = Queue::Create();
  int called = 0;
  relu.context.Submit(RunOptions().Notify(
      ended, [](const Completion&) { throw std::runtime_error("mine"); }));
  relu.context.Submit(
      RunOptions().Notify(ended, [&](const Completion&) { ++called; }));
  int thrown = 0;
  while (called == 0) {
    ASSERT_TRUE(Readable(ended.fd(), kPatience));
    try {
      ended.Dispatch();
    } catch (const std::runtime_error&) {
      ++thrown;
    }
  }
  EXPECT_EQ(thrown, 1);
}

TEST_F(CppApiTest, AQueueMayGoBeforeItsRuns) {
  Relu relu(Context::FromFile(MakeRelu(folder()).path));
  const Fence never = Unsignalled();
  auto held = std::make_shared<int>(1);
  {
    Queue ended = Queue::Create();
    relu.context.Submit(RunOptions().After(never).Notify(
        ended, [held](const Completion&) { FAIL() << "nobody is there"; }));
    EXPECT_EQ(held.use_count(), 2);
    Queue moved = std::move(ended);
    EXPECT_TRUE(moved);
    EXPECT_FALSE(ended);  // NOLINT(bugprone-use-after-move)
  }
  EXPECT_EQ(held.use_count(), 1);
  relu.context.Cancel();
  relu.context.Run();
}

TEST_F(CppApiTest, RunsWaitForFencesAndSignalTheirOwn) {
  Relu first(Context::FromFile(MakeRelu(folder()).path));
  Relu second(first.context.Duplicate());
  const Fence start = Unsignalled();
  Fence between, end;
  first.context.Submit(RunOptions().After(start).Signal(&between));
  second.context.Submit(RunOptions().After(between).Signal(&end));
  ASSERT_TRUE(between);
  EXPECT_FALSE(end.Wait(milliseconds(0)));
  EXPECT_FALSE(first.context.WaitFor(0, milliseconds(0)));
  Signal(start);
  EXPECT_TRUE(end.Wait(kPatience));
  EXPECT_TRUE(between.Wait(milliseconds(0)));
  EXPECT_TRUE(first.context.WaitFor(0, kPatience)->ok());
  EXPECT_TRUE(second.context.WaitFor(0, kPatience)->ok());
}

TEST_F(CppApiTest, AFenceOfTheWrongKindIsRefusedWithTheReason) {
  Relu relu(Context::FromFile(MakeRelu(folder()).path));
  const Fence file(open("/dev/null", O_RDONLY | O_CLOEXEC));
  try {
    relu.context.Submit(RunOptions().After(file));
    FAIL() << "a run waits for /dev/null";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), RKNN_ERR_PARAM_INVALID);
    EXPECT_THAT(error.what(), HasSubstr("/dev/null"));
  }
  relu.context.Run();
}

TEST_F(CppApiTest, CancelTakesBackWhatWaits) {
  Relu relu(Context::FromFile(MakeRelu(folder()).path));
  const Fence never = Unsignalled();
  const uint64_t first = relu.context.Submit(RunOptions().After(never));
  relu.context.Submit();
  relu.context.Submit();
  EXPECT_EQ(relu.context.Cancel(first), 1U);
  EXPECT_TRUE(relu.context.WaitFor(first, kPatience)->cancelled());
  EXPECT_TRUE(relu.context.Wait().ok());
  EXPECT_TRUE(relu.context.Wait().ok());
  EXPECT_EQ(relu.context.Cancel(), 0U);
}

TEST_F(CppApiTest, SetsOfBindingsAreOfDifferentFrames) {
  Relu relu(Context::FromFile(MakeRelu(folder()).path));
  const Tensor in = relu.context.inputs()[0].WithType(RKNN_TENSOR_FLOAT16);
  const Tensor out = relu.context.outputs()[0].WithType(RKNN_TENSOR_FLOAT16);
  std::vector<Memory> inputs, outputs;
  for (uint32_t set = 0; set < RKNND_SETS; ++set) {
    inputs.push_back(Memory::Create(relu.context, kReluNumbers * 2));
    outputs.push_back(Memory::Create(relu.context, kReluNumbers * 2));
    relu.context.Bind(set, in, inputs.back());
    relu.context.Bind(set, out, outputs.back());
    Fill(inputs.back(),
         std::vector<float>(kReluNumbers, static_cast<float>(set + 1)));
  }
  for (uint32_t set = 0; set < RKNND_SETS; ++set) {
    relu.context.Submit(RunOptions().Set(set));
  }
  for (uint32_t set = 0; set < RKNND_SETS; ++set) {
    EXPECT_EQ(relu.context.Wait().set(), set);
    EXPECT_EQ(Read(outputs[set], kReluNumbers),
              std::vector<float>(kReluNumbers, static_cast<float>(set + 1)));
  }
}

TEST_F(CppApiTest, NewestFrameTakesTheOldersPlace) {
  Relu relu(Context::FromFile(MakeRelu(folder()).path));
  relu.context.SetQueuePolicy(RKNND_QUEUE_NEWEST);
  const Fence never = Unsignalled();
  const uint64_t older = relu.context.Submit(RunOptions().After(never));
  const uint64_t newer = relu.context.Submit();
  EXPECT_TRUE(relu.context.WaitFor(older, kPatience)->dropped());
  EXPECT_TRUE(relu.context.WaitFor(newer, kPatience)->ok());
}

TEST_F(CppApiTest, ARunEndsAtItsTimeout) {
  Relu relu(Context::FromFile(MakeRelu(folder()).path));
  const Fence never = Unsignalled();
  relu.context.Submit(RunOptions().After(never).Timeout(milliseconds(5)));
  const auto run = relu.context.WaitFor(0, kPatience);
  ASSERT_TRUE(run);
  EXPECT_EQ(run->code(), RKNN_ERR_TIMEOUT);
  relu.context.Run();
}

TEST_F(CppApiTest, AStreamIsAdmittedOrToldWhatFits) {
  Relu relu(Context::FromFile(MakeRelu(folder()).path));
  relu.context.Run();
  EXPECT_EQ(relu.context.Admit(1).fits, 1U);
  const rknnd_admission much = relu.context.Admit(1e6F);
  EXPECT_EQ(much.fits, 0U);
  EXPECT_GT(much.rate, 0.0F);
  EXPECT_STRNE(much.reason, "");
}

// ---- what sharing saves ----

struct Held {
  double weight = 0, internal = 0;
};

// What one context holds, and what four do, in a process of its own: a process
// has one kind of sharing.
std::pair<Held, Held> OneAndFour(const std::string& model,
                                 const std::string& sharing,
                                 const std::string& duplicate) {
  base::ChildProcess::Options options;
  options.arguments = {ProgramPath("tests/integration_cpp_api_memory"), model,
                       "4", duplicate};
  options.environment = {{"RKNND_TARGET", "local:"},
                         {"RKNND_SHARING", sharing}};
  auto child = base::ChildProcess::Start(options);
  EXPECT_TRUE(child.ok()) << child.error().message;
  if (!child.ok()) return {};
  auto text = child->ReadAll(60 * base::kSecond);
  EXPECT_TRUE(text.ok()) << text.error().message;
  if (!text.ok()) return {};
  std::pair<Held, Held> held;
  EXPECT_EQ(std::sscanf(text->c_str(), "%lf %lf %lf %lf", &held.first.weight,
                        &held.first.internal, &held.second.weight,
                        &held.second.internal),
            4)
      << *text;
  EXPECT_GT(held.first.weight, 0);
  EXPECT_GT(held.first.internal, 0);
  return held;
}

TEST_F(CppApiTest, FurtherContextsHoldNoFurtherMemory) {
  const auto [one, four] = OneAndFour(MakeChain(folder()).path, "full", "no");
  EXPECT_EQ(four.weight, one.weight);
  EXPECT_EQ(four.internal, one.internal);
}

TEST_F(CppApiTest, VendorSharingHoldsTheWeightsOnceForEveryInit) {
  const auto [one, four] = OneAndFour(MakeChain(folder()).path, "vendor", "no");
  EXPECT_EQ(four.weight, 4 * one.weight);
  EXPECT_EQ(four.internal, 4 * one.internal);
}

TEST_F(CppApiTest, VendorSharingOfDuplicatesIsOfTheWeightsAlone) {
  const auto [one, four] =
      OneAndFour(MakeChain(folder()).path, "vendor", "yes");
  EXPECT_EQ(four.weight, one.weight);
  EXPECT_EQ(four.internal, 4 * one.internal);
}

}  // namespace
}  // namespace rknnd::integration
