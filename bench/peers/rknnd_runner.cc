// See rknnd_runner.h.

#include "bench/peers/rknnd_runner.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "client/image/file.h"
#include "client/include/rknnd.hpp"

namespace rknnd::bench {
namespace {

rknn_tensor_type TypeOf(const std::string& name) {
  if (name == "float32") return RKNN_TENSOR_FLOAT32;
  if (name == "float16") return RKNN_TENSOR_FLOAT16;
  if (name == "int32") return RKNN_TENSOR_INT32;
  if (name == "int64") return RKNN_TENSOR_INT64;
  if (name == "uint8") return RKNN_TENSOR_UINT8;
  if (name == "int8") return RKNN_TENSOR_INT8;
  throw Error(RKNN_ERR_INPUT_INVALID, "inputs of type '" + name + "'");
}

// Thread: one. Throws Error.
class Runner {
 public:
  explicit Runner(const std::vector<std::string>& arguments);

  // Microseconds of each of `count` runs, from the program's inputs to its
  // outputs as floats.
  std::vector<double> Run(int count);
  // How many outputs.
  size_t WriteOutputs(const std::string& folder);

 private:
  void AddInput(const std::string& type, const std::string& shape,
                const std::string& file);
  void RunOnce();

  Context context_;
  std::vector<std::vector<std::byte>> bytes_;
  std::vector<rknn_input> inputs_;
  std::vector<std::vector<float>> floats_;
  std::vector<rknn_output> outputs_;
};

Runner::Runner(const std::vector<std::string>& arguments)
    : context_(Context::FromFile(arguments.at(0))) {
  context_.SetCoreMask(arguments.at(1) == "2" ? RKNN_NPU_CORE_0_1
                                              : RKNN_NPU_CORE_0);
  for (size_t i = 2; i + 3 < arguments.size(); i += 4) {
    AddInput(arguments[i + 1], arguments[i + 2], arguments[i + 3]);
  }
  for (size_t i = 0; i < context_.outputs().size(); ++i) {
    floats_.emplace_back(context_.outputs()[i].elements());
    rknn_output output = {};
    output.want_float = 1;
    output.is_prealloc = 1;
    output.index = static_cast<uint32_t>(i);
    output.buf = floats_.back().data();
    output.size = static_cast<uint32_t>(floats_.back().size() * sizeof(float));
    outputs_.push_back(output);
  }
}

// As the file has its axes, which is what the peer gets: a network written for
// channels last has a port of that shape, any other takes channels first.
rknn_tensor_format FormatOf(const Tensor& port, const std::string& shape) {
  if (std::count(shape.begin(), shape.end(), 'x') != 3) {
    return RKNN_TENSOR_UNDEFINED;
  }
  return port.format() == RKNN_TENSOR_NHWC && ShapeText(port.shape()) == shape
             ? RKNN_TENSOR_NHWC
             : RKNN_TENSOR_NCHW;
}

void Runner::AddInput(const std::string& type, const std::string& shape,
                      const std::string& file) {
  auto bytes = client::ReadFile(file);
  if (!bytes) throw Error(RKNN_ERR_INPUT_INVALID, bytes.error().message);
  bytes_.push_back(*std::move(bytes));
  rknn_input input = {};
  input.index = static_cast<uint32_t>(inputs_.size());
  input.buf = bytes_.back().data();
  input.size = static_cast<uint32_t>(bytes_.back().size());
  input.type = TypeOf(type);
  input.fmt = FormatOf(context_.inputs().at(inputs_.size()), shape);
  inputs_.push_back(input);
}

void Runner::RunOnce() {
  detail::Check(rknn_inputs_set(context_.handle(),
                                static_cast<uint32_t>(inputs_.size()),
                                inputs_.data()));
  detail::Check(rknn_run(context_.handle(), nullptr));
  detail::Check(rknn_outputs_get(context_.handle(),
                                 static_cast<uint32_t>(outputs_.size()),
                                 outputs_.data(), nullptr));
}

std::vector<double> Runner::Run(int count) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const auto begin = Clock::now();
    RunOnce();
    times.push_back(
        std::chrono::duration<double, std::micro>(Clock::now() - begin)
            .count());
  }
  return times;
}

size_t Runner::WriteOutputs(const std::string& folder) {
  RunOnce();
  for (size_t i = 0; i < floats_.size(); ++i) {
    std::ofstream file(folder + "/" + std::to_string(i) + ".bin",
                       std::ios::binary);
    file.write(reinterpret_cast<const char*>(floats_[i].data()),
               static_cast<std::streamsize>(floats_[i].size() * sizeof(float)));
  }
  return floats_.size();
}

void Say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

}  // namespace

Side StartRknnd(const ModelSet& model, const Level& level, int threads) {
  base::ChildProcess::Options options;
  options.arguments = SideArguments(model, threads);
  options.arguments.insert(options.arguments.begin(),
                           {"/proc/self/exe", kRunnerArgument});
  options.environment = {{"RKNND_TARGET", "local:"}};
  if (level.older != nullptr) {
    options.environment.emplace_back("ONEDNN_MAX_CPU_ISA", level.older->onednn);
  }
  options.dies_with_parent = true;
  return Side("rknnd", options);
}

int RunRknnd(const std::vector<std::string>& arguments) {
  try {
    Runner runner(arguments);
    Say("ready");
    for (std::string verb, argument; std::cin >> verb >> argument;) {
      const nlohmann::json answer =
          verb == "run" ? nlohmann::json(runner.Run(std::stoi(argument)))
                        : nlohmann::json(runner.WriteOutputs(argument));
      Say(answer.dump());
    }
    return 0;
  } catch (const std::exception& error) {
    Say(error.what());
    return 1;
  }
}

}  // namespace rknnd::bench
