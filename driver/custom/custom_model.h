// What a program has to know of a model whose operators it computes itself
// (rknn_register_custom_ops): the operators, the parts into which they cut the
// model, and the tensors between all of them.
//
//   part 0 --> operator 0 --> part 1 --> operator 1 --> ... --> last part
//
// A part is loaded like a model and run like one; its inputs and outputs are
// some of the model's own, in their form, and tensors in between, dense and in
// the model's own order of axes. A part may have nothing to do.
//
// A device writes it, the client library reads it. Thread: any. No abseil.

#ifndef DRIVER_CUSTOM_CUSTOM_MODEL_H_
#define DRIVER_CUSTOM_CUSTOM_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/values/expected.h"

namespace rknnd::custom {

// Types are numbers of rknn_tensor_type.
struct Tensor {
  std::string name;
  uint32_t type = 0;
  std::vector<uint32_t> dims;
};

struct Attribute {
  std::string name;
  uint32_t type = 0;  // uint8: text
  uint32_t count = 0;
  std::vector<std::byte> data;
};

struct Operator {
  std::string name, type;
  std::vector<uint32_t> inputs, outputs;  // of Model::tensors
  std::vector<Attribute> attributes;
  // A device would compute it, too.
  bool is_known = false;
};

// What is bound to an input or output of a part.
struct Port {
  bool between = false;  // one of Model::tensors; else one of the model's own
  uint32_t index = 0;
};
struct Part {
  std::vector<Port> inputs, outputs;
};

struct Model {
  std::vector<Tensor> tensors;
  std::vector<Operator> operators;
  std::vector<Part> parts;  // one more than operators
};

std::string Write(const Model& model);
// What it reads came from a daemon: every index and size is checked.
// kDataLoss: it is damaged.
base::Expected<Model> Read(std::string_view bytes);

}  // namespace rknnd::custom

#endif  // DRIVER_CUSTOM_CUSTOM_MODEL_H_
