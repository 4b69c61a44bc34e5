// See target.h.

#include "driver/rknpu/emulator/fast/target.h"

#include <algorithm>
#include <array>

#include "driver/rknpu/emulator/coefficients.h"
#include "driver/rknpu/emulator/fast/extent.h"

namespace rknnd::rknpu::fast {
namespace {

// Whether places that differ in any walk are different: each step reaches over
// all shorter ones.
bool AreApart(std::array<Walk, 4> walks) {
  std::sort(walks.begin(), walks.end(),
            [](const Walk& a, const Walk& b) { return a.step < b.step; });
  int64_t reach = 0;  // of all before
  for (const Walk& walk : walks) {
    if (walk.count == 1) continue;
    if (walk.step < reach + kAtom) return false;
    reach += walk.step * (int64_t{walk.count} - 1);
  }
  return true;
}

// Whether each operand lies where its result goes: then it is read first.
bool SamePlaces(const OutputSpec& spec) {
  const WriterSpec& writer = spec.writer;
  const ElementWiseSpec& ew = spec.ew;
  return ew.operand == Operand::kPixel && ew.base[0] == writer.base &&
         ew.base[1] ==
             writer.base + static_cast<uint64_t>(writer.surface_step) &&
         ew.pair_step == 2 * writer.surface_step &&
         writer.group_step == writer.group * writer.surface_step &&
         ew.line_step == writer.line_step;
}

}  // namespace

bool FastEngine::Target::Find(const OutputSpec& spec, uint32_t surfaces,
                              uint32_t height, uint32_t width,
                              const Access& access) {
  const WriterSpec& writer = spec.writer;
  // Of the writer's own surfaces, lines and pixels.
  const uint32_t written = spec.by_lines ? surfaces * height : surfaces;
  const std::array<Walk, 4> walks = {
      {{kAtom, writer.width},
       {writer.line_step, writer.height},
       {writer.surface_step, std::min(writer.group, written)},
       {writer.group_step, (written + writer.group - 1) / writer.group}}};
  const Extent target(writer.base, {walks[0], walks[1], walks[2], walks[3]},
                      kAtom);
  out = target.At(writer.base, true, access);
  if (out == nullptr || !AreApart(walks)) return false;
  const ElementWiseSpec& ew = spec.ew;
  if (ew.operand == Operand::kNone) return true;
  const uint32_t lines = ew.operand == Operand::kPixel ? height : 1;
  const int64_t line = ew.operand == Operand::kPixel ? width * kAtom : kAtom;
  for (uint32_t i = 0; i < 2 && i < surfaces; ++i) {
    const Extent source(
        ew.base[i],
        {{ew.pair_step, (surfaces - i + 1) / 2}, {ew.line_step, lines}}, line);
    operand[i] = source.At(ew.base[i], false, access);
    if (operand[i] == nullptr) return false;
    if (source.Meets(target) && !SamePlaces(spec)) return false;
  }
  return true;
}

int64_t FastEngine::Target::OffsetOf(const OutputSpec& spec, uint32_t s,
                                     uint32_t y, uint32_t x) {
  return static_cast<int64_t>(PlaceOf(spec, s, y, x) - spec.writer.base);
}

const std::byte* FastEngine::Target::OperandsOf(const ElementWiseSpec& ew,
                                                uint32_t s, uint32_t y,
                                                uint32_t x) const {
  const int64_t pixel = ew.operand == Operand::kPixel ? int64_t{x} * kAtom : 0;
  return operand[s % 2] + (s / 2) * ew.pair_step + y * ew.line_step + pixel;
}

}  // namespace rknnd::rknpu::fast
