// Into which jobs the lists of tasks are cut.

#include "driver/rknpu/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "driver/rknpu/file/testing/program_builder.h"
#include "driver/rknpu/file/testing/shared_programs.h"

namespace rknnd::rknpu {
namespace {

using testing::Build;
using ::testing::HasSubstr;
using testing::ProgramSpec;
using testing::ReadShared;
using testing::SmallProgram;

// A program of two cores written as text: one letter a task of core 0 and one
// of core 1. 'c' a convolution, 'b' a barrier, '.' nothing.
class Lists {
 public:
  Lists() {
    spec_ = SmallProgram();
    spec_.tensors.push_back({.name = "wait",
                             .kind = 4,
                             .native_shape = {1, 1, 1, 1, 16},
                             .bytes = 64});
    spec_.weight_bytes = 128;
    spec_.nodes.resize(1);
    spec_.commands.clear();
    spec_.relocations = {{"wait", {}}};
    spec_.list_starts.clear();
    spec_.tasks.clear();
  }

  Lists& Node(const std::string& first, const std::string& second) {
    testing::NodeSpec node;
    node.type = "Conv";
    node.name = "n" + std::to_string(spec_.nodes.size());
    node.tasks = {0, static_cast<uint32_t>(first.size()),
                  static_cast<uint32_t>(second.size())};
    spec_.nodes.push_back(node);
    texts_[0] += Numbered(first);
    texts_[1] += Numbered(second);
    return *this;
  }
  Lists& CpuNode() {
    spec_.nodes.push_back({.type = "Reshape", .name = "r", .device = 0});
    spec_.nodes.back().tasks = {0, 0, 0};
    return *this;
  }

  ProgramSpec& Spec() {
    spec_.nodes[0].tasks = {0, 0, 0};
    for (const std::string& list : texts_) {
      for (size_t i = 0; i < list.size(); i += 2) {
        AddTask(list[i], static_cast<uint32_t>(list[i + 1]),
                i + 2 < list.size());
      }
    }
    return spec_;
  }

 private:
  // Each task's letter, then its node.
  std::string Numbered(const std::string& tasks) const {
    std::string numbered;
    for (const char task : tasks) {
      numbered += task;
      numbered += static_cast<char>(spec_.nodes.size() - 1);
    }
    return numbered;
  }

  // A task of one word and its chain's four, on 64 bytes.
  void AddTask(char kind, uint32_t node, bool leads_on) {
    const size_t at = spec_.commands.size();
    const bool waits = kind == 'b';
    if (waits) {
      spec_.relocations[0].places.push_back({0, static_cast<uint32_t>(at)});
    }
    spec_.commands.push_back(waits ? 0x4001000000006070 : 0x0201000000001010);
    const uint64_t next = leads_on ? (at + 8) * 8 : 0;
    spec_.commands.push_back(leads_on ? 0x0101000000000010 | next << 16 : 0);
    // (1 + 4 + 1) / 2 - 1 pairs of words follow.
    spec_.commands.push_back(0x0101000000000014 | uint64_t{leads_on ? 2U : 0U}
                                                      << 16);
    spec_.commands.resize(at + 8);
    spec_.tasks.push_back({.node = node,
                           .enable_mask = waits ? 0x60U : 0xdU,
                           .words = 1,
                           .commands = at * 8});
  }

  ProgramSpec spec_;
  std::string texts_[2];
};

struct Schedule {
  explicit Schedule(const ProgramSpec& spec, uint32_t cores = 2)
      : bytes(Build(spec)) {
    auto read = Read(std::as_bytes(std::span(bytes)));
    if (!read.ok()) {
      ADD_FAILURE() << read.error().message;
      return;
    }
    steps = MakeSchedule(*read, cores);
  }
  // "2:0+3,3+3" for three tasks of both cores, "cpu" for a CPU node.
  std::vector<std::string> Text() const {
    std::vector<std::string> text;
    for (const Step& step : *steps) {
      if (step.on_cpu) {
        text.emplace_back("cpu");
        continue;
      }
      std::string piece = std::to_string(step.piece.cores) + ":";
      for (uint32_t core = 0; core < step.piece.cores; ++core) {
        const TaskRange& range = step.piece.ranges[core];
        piece += (core == 0 ? "" : ",") + std::to_string(range.first) + "+" +
                 std::to_string(range.count);
      }
      text.push_back(piece);
    }
    return text;
  }
  std::string bytes;
  absl::StatusOr<std::vector<Step>> steps = std::vector<Step>();
};

TEST(ScheduleTest, NodesInARowAreOneJob) {
  Lists lists;
  lists.Node("c", "c").Node("cc", "cc");

  const Schedule schedule(lists.Spec());

  ASSERT_TRUE(schedule.steps.ok()) << schedule.steps.status();
  EXPECT_THAT(schedule.Text(), ::testing::ElementsAre("2:0+3,3+3"));
}

TEST(ScheduleTest, ABarrierEndsAJob) {
  Lists lists;
  lists.Node("cb", "cb").Node("c", "c");

  const Schedule schedule(lists.Spec());

  ASSERT_TRUE(schedule.steps.ok()) << schedule.steps.status();
  EXPECT_THAT(schedule.Text(),
              ::testing::ElementsAre("2:0+2,3+2", "2:2+1,5+1"));
}

TEST(ScheduleTest, ANodeOfOneCoreIsAJobOfItsOwn) {
  Lists lists;
  lists.Node("cb", "cb").Node("cc", "").Node("c", "").Node("c", "c");

  const Schedule schedule(lists.Spec());

  ASSERT_TRUE(schedule.steps.ok()) << schedule.steps.status();
  EXPECT_THAT(schedule.Text(),
              ::testing::ElementsAre("2:0+2,6+2", "1:2+3", "2:5+1,8+1"));
}

TEST(ScheduleTest, ANodeOfTheCpuCutsTheList) {
  Lists lists;
  lists.Node("c", "").CpuNode().Node("c", "");

  const Schedule schedule(lists.Spec());

  ASSERT_TRUE(schedule.steps.ok()) << schedule.steps.status();
  EXPECT_THAT(schedule.Text(), ::testing::ElementsAre("1:0+1", "cpu", "1:1+1"));
}

TEST(ScheduleTest, CoresWithOtherNumbersOfTasksAreRefused) {
  Lists lists;
  lists.Node("cc", "c");

  const Schedule schedule(lists.Spec());

  ASSERT_FALSE(schedule.steps.ok());
  EXPECT_THAT(std::string(schedule.steps.status().message()),
              HasSubstr("different numbers of tasks for node 'n1'"));
}

TEST(ScheduleTest, ABarrierOfOneCoreOfTwoIsRefused) {
  Lists lists;
  lists.Node("cb", "cc");

  const Schedule schedule(lists.Spec());

  ASSERT_FALSE(schedule.steps.ok());
  EXPECT_THAT(std::string(schedule.steps.status().message()),
              HasSubstr("after task 1 of node 'n1'"));
}

TEST(ScheduleTest, ALinkThatLeadsElsewhereIsRefused) {
  Lists lists;
  lists.Node("ccc", "ccc");
  ProgramSpec spec = lists.Spec();
  spec.commands[8 + 1] = spec.commands[1];  // task 1 leads to itself

  const Schedule schedule(spec);

  ASSERT_FALSE(schedule.steps.ok());
  EXPECT_THAT(std::string(schedule.steps.status().message()),
              HasSubstr("task 1 of node 'n1' does not lead to task 2"));
}

TEST(ScheduleTest, ALinkWithAnotherLengthIsRefused) {
  Lists lists;
  lists.Node("cc", "cc");
  ProgramSpec spec = lists.Spec();
  spec.commands[2] ^= 1 << 16;

  const Schedule schedule(spec);

  ASSERT_FALSE(schedule.steps.ok());
}

TEST(ScheduleTest, ACpuNodeHasNoTasks) {
  Lists lists;
  lists.Node("c", "c");
  ProgramSpec spec = lists.Spec();
  spec.nodes[1].device = 0;

  const Schedule schedule(spec);

  ASSERT_FALSE(schedule.steps.ok());
  EXPECT_THAT(std::string(schedule.steps.status().message()),
              HasSubstr("'n1' is for the CPU and has tasks"));
}

TEST(ScheduleTest, SetsThatTheFileLacksAreRefused) {
  Lists lists;
  lists.Node("c", "c");

  const Schedule schedule(lists.Spec(), 3);

  ASSERT_FALSE(schedule.steps.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(schedule.steps.status()));
}

// Numbers of jobs as another reader of these files counted them; every link
// inside a job is checked on the way.
TEST(ScheduleTest, PublishedFilesAreCutIntoAsManyJobs) {
  const struct {
    const char* file;
    size_t steps_of_one, jobs;
  } published[] = {{"multiple_input_demo_v6_rk3588.rknn", 1, 1},
                   {"conv_fp16_c32_rk3588.rknn", 1, 1},
                   {"mobilenetv2_rk3588.rknn", 2, 3},
                   {"yolov8n_algae_rk3588.rknn", 1, 44},
                   {"ppocrv4_det_rk3588.rknn", 1, 93}};
  for (const auto& expected : published) {
    const std::vector<std::byte> bytes = ReadShared(expected.file);
    if (bytes.empty()) GTEST_SKIP() << "no published files in RKNND_SHARED";
    const auto file = Read(bytes);
    ASSERT_TRUE(file.ok()) << file.error().message;
    for (uint32_t cores = 1; cores <= 3; ++cores) {
      ASSERT_TRUE(HasLists(*file, cores));
      const auto steps = MakeSchedule(*file, cores);
      ASSERT_TRUE(steps.ok()) << expected.file << ": " << steps.status();
      size_t jobs = 0;
      uint32_t tasks = 0;
      for (const Step& step : *steps) {
        jobs += step.on_cpu ? 0 : 1;
        for (const TaskRange& range : step.piece.ranges) tasks += range.count;
      }
      if (cores == 1) {
        EXPECT_EQ(steps->size(), expected.steps_of_one) << expected.file;
      } else {
        EXPECT_EQ(jobs, expected.jobs) << expected.file << ", " << cores;
      }
      uint32_t listed = 0;
      for (const TaskList& list : file->lists) {
        if (list.cores == cores) listed += list.count;
      }
      EXPECT_EQ(tasks, listed) << expected.file << ", " << cores;
    }
  }
}

}  // namespace
}  // namespace rknnd::rknpu
