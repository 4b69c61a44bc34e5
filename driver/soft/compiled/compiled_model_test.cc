// A model that comes from its compiled form is the model it was: the same
// numbers about it, the same bits out of it. And a form that was damaged is
// refused, whatever stands in it.

#include <unistd.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/posix/mapping.h"
#include "base/posix/memfd.h"
#include "driver/soft/soft_device.h"
#include "driver/soft/testing/onnx_builder.h"
#include "driver/soft/testing/run_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using driver::TensorType;
using testing::BoundModel;
using testing::OnnxBuilder;

// A disk's worth: the form with somebody to keep it.
struct Form {
  std::shared_ptr<std::vector<std::byte>> bytes =
      std::make_shared<std::vector<std::byte>>();
};

std::unique_ptr<driver::Device> NewDevice() {
  auto device = *OpenSoftDevice({.kind = "soft", .soc = "rk3588"});
  device->EnterWorker();
  return device;
}

absl::StatusOr<Form> FormOf(driver::Model& model) {
  Form form;
  const absl::Status written =
      model.WriteCompiled([&](std::span<const std::byte> piece) {
        form.bytes->insert(form.bytes->end(), piece.begin(), piece.end());
        return absl::OkStatus();
      });
  if (!written.ok()) return written;
  return form;
}

absl::StatusOr<std::unique_ptr<driver::Model>> Restore(driver::Device& device,
                                                       const Form& form) {
  driver::LoadRequest request;
  request.name = "m.onnx";
  request.compiled = *form.bytes;
  request.compiled_keeper = form.bytes;
  return device.Load(request);
}

// The bytes of all outputs, of inputs that are the same each time.
std::vector<std::byte> Answer(driver::Device& device,
                              const driver::Model& model, uint32_t cores = 1,
                              uint32_t row = 0) {
  const driver::ProgramInfo& info = model.info().programs[row];
  const auto formats = [](const std::vector<driver::TensorAttr>& attrs) {
    std::vector<driver::TensorFormat> all;
    for (const driver::TensorAttr& attr : attrs) {
      all.push_back(testing::PlainFormat(attr, attr.type));
    }
    return all;
  };
  auto bound = BoundModel::Make(device, model, formats(info.inputs),
                                formats(info.outputs), row);
  EXPECT_TRUE(bound.ok()) << bound.status();
  if (!bound.ok()) return {};
  std::mt19937 random(7);
  for (size_t i = 0; i < info.inputs.size(); ++i) {
    // Small whole numbers: finite in any type.
    const driver::TensorAttr& attr = info.inputs[i];
    const size_t element = driver::ElementSize(attr.type);
    for (uint64_t e = 0; e < attr.elements; ++e) {
      const auto number = static_cast<int>(random() % 60);
      std::byte* const at = (*bound)->input(i).data() + e * element;
      if (attr.type == TensorType::kFloat32) {
        const auto value = static_cast<float>(number);
        std::memcpy(at, &value, sizeof value);
      } else {
        // Also the low byte of a half: a number near zero.
        std::memset(at, 0, element);
        *at = static_cast<std::byte>(number);
      }
    }
  }
  const driver::JobResult result =
      cores == 1 ? (*bound)->Run() : (*bound)->RunGang((1U << cores) - 1);
  EXPECT_TRUE(result.status.ok()) << result.status;
  std::vector<std::byte> answer;
  for (size_t i = 0; i < info.outputs.size(); ++i) {
    const std::byte* const from = (*bound)->output(i).data();
    answer.insert(answer.end(), from, from + info.outputs[i].size);
  }
  return answer;
}

void ExpectSameInfo(const driver::ModelInfo& a, const driver::ModelInfo& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.weight_size, b.weight_size);
  EXPECT_EQ(a.custom_string, b.custom_string);
  EXPECT_EQ(a.target_platform, b.target_platform);
  EXPECT_EQ(a.largest, b.largest);
  ASSERT_EQ(a.programs.size(), b.programs.size());
  for (size_t p = 0; p < a.programs.size(); ++p) {
    const driver::ProgramInfo& x = a.programs[p];
    const driver::ProgramInfo& y = b.programs[p];
    EXPECT_EQ(x.internal_size, y.internal_size);
    EXPECT_EQ(x.batch, y.batch);
    EXPECT_EQ(x.modelled, y.modelled);
    EXPECT_EQ(x.sram.used, y.sram.used);
    EXPECT_EQ(x.sram.saved, y.sram.saved);
    ASSERT_EQ(x.inputs.size(), y.inputs.size());
    ASSERT_EQ(x.outputs.size(), y.outputs.size());
    for (size_t i = 0; i < x.inputs.size(); ++i) {
      EXPECT_EQ(x.inputs[i].name, y.inputs[i].name);
      EXPECT_EQ(x.inputs[i].dims, y.inputs[i].dims);
      EXPECT_EQ(x.inputs[i].type, y.inputs[i].type);
      EXPECT_EQ(x.inputs[i].scale, y.inputs[i].scale);
    }
    ASSERT_EQ(x.layers.size(), y.layers.size());
    for (size_t l = 0; l < x.layers.size(); ++l) {
      EXPECT_EQ(x.layers[l].name, y.layers[l].name);
      EXPECT_EQ(x.layers[l].type, y.layers[l].type);
      EXPECT_EQ(x.layers[l].splits, y.layers[l].splits) << x.layers[l].name;
      EXPECT_EQ(x.layers[l].ddr_bytes, y.layers[l].ddr_bytes);
      EXPECT_EQ(x.layers[l].macs, y.layers[l].macs);
    }
    ASSERT_EQ(x.tensors.size(), y.tensors.size());
    for (size_t t = 0; t < x.tensors.size(); ++t) {
      EXPECT_EQ(x.tensors[t].offset, y.tensors[t].offset);
      EXPECT_EQ(x.tensors[t].size, y.tensors[t].size);
    }
  }
}

// An int8 detector of ours, and the models of ../shared where they are there.
class CompiledModelTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string name = GetParam();
    if (name == "detector") {
      bytes_ = testing::ReadFile(std::string(RKNND_SOURCE_ROOT) +
                                 "/examples/detector/detector.onnx");
      return;
    }
    const std::string shared = testing::SharedFolder();
    if (shared.empty()) GTEST_SKIP() << "no ../shared (set RKNND_SHARED)";
    bytes_ = testing::ReadFile(shared + "/models/" + name + "/model.onnx");
  }

  std::vector<std::byte> bytes_;
};

TEST_P(CompiledModelTest, IsTheModelItWas) {
  const auto before = NewDevice();
  auto model = before->Load({bytes_, "", "m.onnx"});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto form = FormOf(**model);
  ASSERT_TRUE(form.ok()) << form.status();
  ASSERT_TRUE((*model)->Finish().ok());
  const std::vector<std::byte> one = Answer(*before, **model);
  const std::vector<std::byte> gang = Answer(*before, **model, 3);

  const auto after = NewDevice();
  auto restored = Restore(*after, *form);

  ASSERT_TRUE(restored.ok()) << restored.status();
  ExpectSameInfo((*model)->info(), (*restored)->info());
  // A job that is there before the kernels are, and those that come after.
  EXPECT_EQ(Answer(*after, **restored), one);
  EXPECT_EQ(Answer(*after, **restored, 3), one);
  const absl::Status finished = (*restored)->Finish();
  ASSERT_TRUE(finished.ok()) << finished;
  EXPECT_EQ(Answer(*after, **restored), one);
  EXPECT_EQ(Answer(*after, **restored, 3), gang);
  EXPECT_EQ((*restored)->held_weights(), (*model)->held_weights());
}

TEST_P(CompiledModelTest, JobsMayRunWhileItsKernelsAreMade) {
  const auto device = NewDevice();
  auto model = device->Load({bytes_, "", "m.onnx"});
  ASSERT_TRUE(model.ok()) << model.status();
  const auto form = FormOf(**model);
  ASSERT_TRUE(form.ok()) << form.status();
  const std::vector<std::byte> wanted = Answer(*device, **model);
  auto restored = Restore(*device, *form);
  ASSERT_TRUE(restored.ok()) << restored.status();

  absl::Status finished;
  std::thread loader([&] { finished = (*restored)->Finish(); });
  const std::vector<std::byte> answer = Answer(*device, **restored);
  loader.join();

  EXPECT_TRUE(finished.ok()) << finished;
  EXPECT_EQ(answer, wanted);
}

INSTANTIATE_TEST_SUITE_P(
    Models, CompiledModelTest,
    ::testing::Values("detector", "magika_v3_3", "mnist_8",
                      "retinaface_int8_qdq", "selfie_segmentation",
                      "shufflenet_v2_int8", "squeezenet_fp16",
                      "ultraface_rfb_320", "vittrack", "yolox_nano",
                      "yunet_n_320"),
    [](const auto& param) { return std::string(param.param); });

// Conv with weights large enough to be left out, and one that is not.
OnnxBuilder Network(int64_t size = 8) {
  std::mt19937 random(3);
  const auto floats = [&](size_t count) {
    std::vector<float> values(count);
    for (float& value : values) {
      value = static_cast<float>(random() % 100) / 100.0F - 0.5F;
    }
    return values;
  };
  OnnxBuilder builder;
  builder.Input("x", {1, 16, size, size})
      .Floats("w", {64, 16, 3, 3}, floats(size_t{64} * 16 * 9))
      .Floats("b", {64}, floats(64))
      .Floats("v", {4, 64, 1, 1}, floats(256))
      .Floats("slope", {4, 1, 1}, floats(4))
      .Node("Conv", {"x", "w", "b"}, {"c"}, "first")
      .Ints("pads", {1, 1, 1, 1})
      .Node("Relu", {"c"}, {"r"}, "relu")
      .Node("Conv", {"r", "v"}, {"d"}, "second")
      .Node("PRelu", {"d", "slope"}, {"y"}, "prelu")
      .Output("y", {1, 4, size, size});
  return builder;
}

Form FormOfNetwork(driver::Device& device, const std::string& options = "") {
  auto model = device.Load({Network().Bytes(), options, "m.onnx"});
  EXPECT_TRUE(model.ok()) << model.status();
  return *FormOf(**model);
}

TEST(CompiledFormTest, LeavesOutWeightsThatArePacked) {
  const auto device = NewDevice();
  auto model = device->Load({Network().Bytes(), "", "m.onnx"});
  const Form form = *FormOf(**model);
  EXPECT_LT(form.bytes->size(), (*model)->info().weight_size + 8192);
}

TEST(CompiledFormTest, KeepsRowsOfShapesAndTheBatch) {
  const auto device = NewDevice();
  for (const std::string options :
       {"dynamic_input: [[[1,16,8,8]], [[1,16,16,16]]]",
        "rknn_batch_size: 3"}) {
    auto model = device->Load({Network().Bytes(), options, "m.onnx"});
    ASSERT_TRUE(model.ok()) << model.status();
    auto restored = Restore(*device, *FormOf(**model));
    ASSERT_TRUE(restored.ok()) << restored.status();
    ExpectSameInfo((*model)->info(), (*restored)->info());
    for (uint32_t row = 0; row < (*model)->info().programs.size(); ++row) {
      EXPECT_EQ(Answer(*device, **restored, 1, row),
                Answer(*device, **model, 1, row));
    }
  }
}

TEST(CompiledFormTest, ScaledProductIsRestored) {
  OnnxBuilder builder;
  std::vector<float> weights(64 * 64);
  for (size_t i = 0; i < weights.size(); ++i) {
    weights[i] = static_cast<float>(i % 17) - 8.0F;
  }
  builder.Input("x", {2, 64})
      .Floats("w", {64, 64}, weights)
      .Node("Gemm", {"x", "w"}, {"y"}, "scaled")
      .Float("alpha", 0.5F)
      .Output("y", {2, 64});
  const auto device = NewDevice();
  auto model = device->Load({builder.Bytes(), "", "m.onnx"});
  ASSERT_TRUE(model.ok()) << model.status();

  auto restored = Restore(*device, *FormOf(**model));

  ASSERT_TRUE(restored.ok()) << restored.status();
  EXPECT_EQ(Answer(*device, **restored), Answer(*device, **model));
}

TEST(CompiledFormTest, ModelThatStopsAtAForeignOperatorHasNone) {
  OnnxBuilder builder;
  builder.Input("x", {1, 4})
      .Opset(1, "my.domain")
      .Node("Mine", {"x"}, {"y"}, "mine", "my.domain")
      .Output("y", {1, 4});
  const auto device = NewDevice();
  auto model = device->Load({builder.Bytes(), "", "m.onnx"});
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_TRUE(absl::IsUnimplemented(FormOf(**model).status()));
}

TEST(CompiledFormTest, WeightsAreSharedWithTheModelThatIsThere) {
  const auto device = NewDevice();
  auto model = device->Load({Network().Bytes(), "", "m.onnx"});
  const Form form = *FormOf(**model);

  auto restored = Restore(*device, form);
  ASSERT_TRUE((*restored)->Finish().ok());

  EXPECT_LT((*restored)->held_weights(), (*model)->held_weights());
}

TEST(CompiledFormTest, FormIsLetGoWhenTheModelIsFinished) {
  const auto device = NewDevice();
  const Form form = FormOfNetwork(*device);
  auto restored = Restore(*device, form);
  EXPECT_GT(form.bytes.use_count(), 1);
  ASSERT_TRUE((*restored)->Finish().ok());
  EXPECT_EQ(form.bytes.use_count(), 1);
}

TEST(CompiledFormTest, CutShortIsRefusedAnywhere) {
  const auto device = NewDevice();
  const Form whole = FormOfNetwork(*device);
  for (size_t size = 1; size < whole.bytes->size();
       size += 1 + whole.bytes->size() / 997) {
    Form cut;
    cut.bytes->assign(whole.bytes->begin(),
                      whole.bytes->begin() + static_cast<ptrdiff_t>(size));
    const absl::Status status = Restore(*device, cut).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << size << ": " << status;
  }
}

TEST(CompiledFormTest, SomethingBehindItIsRefused) {
  const auto device = NewDevice();
  const Form form = FormOfNetwork(*device);
  form.bytes->resize(form.bytes->size() + 64);
  EXPECT_TRUE(absl::IsDataLoss(Restore(*device, form).status()));
}

// Every byte of the description changed in turn, as no disk would but somebody
// might: it is refused, or runs inside its own memory.
TEST(CompiledFormTest, ChangedBytesNeverReachBeyondTheModel) {
  const auto device = NewDevice();
  const Form whole = FormOfNetwork(*device);
  uint64_t head = 0;
  std::memcpy(&head, whole.bytes->data(), sizeof head);
  std::mt19937 random(11);
  size_t refused = 0;
  for (size_t at = 0; at < head + sizeof head; ++at) {
    Form changed;
    *changed.bytes = *whole.bytes;
    (*changed.bytes)[at] ^= static_cast<std::byte>(1U << random() % 8);
    auto model = Restore(*device, changed);
    if (!model.ok()) {
      EXPECT_TRUE(absl::IsDataLoss(model.status()) ||
                  absl::IsResourceExhausted(model.status()))
          << model.status();
      ++refused;
      continue;
    }
    // May fail: a kernel that finds its weights to be of another size.
    if (!(*model)->Finish().ok()) ++refused;
  }
  EXPECT_GT(refused, head / 4);
}

TEST(CompiledFormTest, KernelThatDoesNotFitFailsItsJobsInWords) {
  const auto device = NewDevice();
  const Form form = FormOfNetwork(*device);
  // Sizes of pieces follow the size of the head, the form's number, two texts
  // and three numbers; the second is that of bias 'b'.
  constexpr size_t kSizes = 8 + 4 + 8 + 8 + 4 + 4 + 8;
  uint64_t size = 0;
  std::memcpy(&size, form.bytes->data() + kSizes + 8, sizeof size);
  ASSERT_EQ(size, 64 * sizeof(float));
  size = 60 * sizeof(float);  // takes as much room
  std::memcpy(form.bytes->data() + kSizes + 8, &size, sizeof size);
  auto model = Restore(*device, form);
  ASSERT_TRUE(model.ok()) << model.status();

  const absl::Status finished = (*model)->Finish();

  EXPECT_TRUE(absl::IsDataLoss(finished));
  EXPECT_THAT(std::string(finished.message()),
              ::testing::HasSubstr("weights of another size"));
}

// The form in a file, as the daemon's cache folder has it.
class FormInAFile {
 public:
  explicit FormInAFile(const Form& form)
      : fd_(*base::MakeGrowingMemfd("form")) {
    EXPECT_TRUE(base::AppendToMemfd(fd_.get(), *form.bytes).ok());
    mapping_ = std::make_shared<base::Mapping>(*base::Mapping::OfFd(
        fd_.get(), 0, form.bytes->size(), base::Mapping::Access::kRead));
  }
  void CutAt(size_t size) {
    EXPECT_EQ(ftruncate(fd_.get(), static_cast<off_t>(size)), 0);
  }
  absl::StatusOr<std::unique_ptr<driver::Model>> Restore(
      driver::Device& device) {
    driver::LoadRequest request;
    request.name = "m.onnx";
    request.compiled = mapping_->bytes();
    request.compiled_keeper = mapping_;
    return device.Load(request);
  }

 private:
  base::UniqueFd fd_;
  std::shared_ptr<base::Mapping> mapping_;
};

TEST(CompiledFormTest, FileThatIsCutBeforeItIsReadIsRefused) {
  const auto device = NewDevice();
  FormInAFile file(FormOfNetwork(*device));
  file.CutAt(0);
  EXPECT_TRUE(absl::IsDataLoss(file.Restore(*device).status()));
}

TEST(CompiledFormTest, FileThatIsCutBehindItsHeadFailsJobsInWords) {
  const auto device = NewDevice();
  auto model = device->Load({Network().Bytes(), "", "m.onnx"});
  ASSERT_TRUE(model.ok()) << model.status();
  FormInAFile file(*FormOf(**model));
  auto restored = file.Restore(*device);
  ASSERT_TRUE(restored.ok()) << restored.status();
  const uint64_t before = (*restored)->held_weights();
  file.CutAt(0);

  const absl::Status first = (*restored)->Finish();
  const absl::Status second = (*restored)->Finish();

  EXPECT_TRUE(absl::IsDataLoss(first)) << first;
  EXPECT_THAT(std::string(first.message()), ::testing::HasSubstr("truncated"));
  EXPECT_EQ(second, first);
  EXPECT_EQ((*restored)->held_weights(), before);
}

TEST(CompiledFormTest, BatchBeyondTheLimitIsRefused) {
  const auto device = NewDevice();
  const Form form = FormOfNetwork(*device);
  // Behind the size of the head, the form's number and two texts.
  constexpr size_t kBatch = 8 + 4 + 8 + 8;
  const uint32_t batch = 1025;
  std::memcpy(form.bytes->data() + kBatch, &batch, sizeof batch);
  EXPECT_TRUE(absl::IsDataLoss(Restore(*device, form).status()));
}

TEST(CompilerTest, NamesFormLibraryCpuAndSoc) {
  const auto a = *OpenSoftDevice({.kind = "soft", .soc = "rk3588"});
  const auto b = *OpenSoftDevice({.kind = "soft", .soc = "rk3566"});
  EXPECT_THAT(a->info().compiler, ::testing::HasSubstr("form "));
  EXPECT_THAT(a->info().compiler, ::testing::HasSubstr("oneDNN "));
  EXPECT_THAT(a->info().compiler, ::testing::HasSubstr(", rk3588"));
  EXPECT_NE(a->info().compiler, b->info().compiler);
}

}  // namespace
}  // namespace rknnd::soft
