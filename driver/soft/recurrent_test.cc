// LSTM, GRU and RNN on the device against ONNX's text, step by step in doubles:
// all directions, layouts, lengths, states, peepholes and functions.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "driver/soft/kernels/testing/one_node.h"
#include "driver/soft/soft_device.h"
#include "driver/soft/testing/onnx_builder.h"
#include "driver/soft/testing/run_model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using testing::Dims;
using ::testing::HasSubstr;

struct CellCase {
  std::string type = "LSTM";
  std::string direction = "forward";
  int64_t steps = 5, batch = 3, values = 7, hidden = 9;
  int64_t layout = 0;
  bool has_lengths = false, has_states = false, has_peepholes = false,
       before_reset = false, input_forget = false;
  float clip = 0.0F;
  bool has_bias = true;

  [[nodiscard]] int64_t gates() const {
    return type == "LSTM" ? 4 : type == "GRU" ? 3 : 1;
  }
  [[nodiscard]] int64_t directions() const {
    return direction == "bidirectional" ? 2 : 1;
  }
};

struct CellNumbers {
  std::vector<float> x, w, r, b, h0, c0, p;
  std::vector<int32_t> lengths;
};

CellNumbers CellNumbersOf(const CellCase& c) {
  auto noise = [seed = 1U](int64_t count) mutable {
    return testing::Noise(count, seed++);
  };
  const int64_t d = c.directions(), rows = c.gates() * c.hidden;
  CellNumbers n;
  n.x = noise(c.steps * c.batch * c.values);
  n.w = noise(d * rows * c.values);
  n.r = noise(d * rows * c.hidden);
  n.b = noise(d * rows * 2);
  if (!c.has_bias) std::fill(n.b.begin(), n.b.end(), 0.0F);
  n.h0 = noise(d * c.batch * c.hidden);
  n.c0 = noise(d * c.batch * c.hidden);
  n.p = noise(d * 3 * c.hidden);
  for (int64_t i = 0; i < c.batch; ++i) {
    n.lengths.push_back(static_cast<int32_t>(
        c.has_lengths ? (c.steps - i + c.steps) % (c.steps + 1) : c.steps));
  }
  return n;
}

double SigmoidOf(double x) { return 1.0 / (1.0 + std::exp(-x)); }

struct CellAnswer {
  std::vector<float> y, h, c;
};

// As ONNX's text has it, one number after the other.
CellAnswer CellReference(const CellCase& k, const CellNumbers& n) {
  const int64_t d_count = k.directions(), h = k.hidden, rows = k.gates() * h;
  const auto at_state = [&](int64_t d, int64_t b) {
    return static_cast<size_t>(
        (k.layout == 1 ? b * d_count + d : d * k.batch + b) * h);
  };
  CellAnswer answer;
  answer.y.assign(static_cast<size_t>(k.steps * d_count * k.batch * h), 0.0F);
  answer.h.resize(n.h0.size());
  answer.c.resize(n.h0.size());
  const auto bounded = [&](double x) {
    return k.clip > 0.0F ? std::clamp<double>(x, -k.clip, k.clip) : x;
  };
  for (int64_t d = 0; d < d_count; ++d) {
    for (int64_t b = 0; b < k.batch; ++b) {
      std::vector<double> state(static_cast<size_t>(h)),
          cell(static_cast<size_t>(h));
      for (size_t i = 0; i < state.size() && k.has_states; ++i) {
        state[i] = n.h0[at_state(d, b) + i];
        cell[i] = n.c0[at_state(d, b) + i];
      }
      const int64_t length = n.lengths[static_cast<size_t>(b)];
      for (int64_t step = 0; step < length; ++step) {
        const bool reversed = d == 1 || k.direction == "reverse";
        const int64_t t = reversed ? length - 1 - step : step;
        const int64_t row = k.layout == 1 ? b * k.steps + t : t * k.batch + b;
        const auto of_input = [&](int64_t g) {
          double sum = n.b[static_cast<size_t>(d * 2 * rows + g)];
          for (int64_t v = 0; v < k.values; ++v) {
            sum += double{n.x[static_cast<size_t>(row * k.values + v)]} *
                   n.w[static_cast<size_t>((d * rows + g) * k.values + v)];
          }
          return sum;
        };
        const auto of_state = [&](int64_t g, const std::vector<double>& from) {
          double sum = n.b[static_cast<size_t>((d * 2 + 1) * rows + g)];
          for (int64_t v = 0; v < h; ++v) {
            sum += from[static_cast<size_t>(v)] *
                   n.r[static_cast<size_t>((d * rows + g) * h + v)];
          }
          return sum;
        };
        const auto peephole = [&](int64_t which, int64_t i) {
          return k.has_peepholes
                     ? double{n.p[static_cast<size_t>((d * 3 + which) * h + i)]}
                     : 0.0;
        };
        std::vector<double> next = state, reset(state.size());
        for (int64_t i = 0; i < h && k.type == "GRU"; ++i) {
          const auto at = static_cast<size_t>(i);
          reset[at] =
              SigmoidOf(bounded(of_input(h + i) + of_state(h + i, state)));
        }
        std::vector<double> given(state.size());
        for (size_t i = 0; i < state.size(); ++i)
          given[i] = reset[i] * state[i];
        for (int64_t i = 0; i < h; ++i) {
          const auto at = static_cast<size_t>(i);
          const auto gate = [&](int64_t g) {
            return of_input(g * h + i) + of_state(g * h + i, state);
          };
          if (k.type == "RNN") {
            next[at] = std::tanh(bounded(gate(0)));
          } else if (k.type == "GRU") {
            const double z = SigmoidOf(bounded(gate(0)));
            const double candidate = std::tanh(
                bounded(of_input(2 * h + i) +
                        (k.before_reset ? reset[at] * of_state(2 * h + i, state)
                                        : of_state(2 * h + i, given))));
            next[at] = (1.0 - z) * candidate + z * state[at];
          } else {
            const double in =
                SigmoidOf(bounded(gate(0) + peephole(0, i) * cell[at]));
            double forget =
                SigmoidOf(bounded(gate(2) + peephole(2, i) * cell[at]));
            if (k.input_forget) forget = 1.0 - in;
            cell[at] = forget * cell[at] + in * std::tanh(bounded(gate(3)));
            const double out =
                SigmoidOf(bounded(gate(1) + peephole(1, i) * cell[at]));
            next[at] = out * std::tanh(bounded(cell[at]));
          }
        }
        state = next;
        for (int64_t i = 0; i < h; ++i) {
          const int64_t to = k.layout == 1 ? (b * k.steps + t) * d_count + d
                                           : (t * d_count + d) * k.batch + b;
          answer.y[static_cast<size_t>(to * h + i)] =
              static_cast<float>(state[static_cast<size_t>(i)]);
        }
      }
      for (size_t i = 0; i < state.size(); ++i) {
        answer.h[at_state(d, b) + i] = static_cast<float>(state[i]);
        answer.c[at_state(d, b) + i] = static_cast<float>(cell[i]);
      }
    }
  }
  return answer;
}

testing::OnnxBuilder CellNetwork(const CellCase& k, const CellNumbers& n) {
  const int64_t d = k.directions(), h = k.hidden, rows = k.gates() * h;
  const bool turned = k.layout == 1;
  testing::OnnxBuilder builder;
  const Dims x = turned ? Dims{k.batch, k.steps, k.values}
                        : Dims{k.steps, k.batch, k.values};
  const Dims state = turned ? Dims{k.batch, d, h} : Dims{d, k.batch, h};
  const Dims y =
      turned ? Dims{k.batch, k.steps, d, h} : Dims{k.steps, d, k.batch, h};
  builder.Input("x", x);
  builder.Floats("w", {d, rows, k.values}, n.w);
  builder.Floats("r", {d, rows, h}, n.r);
  builder.Floats("b", {d, 2 * rows}, n.b);
  builder.Floats("h0", state, n.h0).Floats("c0", state, n.c0);
  builder.Floats("p", {d, 3 * h}, n.p);
  std::vector<std::string> inputs = {
      "x", "w", "r", k.has_bias ? "b" : "", "", k.has_states ? "h0" : ""};
  if (k.has_lengths) {
    builder.Input("lengths", {k.batch}, onnx::TensorProto::INT32);
    inputs[4] = "lengths";
  }
  std::vector<std::string> outputs = {"y", "yh"};
  if (k.type == "LSTM") {
    inputs.push_back(k.has_states ? "c0" : "");
    inputs.push_back(k.has_peepholes ? "p" : "");
    outputs.push_back("yc");
  }
  builder.Node(k.type, inputs, outputs, "it");
  builder.Int("hidden_size", h).Int("layout", k.layout);
  builder.Int("linear_before_reset", k.before_reset ? 1 : 0);
  builder.Int("input_forget", k.input_forget ? 1 : 0);
  if (k.clip > 0.0F) builder.Float("clip", k.clip);
  auto* node = builder.proto().mutable_graph()->mutable_node(0);
  auto* direction = node->add_attribute();
  direction->set_name("direction");
  direction->set_type(onnx::AttributeProto::STRING);
  direction->set_s(k.direction);
  builder.Output("y", y).Output("yh", state);
  if (k.type == "LSTM") builder.Output("yc", state);
  return builder;
}

class RecurrentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device_ = *OpenSoftDevice({.kind = "soft", .soc = "rk3588"});
    device_->EnterWorker();
  }
  // Null, with a failure, where it cannot be loaded.
  std::unique_ptr<testing::BoundModel> Bind(const CellCase& k,
                                            const CellNumbers& n) {
    auto model = device_->Load({CellNetwork(k, n).Bytes(), "", "m.onnx"});
    EXPECT_TRUE(model.ok()) << model.status();
    if (!model.ok()) return nullptr;
    model_ = *std::move(model);
    const driver::ProgramInfo& info = model_->info().programs[0];
    std::vector<driver::TensorFormat> inputs, outputs;
    for (size_t i = 0; i < info.inputs.size(); ++i) {
      inputs.push_back(testing::PlainFormat(
          info.inputs[i],
          i == 0 ? driver::TensorType::kFloat32 : driver::TensorType::kInt32));
    }
    for (const driver::TensorAttr& attr : info.outputs) {
      outputs.push_back(
          testing::PlainFormat(attr, driver::TensorType::kFloat32));
    }
    auto bound = testing::BoundModel::Make(*device_, *model_, inputs, outputs);
    EXPECT_TRUE(bound.ok()) << bound.status();
    if (!bound.ok()) return nullptr;
    std::memcpy((*bound)->input(0).data(), n.x.data(),
                n.x.size() * sizeof(float));
    if (k.has_lengths) {
      std::memcpy((*bound)->input(1).data(), n.lengths.data(),
                  n.lengths.size() * sizeof(int32_t));
    }
    return *std::move(bound);
  }
  void ExpectRight(const CellCase& k) {
    SCOPED_TRACE(k.type + " " + k.direction);
    const CellNumbers n = CellNumbersOf(k);
    const auto bound = Bind(k, n);
    ASSERT_NE(bound, nullptr);
    const driver::JobResult result = bound->Run();
    ASSERT_TRUE(result.status.ok()) << result.status;
    const CellAnswer wanted = CellReference(k, n);
    ExpectNear(*bound, 0, wanted.y);
    ExpectNear(*bound, 1, wanted.h);
    if (k.type == "LSTM") ExpectNear(*bound, 2, wanted.c);
  }
  static void ExpectNear(testing::BoundModel& bound, size_t output,
                         const std::vector<float>& wanted) {
    const auto* have =
        reinterpret_cast<const float*>(bound.output(output).data());
    for (size_t i = 0; i < wanted.size(); ++i) {
      ASSERT_NEAR(have[i], wanted[i], 1e-5) << output << " at " << i;
    }
  }

  std::unique_ptr<driver::Device> device_;
  std::unique_ptr<driver::Model> model_;
};

TEST_F(RecurrentTest, EveryDirectionAndLayoutIsRight) {
  for (const char* type : {"LSTM", "GRU", "RNN"}) {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      for (const int64_t layout : {0, 1}) {
        CellCase k;
        k.type = type;
        k.direction = direction;
        k.layout = layout;
        ExpectRight(k);
        k.has_lengths = k.has_states = true;
        ExpectRight(k);
      }
    }
  }
}

TEST_F(RecurrentTest, WhatANodeMayAskForIsDone) {
  CellCase k;
  k.has_peepholes = k.has_states = true;
  ExpectRight(k);
  k.clip = 0.3F;
  ExpectRight(k);
  k.has_peepholes = false;
  k.input_forget = true;
  ExpectRight(k);
  CellCase gru;
  gru.type = "GRU";
  gru.before_reset = true;
  ExpectRight(gru);
  gru.direction = "bidirectional";
  gru.has_lengths = true;
  gru.clip = 0.5F;
  ExpectRight(gru);
  gru.before_reset = false;
  gru.has_bias = false;
  ExpectRight(gru);
}

TEST_F(RecurrentTest, SizesThatVectorsDoNotDivideAreRight) {
  for (const int64_t hidden : {1, 8, 31, 33, 64}) {
    CellCase k;
    k.hidden = hidden;
    k.batch = 1;
    ExpectRight(k);
    k.batch = 17;
    k.type = "GRU";
    ExpectRight(k);
  }
}

TEST_F(RecurrentTest, GangsGiveTheBitsOfOneCore) {
  CellCase k;
  k.direction = "bidirectional";
  k.steps = 20;
  k.batch = 5;
  k.hidden = 96;
  k.has_lengths = true;
  const CellNumbers n = CellNumbersOf(k);
  const auto bound = Bind(k, n);
  ASSERT_NE(bound, nullptr);
  ASSERT_TRUE(bound->Run().status.ok());
  const size_t size = CellReference(k, n).y.size() * sizeof(float);
  const std::vector<std::byte> alone(bound->output(0).data(),
                                     bound->output(0).data() + size);
  for (const uint32_t mask : {3U, 7U}) {
    std::memset(bound->output(0).data(), 0x55, size);
    ASSERT_TRUE(bound->RunGang(mask).status.ok());
    EXPECT_EQ(std::memcmp(bound->output(0).data(), alone.data(), size), 0)
        << "cores " << mask;
  }
}

TEST_F(RecurrentTest, ALengthOutOfRangeFailsTheRunByName) {
  CellCase k;
  k.has_lengths = true;
  CellNumbers n = CellNumbersOf(k);
  for (const int32_t length : {-1, 6}) {
    n.lengths[1] = length;
    const auto bound = Bind(k, n);
    ASSERT_NE(bound, nullptr);
    EXPECT_THAT(
        std::string(bound->Run().status.message()),
        HasSubstr("LSTM 'it': a sequence length is not within 0 and 5"));
  }
}

TEST_F(RecurrentTest, WhatDoesNotFitIsRefusedByName) {
  const auto refused = [&](const testing::OnnxBuilder& builder) {
    const auto model = device_->Load({builder.Bytes(), "", "m.onnx"});
    return std::string(model.status().message());
  };
  const CellCase k;
  const CellNumbers n = CellNumbersOf(k);
  const auto node = [](testing::OnnxBuilder& builder) {
    return builder.proto().mutable_graph()->mutable_node(0);
  };
  testing::OnnxBuilder builder = CellNetwork(k, n);
  node(builder)->set_op_type("GRU");
  EXPECT_THAT(refused(builder), HasSubstr("GRU 'it': has"));
  builder = CellNetwork(k, n);
  node(builder)->set_input(1, "r");
  EXPECT_THAT(refused(builder), HasSubstr("LSTM 'it': input 1 is 1x36x9"));
  builder = CellNetwork(k, n);
  builder.Input("weights", {1, 36, 7});
  node(builder)->set_input(1, "weights");
  EXPECT_THAT(refused(builder),
              HasSubstr("it is the model's input 'weights': make it a "
                        "constant"));
  builder = CellNetwork(k, n);
  auto* functions = node(builder)->add_attribute();
  functions->set_name("activations");
  functions->set_type(onnx::AttributeProto::STRINGS);
  for (int i = 0; i < 3; ++i) functions->add_strings("Sine");
  EXPECT_THAT(refused(builder), HasSubstr("activation 'Sine'"));
}

}  // namespace
}  // namespace rknnd::soft
