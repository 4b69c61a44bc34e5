// Short descriptions that one side sends the other: of a matrix product, of a
// model's custom operators, and the options' lines about them. The first byte
// chooses. Whatever the bytes, the reader answers with what it writes back as
// it was, or with a reason.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/values/model_options.h"
#include "driver/custom/custom_model.h"
#include "driver/matmul/matmul_layout.h"
#include "driver/matmul/matmul_spec.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void ReadProduct(std::span<const std::byte> bytes) {
  namespace matmul = rknnd::matmul;
  const auto spec = matmul::Read(bytes);
  if (!spec.ok()) return Require(!spec.error().message.empty());
  const std::vector<std::byte> written = matmul::Write(*spec);
  Require(
      std::equal(written.begin(), written.end(), bytes.begin(), bytes.end()));
  for (const char* soc : {"rk3588", "rk3576", "rk3562", "rk3566", "rv1106"}) {
    const auto checked = matmul::Check(*spec, soc);
    if (!checked.ok()) {
      Require(!checked.error().message.empty());
      continue;
    }
    const matmul::Blocks blocks = matmul::BlocksOf(spec->type, soc);
    for (const matmul::Shape& shape : spec->shapes) {
      const matmul::Forms forms = matmul::FormsOf(*spec, shape, blocks);
      Require(forms.a.bytes != 0 && forms.b.bytes != 0 && forms.c.bytes != 0);
      const matmul::PlacesOfB places(spec->b_layout, shape, blocks);
      const int64_t last = places.Of(shape.k - 1, shape.n - 1);
      const auto bits = rknnd::matmul::BitsOf(forms.b.element);
      Require(last >= 0 &&
              static_cast<uint64_t>(last) * bits / 8 < forms.b.bytes);
    }
  }
}

void ReadOperators(std::string_view bytes) {
  namespace custom = rknnd::custom;
  const auto model = custom::Read(bytes);
  if (!model.ok()) return Require(!model.error().message.empty());
  Require(model->parts.size() == model->operators.size() + 1);
  // A flag may have been any number.
  Require(custom::Write(*model).size() == bytes.size());
}

void ReadOptions(std::string_view text) {
  const auto split = rknnd::base::SplitModelOptions(text);
  if (!split.ok()) return Require(!split.error().message.empty());
  Require(split->own.size() <= text.size());
  if (!split->custom) return;
  const std::string again =
      rknnd::base::WithCustomOperators("", *split->custom);
  const auto back = rknnd::base::SplitModelOptions(again);
  Require(back.ok() && back->custom.has_value() &&
          back->custom->part == split->custom->part);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const uint8_t> rest(data + 1, size - 1);
  const std::string_view text(reinterpret_cast<const char*>(rest.data()),
                              rest.size());
  switch (data[0] % 3) {
    case 0:
      ReadProduct(std::as_bytes(rest));
      break;
    case 1:
      ReadOperators(text);
      break;
    default:
      ReadOptions(text);
      break;
  }
  return 0;
}
