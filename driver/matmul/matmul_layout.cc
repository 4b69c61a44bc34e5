#include "driver/matmul/matmul_layout.h"

#include <cstring>
#include <utility>

namespace rknnd::matmul {
namespace {

uint32_t BlocksIn(uint32_t size, uint32_t block) {
  return (size + block - 1) / block;
}

Form Made(std::vector<uint32_t> dims, Element element) {
  Form form;
  form.dims = std::move(dims);
  form.element = element;
  uint64_t bits = BitsOf(element);
  for (const uint32_t dim : form.dims) bits *= dim;
  form.bytes = bits / 8;
  return form;
}

// By what B is multiplied as: of two types the one that C's goes with.
Blocks BlocksOfB(const Elements& elements, const std::string& soc) {
  const bool sums = elements.c == Element::kInt32 ||
                    elements.c == Element::kInt8 ||
                    (elements.a == elements.b && elements.a == Element::kInt8);
  Blocks blocks;
  blocks.b_k = 32;
  if (soc == "rk3566" || soc == "rk3568") {
    blocks.b_n = sums ? 16 : 8;
    if (!sums) blocks.b_k = 16;
  } else if (soc == "rk3562") {
    blocks.b_n = sums ? 16 : 8;
  } else if (elements.a == Element::kInt4) {
    blocks.b_n = 64;
  } else {
    blocks.b_n = sums ? 32 : 16;
  }
  return blocks;
}

}  // namespace

Blocks BlocksOf(int32_t type, const std::string& soc) {
  const Elements elements = ElementsOf(type);
  Blocks blocks = BlocksOfB(elements, soc);
  // 16 bytes of A, or 8 of it.
  const int32_t bytes = soc == "rk3566" || soc == "rk3568" ? 8 : 16;
  blocks.a_k = bytes * 8 / static_cast<int32_t>(BitsOf(elements.a));
  blocks.c_n = elements.a == Element::kInt4 ? 8 : 4;
  if (soc == "rk3588" || soc == "rk3588s") blocks.piece = 8192;
  if (soc == "rk3576") blocks.piece = 4096;
  return blocks;
}

Forms FormsOf(const Spec& spec, const Shape& shape, const Blocks& blocks) {
  const Elements elements = ElementsOf(spec.type);
  const auto m = static_cast<uint32_t>(shape.m);
  const auto k = static_cast<uint32_t>(shape.k);
  const auto n = static_cast<uint32_t>(shape.n);
  const auto a_k = static_cast<uint32_t>(blocks.a_k);
  const auto b_n = static_cast<uint32_t>(blocks.b_n);
  const auto b_k = static_cast<uint32_t>(blocks.b_k);
  const auto c_n = static_cast<uint32_t>(blocks.c_n);
  Forms forms;
  if (spec.native_ac) {
    forms.a = Made({BlocksIn(k, a_k), m, a_k}, elements.a);
    forms.c = Made({BlocksIn(n, c_n), m, c_n}, elements.c);
  } else {
    forms.a = Made({m, k}, elements.a);
    forms.c = Made({m, n}, elements.c);
  }
  switch (spec.b_layout) {
    case Layout::kNormal:
      forms.b = Made({k, n}, elements.b);
      break;
    case Layout::kTransposed:
      forms.b = Made({n, k}, elements.b);
      break;
    case Layout::kNative:
      forms.b =
          Made({BlocksIn(n, b_n), BlocksIn(k, b_k), b_n, b_k}, elements.b);
      break;
  }
  return forms;
}

void MakeNative(int32_t type, const Shape& shape, const Blocks& blocks,
                const std::byte* from, std::byte* to) {
  const PlacesOfB places(Layout::kNative, shape, blocks);
  const uint32_t bits = BitsOf(ElementsOf(type).b);
  Spec spec;
  spec.type = type;
  spec.b_layout = Layout::kNative;
  std::memset(to, 0, static_cast<size_t>(FormsOf(spec, shape, blocks).b.bytes));
  for (int64_t k = 0; k < shape.k; ++k) {
    for (int64_t n = 0; n < shape.n; ++n) {
      const int64_t at = k * shape.n + n;
      const int64_t place = places.Of(k, n);
      if (bits == 4) {
        const auto pair = static_cast<unsigned>(from[at / 2]);
        const unsigned number = at % 2 == 0 ? pair & 0xf : pair >> 4;
        to[place / 2] |=
            static_cast<std::byte>(place % 2 == 0 ? number : number << 4);
      } else if (bits == 8) {
        to[place] = from[at];
      } else {
        std::memcpy(to + place * 2, from + at * 2, 2);
      }
    }
  }
}

}  // namespace rknnd::matmul
