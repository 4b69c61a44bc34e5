// What a program file is read as, and what is refused, with files made by code.

#include "driver/rknpu/file/program_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "driver/rknn_file/testing/flatbuffer_writer.h"
#include "driver/rknpu/file/section.h"
#include "driver/rknpu/file/testing/program_builder.h"

namespace rknnd::rknpu {
namespace {

using testing::Build;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ProgramSpec;
using ::testing::SizeIs;
using testing::SmallProgram;

base::Expected<ProgramFile> ReadText(const std::string& text) {
  return Read(std::as_bytes(std::span(text)));
}

// Why the small program is refused with one change.
struct Refusal {
  const char* name;
  std::function<void(ProgramSpec&)> change;
  base::Code code;
  const char* part_of_message;
};

TEST(ProgramFileTest, ReadsWhatWasWritten) {
  const std::string text = Build(SmallProgram());

  const auto read = ReadText(text);

  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->platform, "rk3588");
  EXPECT_EQ(read->batch, 1U);
  EXPECT_EQ(read->weight_bytes, 64U);
  EXPECT_EQ(read->internal_bytes, 1216U);
  ASSERT_THAT(read->tensors, SizeIs(6));
  EXPECT_EQ(read->tensors[2].name, "x");
  EXPECT_TRUE(read->tensors[2].interleaved());
  EXPECT_EQ(read->tensors[3].kind, TensorClass::kOutput);
  EXPECT_EQ(read->tensors[3].offset, 192U);
  EXPECT_THAT(read->tensors[3].native_shape, ElementsAre(1, 1, 4, 16, 16));
  EXPECT_THAT(read->tensors[3].scales, ElementsAre(0.25F));
  EXPECT_THAT(read->tensors[3].zero_points, ElementsAre(7));
  EXPECT_EQ(read->tensors[1].data.size(), 32U);
  EXPECT_EQ(read->tensors[1].data[5], std::byte{1});
  ASSERT_THAT(read->nodes, SizeIs(3));
  EXPECT_FALSE(read->nodes[0].on_npu);
  EXPECT_TRUE(read->nodes[1].on_npu);
  EXPECT_THAT(read->nodes[1].inputs, ElementsAre(2, 1));
  EXPECT_THAT(read->nodes[1].attributes.kernel, ElementsAre(1, 1));
  EXPECT_THAT(read->nodes[1].task_counts, ElementsAre(1, 1, 0, 1, 0, 0));
  EXPECT_THAT(read->nodes[1].first_tasks, ElementsAre(0, 1, 2, 2, 3, 3));
  EXPECT_THAT(read->inputs, ElementsAre(2));
  EXPECT_THAT(read->outputs, ElementsAre(3));
  ASSERT_THAT(read->relocations, SizeIs(3));
  EXPECT_EQ(read->relocations[2].tensor, 3U);
  EXPECT_EQ(read->relocations[2].word, 2U);
  EXPECT_EQ(read->relocations[2].addend, 64U);
  EXPECT_THAT(read->commands, SizeIs(8));
  ASSERT_THAT(read->tasks, SizeIs(3));
  EXPECT_EQ(read->tasks[0].enable_mask, 0xdU);
  EXPECT_EQ(read->tasks[0].interrupt_clear, 0x1ffffU);
  ASSERT_THAT(read->lists, SizeIs(6));
  EXPECT_EQ(read->lists[3].cores, 3U);
  EXPECT_EQ(read->lists[3].first, 2U);
  EXPECT_EQ(read->lists[3].count, 1U);
}

TEST(ProgramFileTest, CountsTheTasksThatLoadTables) {
  ProgramSpec spec = SmallProgram();
  spec.nodes[1].tasks = {0, 1, 0, 1, 0, 0};
  spec.nodes[1].table_tasks = {1, 0, 0, 0, 0, 0};

  const auto read = ReadText(Build(spec));

  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_THAT(read->nodes[1].task_counts, ElementsAre(1, 1, 0, 1, 0, 0));
}

TEST(ProgramFileTest, FilesOfChipsWithOneCoreHaveOneList) {
  ProgramSpec spec = SmallProgram();
  for (auto& node : spec.nodes) node.tasks.resize(1);
  spec.list_starts.clear();

  const auto read = ReadText(Build(spec));

  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_THAT(read->lists, SizeIs(1));
  EXPECT_EQ(read->lists[0].count, 1U);
}

TEST(ProgramFileTest, BatchIsADecimalNumber) {
  ProgramSpec spec = SmallProgram();
  spec.batch = "8";

  const auto read = ReadText(Build(spec));

  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->batch, 8U);
}

TEST(ProgramFileTest, OtherKindsOfFilesAreNamed) {
  const struct {
    const char* start;
    base::Code code;
    const char* part_of_message;
  } kinds[] = {{"ONNX....", base::Code::kInvalidArgument, "no .rknn file"},
               {"CYPTRKNN", base::Code::kUnimplemented, "encrypted"},
               {"RKNX....", base::Code::kUnimplemented, "RKNN3"},
               {"VPMN....", base::Code::kUnimplemented, "first-generation"}};
  for (const auto& kind : kinds) {
    const auto read = ReadText(kind.start + std::string(100, '\0'));

    ASSERT_FALSE(read.ok()) << kind.start;
    EXPECT_EQ(read.error().code, kind.code) << kind.start;
    EXPECT_THAT(read.error().message, HasSubstr(kind.part_of_message));
  }
}

constexpr auto kDamaged = base::Code::kInvalidArgument;
constexpr auto kUnknown = base::Code::kUnimplemented;

// Each changes the small program in one way.
const Refusal kRefusals[] = {
    {"container 2", [](ProgramSpec& s) { s.container = 2; }, kUnknown,
     "container version 2"},
    {"dynamic", [](ProgramSpec& s) { s.shapes = "dynamic_shape"; }, kUnknown,
     "dynamic_shape"},
    {"graphs", [](ProgramSpec& s) { s.graphs = 2; }, kUnknown, "2 graphs"},
    {"no graph", [](ProgramSpec& s) { s.graphs = 0; }, kDamaged, "no graph"},
    {"compressed", [](ProgramSpec& s) { s.tensors[1].compressed = 1; },
     kUnknown, "'w' are compressed"},
    {"type", [](ProgramSpec& s) { s.tensors[2].type = 16; }, kUnknown,
     "'x' has elements of type 16"},
    {"int16", [](ProgramSpec& s) { s.tensors[3].type = 5; }, kUnknown,
     "'y' is computed in int16"},
    {"no type", [](ProgramSpec& s) { s.tensors[3].type = 0; }, kDamaged,
     "'y' has no type"},
    {"layout", [](ProgramSpec& s) { s.tensors[2].layout = 66; }, kUnknown,
     "'x' has the layout 66"},
    {"class", [](ProgramSpec& s) { s.tensors[2].kind = 11; }, kUnknown,
     "'x' is of class 11"},
    {"native",
     [](ProgramSpec& s) {
       s.tensors[3].native_shape = {1, 2};
     },
     kDamaged, "native shape of 2 numbers"},
    {"numbers", [](ProgramSpec& s) { s.tensors[1].shape.assign(65, 1); },
     kDamaged, "more than 64 numbers"},
    {"zero points", [](ProgramSpec& s) { s.tensors[2].zero_points = {}; },
     kDamaged, "1 scales and 0 zero points"},
    {"names", [](ProgramSpec& s) { s.tensors[2].name = "w"; }, kDamaged,
     "named 'w'"},
    {"weights", [](ProgramSpec& s) { s.weight_bytes = 128; }, kDamaged,
     "weights need 64 bytes, the file says 128"},
    {"internal", [](ProgramSpec& s) { s.tensors[3].offset = 256; }, kDamaged,
     "internal tensors need 1280 bytes, the file says 1216"},
    {"generated", [](ProgramSpec& s) { s.generated_bytes = 1; }, kDamaged,
     "generated constants need 0"},
    {"node's tensor", [](ProgramSpec& s) { s.nodes[1].inputs = {6}; }, kDamaged,
     "'Conv:c' names tensor 6 of 6"},
    {"count of counts", [](ProgramSpec& s) { s.nodes[1].tasks = {1}; },
     kDamaged, "'Conv:c' has 1 numbers of tasks, the first one has 6"},
    {"too many tasks",
     [](ProgramSpec& s) { s.nodes[1].tasks = {1, 1, 0, 1, 1, 0}; }, kDamaged,
     "more tasks than its table of 3"},
    {"huge counts",
     [](ProgramSpec& s) {
       s.nodes[1].tasks[0] = 0xffffffff;
       s.nodes[1].table_tasks = {2, 0, 0, 0, 0, 0};
     },
     kDamaged, "has 4294967297 tasks"},
    {"task's node", [](ProgramSpec& s) { s.tasks[1].node = 2; }, kDamaged,
     "task 1 belongs to node 2, by the counts of tasks to node 1"},
    {"no such node", [](ProgramSpec& s) { s.tasks[1].node = 3; }, kDamaged,
     "task 1 belongs to node 3 of 3"},
    {"task's words", [](ProgramSpec& s) { s.tasks[2].words = 5; }, kDamaged,
     "task 2 has 9 words of commands"},
    {"long task", [](ProgramSpec& s) { s.tasks[2].words = 4097; }, kDamaged,
     "task 2 has 4097 words of commands, at most 4096"},
    {"task's place",
     [](ProgramSpec& s) { s.tasks[2].commands = 0xfffffffffffffff8; }, kDamaged,
     "task 2 has 7 words of commands from byte 1844"},
    {"odd place", [](ProgramSpec& s) { s.tasks[2].commands = 4; }, kDamaged,
     "from byte 4"},
    {"starts", [](ProgramSpec& s) { s.list_starts[4] = 1; }, kDamaged,
     "by its nodes at 1 and 2"},
    {"relocation's name", [](ProgramSpec& s) { s.relocations[0].tensor = "z"; },
     kDamaged, "a tensor 'z' that is not there"},
    {"relocation's word",
     [](ProgramSpec& s) {
       s.relocations[0].places = {{0, 8}};
     },
     kDamaged, "word 8 of 8"},
    {"relocated twice",
     [](ProgramSpec& s) {
       s.relocations[0].places = {{0, 1}};
     },
     kDamaged, "which has one already"},
    {"input", [](ProgramSpec& s) { s.inputs = {9}; }, kDamaged,
     "inputs name tensor 9 of 6"},
    {"no input", [](ProgramSpec& s) { s.inputs = {1}; }, kDamaged,
     "'w' is one of its inputs"},
    {"no outputs", [](ProgramSpec& s) { s.outputs = {}; }, kDamaged,
     "0 outputs"},
    {"batch", [](ProgramSpec& s) { s.batch = "8x"; }, kDamaged,
     "batch is '8x'"},
    {"large batch", [](ProgramSpec& s) { s.batch = "99999999999"; }, kDamaged,
     "batch is"},
    {"no nodes",
     [](ProgramSpec& s) {
       s.nodes = {};
       s.tasks = {};
     },
     kDamaged, "no nodes"},
};

TEST(ProgramFileTest, WhatIsWrongIsRefusedByName) {
  for (const Refusal& refusal : kRefusals) {
    ProgramSpec spec = SmallProgram();
    refusal.change(spec);

    const auto read = ReadText(Build(spec));

    ASSERT_FALSE(read.ok()) << refusal.name;
    EXPECT_EQ(read.error().code, refusal.code)
        << refusal.name << ": " << read.error().message;
    EXPECT_THAT(read.error().message, HasSubstr(refusal.part_of_message));
  }
}

TEST(ProgramFileTest, OneTensorHasTheCommands) {
  ProgramSpec spec = SmallProgram();
  spec.tensors.push_back({.name = "more", .type = 13, .layout = 0, .kind = 9});

  const auto read = ReadText(Build(spec));

  ASSERT_FALSE(read.ok());
  EXPECT_THAT(read.error().message, HasSubstr("two tensors of commands"));
}

TEST(ProgramFileTest, AFileCutShortAnywhereIsRefused) {
  const std::string whole = Build(SmallProgram());
  // The JSON behind the section is not needed: 8 bytes of length and "{}".
  const size_t needed = whole.size() - 10;
  for (size_t size = 0; size < needed; ++size) {
    EXPECT_FALSE(ReadText(whole.substr(0, size)).ok()) << size;
  }
  EXPECT_TRUE(ReadText(whole.substr(0, needed)).ok());
}

// Offsets are 4 bytes each: no one flip may lead outside unnoticed. What is
// still accepted must be consistent.
TEST(ProgramFileTest, AnyBitMayBeWrong) {
  const std::string whole = Build(SmallProgram());
  size_t accepted = 0;
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string changed = whole;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));

    const auto read = ReadText(changed);

    if (!read.ok()) {
      EXPECT_NE(read.error().message, "");
      continue;
    }
    ++accepted;
    for (const TaskEntry& task : read->tasks) {
      EXPECT_LT(task.node, read->nodes.size());
      EXPECT_LE(task.commands / 8 + task.words + kChainWords,
                read->commands.size());
    }
    for (const Relocation& relocation : read->relocations) {
      EXPECT_LT(relocation.tensor, read->tensors.size());
      EXPECT_LT(relocation.word, read->commands.size());
    }
  }
  EXPECT_GT(accepted, 0U);
}

// Vectors of a hostile file may be one and the same: a small file could ask for
// any amount of memory.
TEST(ProgramFileTest, WhatIsReadAgainAndAgainIsCounted) {
  using rknn_file::testing::Writer;
  const std::string bytes =
      Writer().Finish({{0, Writer::Text(std::string(1000, 'a'))}});
  Section section(std::as_bytes(std::span(bytes)));
  const rknn_file::FlatTable root = section.buffer().Root();

  for (int i = 0; i < 4; ++i) section.Text(root, 0);
  EXPECT_TRUE(section.Check().ok());
  const std::string fifth = section.Text(root, 0);

  EXPECT_EQ(fifth, "");
  ASSERT_FALSE(section.Check().ok());
  EXPECT_THAT(section.Check().error().message, HasSubstr("parts overlap"));
}

}  // namespace
}  // namespace rknnd::rknpu
