// What tasks touch, with numbers that were worked out by hand from the meaning
// of the registers (docs/rknpu.md).

#include "driver/rknpu/footprint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "driver/rknpu/testing/task_writer.h"

namespace rknnd::rknpu {

bool operator==(const Access& a, const Access& b) {
  return a.address_register == b.address_register && a.writes == b.writes &&
         a.first == b.first && a.end == b.end;
}

void PrintTo(const Access& access, std::ostream* out) {
  *out << (access.writes ? "writes " : "reads ") << std::hex
       << access.address_register << std::dec << ": " << access.first << " to "
       << access.end;
}

namespace {

using ::testing::HasSubstr;
using testing::Registers;
using testing::SmallConvolution;
using testing::TaskWriter;
using ::testing::UnorderedElementsAre;

Access Reads(uint16_t address, int64_t first, int64_t end) {
  return {address, false, first, end};
}
Access Writes(uint16_t address, int64_t first, int64_t end) {
  return {address, true, first, end};
}

absl::StatusOr<std::vector<Access>> TouchedBy(uint32_t mask,
                                              const Registers& registers) {
  TaskWriter writer;
  writer.Node("n").Add(mask, registers, {});
  const std::string bytes = testing::Build(writer.spec());
  const auto file = Read(std::as_bytes(std::span(bytes)));
  if (!file.ok()) return absl::InternalError(file.error().message);
  RegisterValues values(*file);
  const absl::Status status = values.BeginTask(file->tasks[0]);
  if (!status.ok()) return status;
  return FootprintOf(values, mask);
}

std::vector<Access> Touched(uint32_t mask, const Registers& registers) {
  auto accesses = TouchedBy(mask, registers);
  if (!accesses.ok()) {
    ADD_FAILURE() << accesses.status();
    return {};
  }
  return *std::move(accesses);
}

Registers With(Registers registers, const Registers& changes) {
  for (const auto& [number, value] : changes) registers[number] = value;
  return registers;
}

// A flight: 2 surfaces of 3 lines of 5 pixels from one map to another.
Registers Flight() {
  return {{0x400c, 0x1e5},  {0x4010, 0},  {0x4020, 0},
          {0x4024, 240},    {0x4038, 0},  {0x403c, 0x1f001f},
          {0x4050, 0},      {0x4058, 31}, {0x405c, 2U << 16 | 4},
          {0x40c0, 240},    {0x500c, 4},  {0x5010, 2},
          {0x5014, 31},     {0x5018, 0},  {0x501c, 0},
          {0x5020, 0},      {0x5028, 0},  {0x502c, 0},
          {0x5034, 1},      {0x5038, 0},  {0x5040, 0},
          {0x5044, 0x7801}, {0x5048, 0},  {0x504c, 0}};
}

TEST(FootprintTest, AConvolutionReadsFeatureAndWeightsAndWritesItsOutput) {
  EXPECT_THAT(Touched(0xd, SmallConvolution()),
              UnorderedElementsAre(Reads(0x1070, 0, 512), Reads(0x1110, 0, 512),
                                   Writes(0x4020, 0, 1024)));
}

TEST(FootprintTest, FeatureSurfacesMayLieOneBeforeTheOther) {
  // Three lines only: the distance between surfaces, in atoms, is
  // SURF_STRIDE + LINE_STRIDE = -8 + 32 = 24, and with -40 it is -8.
  const Registers surfaces =
      With(SmallConvolution(),
           {{0x1020, 8U << 16 | 3}, {0x1024, 48}, {0x1080, 0x0ffffff8}});

  EXPECT_THAT(Touched(0xd, surfaces),
              ::testing::Contains(Reads(0x1070, 0, 2 * 384 + 384)));
  EXPECT_THAT(Touched(0xd, With(surfaces, {{0x1080, 0x0fffffd8}})),
              ::testing::Contains(Reads(0x1070, -2 * 128, 384)));
}

TEST(FootprintTest, LinesOfAWiderMapAreWholeLinesApart) {
  // GROUP_LINE_OFF: lines are 16 LINE_STRIDE apart, surfaces 16 (SURF + W).
  const Registers registers = With(SmallConvolution(), {{0x100c, 0x20000000},
                                                        {0x107c, 10},
                                                        {0x1080, 32},
                                                        {0x1024, 32},
                                                        {0x1030, 1024}});

  EXPECT_THAT(
      Touched(0xd, registers),
      ::testing::IsSupersetOf({Reads(0x1070, 0, 16 * 40 + 3 * 160 + 8 * 16),
                               Reads(0x1110, 0, 32 * 32)}));
}

TEST(FootprintTest, InterleavedPixelsLieInLinesOf16) {
  // 3 channels: lines of 8 pixels are 16 pixels apart.
  const Registers registers =
      With(SmallConvolution(), {{0x100c, 0x6000a000}, {0x107c, 8}});

  EXPECT_THAT(Touched(0xd, registers),
              ::testing::Contains(Reads(0x1070, 0, 3 * 48 + 24)));
}

TEST(FootprintTest, DepthwiseWeightsAreOneRowOfGroups) {
  // 3x3 over 112 channels: a group of 64 and one of 48, which takes 64.
  const Registers registers = With(SmallConvolution(), {{0x100c, 3},
                                                        {0x1024, 112},
                                                        {0x1030, 16},
                                                        {0x1038, 0x03030001},
                                                        {0x400c, 0x1fc}});

  EXPECT_THAT(Touched(0xd, registers),
              ::testing::Contains(Reads(0x1110, 0, 9 * 128)));
}

TEST(FootprintTest, WeightsAreAsManyAsEitherRegisterSays) {
  EXPECT_THAT(Touched(0xd, With(SmallConvolution(), {{0x1030, 4096}})),
              ::testing::Contains(Reads(0x1110, 0, 4096)));
}

TEST(FootprintTest, HalfPrecisionHasTwiceTheBytes) {
  const Registers registers =
      With(SmallConvolution(), {{0x100c, 0x120}, {0x4010, 0x48000002}});

  EXPECT_THAT(Touched(0xd, registers),
              UnorderedElementsAre(Reads(0x1070, 0, 2048 - 1024),
                                   Reads(0x1110, 0, 1024),
                                   // Four surfaces: two pairs, 1024 apart.
                                   Writes(0x4020, 0, 1024 + 512 + 512)));
}

TEST(FootprintTest, AFlightReadsAndWritesSurfaces) {
  EXPECT_THAT(
      Touched(0x18, Flight()),
      UnorderedElementsAre(Reads(0x5018, 0, 480), Writes(0x4020, 0, 480)));
}

TEST(FootprintTest, NotchesAreSkipped) {
  // Lines of 5 pixels out of 7; surfaces 32 bytes further apart, written lines
  // with 3 pixels between them.
  const Registers registers =
      With(Flight(), {{0x5048, 2U << 19}, {0x504c, 32}, {0x4038, 0x30003}});

  EXPECT_THAT(
      Touched(0x18, registers),
      UnorderedElementsAre(Reads(0x5018, 0, (2 * 112 + 80 + 32) + 2 * 112 + 80),
                           Writes(0x4020, 0, 240 + 2 * 128 + 80)));
}

TEST(FootprintTest, ANotchMayLeadBack) {
  const Registers registers =
      With(Flight(), {{0x504c, static_cast<uint32_t>(-480)}});

  EXPECT_THAT(Touched(0x18, registers),
              ::testing::Contains(Reads(0x5018, -240, 240)));
}

TEST(FootprintTest, CoefficientsAreRecordsOfEightChannels) {
  const Registers registers =
      With(Flight(), {{0x501c, 0xe}, {0x5028, 0x2}, {0x5014, 32}});

  EXPECT_THAT(Touched(0x18, registers),
              ::testing::IsSupersetOf(
                  {Reads(0x5020, 0, 5 * 64), Reads(0x502c, 0, 5 * 32)}));
}

TEST(FootprintTest, AnOperandIsAMapOrOneAtomASurface) {
  const Registers registers = With(Flight(), {{0x5040, 256}});

  EXPECT_THAT(Touched(0x18, With(registers, {{0x5034, 0x40000004}})),
              ::testing::Contains(Reads(0x5038, 0, 256 + 240)));
  EXPECT_THAT(Touched(0x18, With(registers, {{0x5034, 0x4}})),
              ::testing::Contains(Reads(0x5038, 0, 256 + 16)));
}

TEST(FootprintTest, AConvolutionsOperandHasTwoAddresses) {
  // Three surfaces of 4 lines of 8 pixels: two at the first address.
  Registers registers = With(Flight(), SmallConvolution());
  registers = With(registers, {{0x500c, 7},
                               {0x5010, 3},
                               {0x5014, 47},
                               {0x5034, 0x40000004},
                               {0x5044, 0x7d00},
                               {0x506c, 512}});

  EXPECT_THAT(Touched(0x1d, registers),
              ::testing::IsSupersetOf(
                  {Reads(0x5018, 0, 1024 + 512), Reads(0x5038, 0, 512)}));
}

TEST(FootprintTest, UnpooledPixelsAreWindows) {
  // Windows of 2x2: 5 pixels become 10, two lines 320 bytes apart, and a line
  // of the input becomes two of the output.
  const Registers registers = With(Flight(), {{0x5044, 0xf801},
                                              {0x5048, 0x1249},
                                              {0x5014, 7},
                                              {0x4024, 160},
                                              {0x4038, 0xa000a},
                                              {0x405c, 2U << 16 | 9}});

  EXPECT_THAT(Touched(0x18, registers),
              UnorderedElementsAre(Reads(0x5018, 0, 240),
                                   Writes(0x4020, 0, 160 + 2 * 320 + 160)));
}

TEST(FootprintTest, ATransposeOfBytesWritesGroupsOfSixteen) {
  // 64 atoms: 4 groups, 16 channels in 2 rows of 8.
  const Registers registers = With(Flight(), {{0x400c, 0x1e5 | 64U << 9},
                                              {0x5044, 0xf821},
                                              {0x4024, 64},
                                              {0x40c0, 16},
                                              {0x4038, 0x1b001b}});

  EXPECT_THAT(
      Touched(0x18, registers),
      ::testing::Contains(Writes(0x4020, 0, 16 * 32 + 7 * 64 + 3 * 16 + 16)));
}

TEST(FootprintTest, ATransposeOfAtomsWritesLinesAsPixels) {
  const Registers registers =
      With(Flight(), {{0x400c, 0x400001e5}, {0x500c, 7}, {0x4024, 48}});

  EXPECT_THAT(Touched(0x18, registers),
              ::testing::Contains(Writes(0x4020, 0, 80 + 7 * 48 + 3 * 16)));
}

TEST(FootprintTest, PoolingReadsAndWritesMaps) {
  const Registers registers = {{0x600c, 7},
                               {0x6010, 3},
                               {0x6014, 31},
                               {0x6018, 3},
                               {0x601c, 1},
                               {0x6020, 31},
                               {0x6024, 2U << 16 | 0x11},
                               {0x6070, 0},
                               {0x607c, 256},
                               {0x700c, 7},
                               {0x7010, 3},
                               {0x7014, 31},
                               {0x701c, 0},
                               {0x7024, 160},
                               {0x7028, 1000}};

  EXPECT_THAT(Touched(0x60, registers),
              UnorderedElementsAre(Reads(0x701c, 0, 1000 + 3 * 160 + 128),
                                   Writes(0x6070, 0, 256 + 96 + 64)));
  EXPECT_EQ(TouchedBy(0x60, With(registers, {{0x7010, 4}})).status().code(),
            absl::StatusCode::kUnimplemented);
}

TEST(FootprintTest, WhatIsNotKnownIsNamed) {
  const struct {
    uint32_t mask;
    Registers registers;
    const char* name;
  } cases[] = {
      {0xd, With(SmallConvolution(), {{0x100c, 0x110}}), "CONV_CON1"},
      {0xd, With(SmallConvolution(), {{0x100c, 0x1}}), "CONV_CON1"},
      {0xd, With(SmallConvolution(), {{0x100c, 0x7000}}), "CONV_CON1"},
      {0xd, With(SmallConvolution(), {{0x1020, 8U << 16}}), "DATA_SIZE0"},
      {0xd, With(SmallConvolution(), {{0x1020, 0x08000001}}), "DATA_SIZE0"},
      {0xd, With(SmallConvolution(), {{0x1080, 0x80000000}}), "0x1080"},
      {0xd, With(SmallConvolution(), {{0x400c, 0x1e6}}), "0x400c"},
      {0xd, With(SmallConvolution(), {{0x4024, 0x80000000}}), "0x4024"},
      {0x18, With(Flight(), {{0x5044, 0x17801}}), "0x5044"},
      {0x18, With(Flight(), {{0x5034, 0x80000004}}), "0x5034"},
      {0x18, With(Flight(), {{0x501c, 0x10}}), "0x501c"},
      {0x18, With(Flight(), {{0x400c, 0x400003e5}}), "0x400c"},
  };
  for (const auto& unknown : cases) {
    const auto accesses = TouchedBy(unknown.mask, unknown.registers);

    EXPECT_EQ(accesses.status().code(), absl::StatusCode::kUnimplemented)
        << unknown.name;
    EXPECT_THAT(std::string(accesses.status().message()),
                HasSubstr(unknown.name));
  }
}

TEST(FootprintTest, ARegisterThatNobodyWroteIsNamed) {
  for (const auto& [number, value] : SmallConvolution()) {
    // An address is looked at by the checker.
    if (number == 0x1070 || number == 0x1110 || number == 0x4020 ||
        number == 0x3018) {
      continue;
    }
    Registers registers = SmallConvolution();
    registers.erase(number);

    const auto accesses = TouchedBy(0xd, registers);

    EXPECT_EQ(accesses.status().code(), absl::StatusCode::kInvalidArgument)
        << std::hex << number;
  }
}

}  // namespace
}  // namespace rknnd::rknpu
