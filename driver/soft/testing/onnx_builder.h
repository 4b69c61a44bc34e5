// Small ONNX models written in a test's own words.

#ifndef DRIVER_SOFT_TESTING_ONNX_BUILDER_H_
#define DRIVER_SOFT_TESTING_ONNX_BUILDER_H_

#include <onnx/onnx_pb.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rknnd::soft::testing {

using Dims = std::vector<int64_t>;

// Attributes go to the node added last.
class OnnxBuilder {
 public:
  OnnxBuilder();

  OnnxBuilder& Input(const std::string& name, const Dims& dims,
                     int32_t type = onnx::TensorProto::FLOAT);
  OnnxBuilder& Output(const std::string& name, const Dims& dims,
                      int32_t type = onnx::TensorProto::FLOAT);
  OnnxBuilder& Node(const std::string& type,
                    const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs,
                    const std::string& name = "",
                    const std::string& domain = "");
  OnnxBuilder& Ints(const std::string& name, const Dims& values);
  OnnxBuilder& Int(const std::string& name, int64_t value);
  OnnxBuilder& Float(const std::string& name, float value);
  OnnxBuilder& Floats(const std::string& initializer, const Dims& dims,
                      const std::vector<float>& values);
  OnnxBuilder& Int64s(const std::string& initializer, const Dims& dims,
                      const std::vector<int64_t>& values);
  OnnxBuilder& Metadata(const std::string& key, const std::string& value);
  OnnxBuilder& Opset(int64_t version, const std::string& domain = "");

  [[nodiscard]] onnx::ModelProto& proto() { return model_; }
  [[nodiscard]] std::vector<std::byte> Bytes() const;

 private:
  onnx::AttributeProto* Attribute(const std::string& name);

  onnx::ModelProto model_;
};

}  // namespace rknnd::soft::testing

#endif  // DRIVER_SOFT_TESTING_ONNX_BUILDER_H_
