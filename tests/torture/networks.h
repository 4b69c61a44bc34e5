// Networks whose answers can be told without the NPU, and the frames that are
// put through them: a frame is a number, its input is made of that number, and
// its answer is that input plus constants. Whole numbers: an answer is right or
// wrong, and it tells which frame it belongs to.

#ifndef TESTS_TORTURE_NETWORKS_H_
#define TESTS_TORTURE_NETWORKS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rknnd::torture {

// y = x + c1 + c2 + ... of 1 x elements numbers of 32 bits. Another salt gives
// other constants, and so another model.
struct Network {
  uint32_t salt = 0;
  uint32_t elements = 16;
  uint32_t layers = 1;

  [[nodiscard]] size_t bytes() const { return elements * sizeof(int32_t); }
};

// Of layer `layer`, for element `i`.
int32_t ConstantOf(const Network& network, uint32_t layer, uint32_t i);

// A file that programs are given, and the network in it.
struct NetworkFile {
  std::string path;
  Network network;
};
// "PATH,SALT,ELEMENTS,LAYERS", as an argument of a program; throws
// std::runtime_error for another text.
std::string ToArgument(const NetworkFile& file);
NetworkFile FromArgument(const std::string& text);

// The checker's own arithmetic. Thread: any, it does not change.
class Arithmetic {
 public:
  explicit Arithmetic(const Network& network);

  void FillInput(uint64_t frame, int32_t* input) const;
  // What stands in an output that nobody has written since.
  void Poison(int32_t* output) const;
  // "" for the answer of this frame; else what is wrong with it.
  [[nodiscard]] std::string Differs(uint64_t frame,
                                    const int32_t* output) const;

 private:
  [[nodiscard]] int32_t InputAt(uint64_t frame, size_t i) const;

  const Network network_;
  std::vector<int32_t> offsets_;  // the constants of all layers together
};

}  // namespace rknnd::torture

#endif  // TESTS_TORTURE_NETWORKS_H_
