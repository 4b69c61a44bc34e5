// Models with inputs and their right answers: made here, small and exactly
// computable, or found in the folder of shared material.

#ifndef TESTS_INTEGRATION_HARNESS_MODELS_H_
#define TESTS_INTEGRATION_HARNESS_MODELS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace rknnd::integration {

struct TestModel {
  std::string path;
  // Raw tensors, NCHW.
  std::vector<std::string> inputs, outputs;

  // " FILE FILE": behind a command.
  [[nodiscard]] std::string input_list() const;
  [[nodiscard]] std::string output_list() const;
};

// Each writes its files into `folder`.

// y = Relu(x) on 16 numbers.
TestModel MakeRelu(const std::string& folder);
// A 3x3 convolution with Relu on a small picture of three channels.
TestModel MakeConvNet(const std::string& folder);
// The same net with another bias: another model.
TestModel MakeOtherConvNet(const std::string& folder);
// The net for a square picture of `side` pixels.
TestModel MakeConvNetOfSide(const std::string& folder, int side);
// One that sees all of a camera's picture, in windows of 4 x 4; one flat output
// of width * height / 4 numbers. Comes without inputs and outputs.
TestModel MakeFrameNet(const std::string& folder, int width, int height);
// The net with open sides that lists these; an input and an output for each.
TestModel MakeListedConvNet(const std::string& folder,
                            const std::vector<int>& sides);
// The net with option rknn_batch_size, and so many pictures at once.
TestModel MakeBatchConvNet(const std::string& folder, int batch);
// A job of some hundred milliseconds, or a part of that: a chain of so many
// matrix products.
TestModel MakeSlow(const std::string& folder, size_t products = 80);
// A file of some kilobytes that keeps a core for minutes, each of its layers
// for about a second. Comes without outputs.
TestModel MakeEndless(const std::string& folder);
// Of so many layers that each compute next to nothing.
TestModel MakeTinyLayers(const std::string& folder, size_t layers);
// So many convolutions, of some hundred microseconds each, that turn the
// channels by one: several cores share each of them.
TestModel MakeConvChain(const std::string& folder, size_t convolutions = 4);
// A network for a picture of `side` pixels with 432 KiB of weights, the same
// for every side; without them it has their names and dims alone.
TestModel MakeResolution(const std::string& folder, size_t side,
                         bool with_weights = true);
// The same but for one of its weights.
TestModel MakeOtherResolution(const std::string& folder, size_t side);
// One convolution, 'huge', of three groups and a large kernel whose weights are
// an input: known before, our own kernel would compute it; so oneDNN's
// reference loop does. Not to be run: it takes a minute. Comes without inputs
// and outputs.
TestModel MakeHugeKernel(const std::string& folder);
// A small one with weights and intermediate tensors.
TestModel MakeChain(const std::string& folder);
// A model that takes its time to load: tens of megabytes of weights.
TestModel MakeHeavy(const std::string& folder);
// The sums of a convolution as int32.
TestModel MakeIntegers(const std::string& folder);
// One node 'odd_one' of an operator of the standard that the software NPU
// lacks, or of a domain of its own.
TestModel MakeLackingOperator(const std::string& folder);
TestModel MakeCustomOperator(const std::string& folder);

// A model of the shared folder with one of its sets; nothing when it is not
// there.
std::optional<TestModel> SharedModel(const std::string& name, int set);
// The folder itself, "" when it is not there.
std::string SharedFolder();

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_MODELS_H_
