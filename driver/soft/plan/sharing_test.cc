#include "driver/soft/plan/sharing.h"

#include <algorithm>
#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace rknnd::soft {
namespace {

using Kind = SharingWish::Kind;

// A program of copies: what each tensor's bytes mean is known, so that running
// it in shared memory shows whether any byte is lost before it is read.
struct Program {
  struct Step {
    std::vector<uint32_t> reads, writes;
  };
  std::vector<Lifetime> tensors;
  std::vector<SharingWish> wishes;
  std::vector<Step> steps;
  // Meaning of each 64 bytes of each tensor.
  std::vector<std::vector<int>> words;
};

class RandomProgram {
 public:
  explicit RandomProgram(uint32_t seed) : random_(seed) {}

  Program Make() {
    Source(1 + Pick(4));
    const int steps = 3 + static_cast<int>(Pick(25));
    for (int s = 0; s < steps; ++s) {
      switch (Pick(5)) {
        case 0:
          Source(1 + Pick(6));
          break;
        case 1:
          Elementwise();
          break;
        case 2:
          Concat();
          break;
        case 3:
          Slice();
          break;
        default:
          Compute();
      }
    }
    return std::move(program_);
  }

 private:
  uint32_t Pick(uint32_t below) { return random_() % below; }
  uint32_t Any() {
    const auto count = static_cast<uint32_t>(program_.tensors.size());
    // Late ones rather: chains.
    return Pick(3) == 0 ? Pick(count) : count - 1 - Pick(std::min(count, 4U));
  }
  uint32_t Now() const { return static_cast<uint32_t>(program_.steps.size()); }
  uint32_t Add(std::vector<int> words) {
    program_.tensors.push_back({words.size() * 64, Now(), Now()});
    program_.words.push_back(std::move(words));
    return static_cast<uint32_t>(program_.tensors.size() - 1);
  }
  std::vector<int> Fresh(size_t size) {
    std::vector<int> words(size);
    for (int& word : words) word = next_++;
    return words;
  }
  void Step(std::vector<uint32_t> reads, std::vector<uint32_t> writes) {
    for (uint32_t t : reads) program_.tensors[t].last = Now();
    program_.steps.push_back({std::move(reads), std::move(writes)});
  }
  void Source(uint32_t size) {
    const uint32_t made = Add(Fresh(size));
    Step({}, {made});
  }
  void Elementwise() {
    const uint32_t from = Any();
    const uint32_t made = Add(Fresh(program_.words[from].size()));
    program_.wishes.push_back({Kind::kOverwrite, made, from, 0});
    Step({from}, {made});
  }
  void Compute() {
    const uint32_t from = Any(), other = Any();
    const uint32_t made = Add(Fresh(1 + Pick(6)));
    Step({from, other}, {made});
  }
  void Concat() {
    std::vector<uint32_t> parts;
    std::vector<int> words;
    for (uint32_t i = 0, count = 2 + Pick(3); i < count; ++i) {
      parts.push_back(Any());
      const std::vector<int>& part = program_.words[parts.back()];
      words.insert(words.end(), part.begin(), part.end());
    }
    const uint32_t made = Add(std::move(words));
    uint64_t offset = 0;
    for (uint32_t part : parts) {
      program_.wishes.push_back({Kind::kPart, part, made, offset});
      offset += program_.tensors[part].size;
    }
    Step(parts, {made});
  }
  void Slice() {
    const uint32_t from = Any();
    const std::vector<int> whole = program_.words[from];
    const uint32_t begin = Pick(static_cast<uint32_t>(whole.size()));
    const uint32_t size = 1 + Pick(static_cast<uint32_t>(whole.size()) - begin);
    const uint32_t made =
        Add({whole.begin() + begin, whole.begin() + begin + size});
    program_.wishes.push_back({Kind::kPart, made, from, begin * 64});
    Step({from}, {made});
  }

  std::mt19937 random_;
  Program program_;
  int next_ = 1;
};

// Runs the program word by word; false when a step reads what is not there.
bool RunsIn(const Program& program, const Sharing& sharing,
            const MemoryPlan& memory) {
  std::vector<int> arena(memory.size / 64, 0);
  const auto at = [&](uint32_t t) {
    return (memory.offsets[sharing.group[t]] + sharing.offset[t]) / 64;
  };
  for (const Program::Step& step : program.steps) {
    for (uint32_t t : step.reads) {
      for (size_t i = 0; i < program.words[t].size(); ++i) {
        if (arena[at(t) + i] != program.words[t][i]) return false;
      }
    }
    for (uint32_t t : step.writes) {
      std::copy(program.words[t].begin(), program.words[t].end(),
                arena.begin() + static_cast<int64_t>(at(t)));
    }
    // Nothing that is read later was lost. A tensor written by this very step
    // may lie where one read for the last time was.
    const auto now = static_cast<uint32_t>(&step - program.steps.data());
    for (uint32_t t = 0; t < program.tensors.size(); ++t) {
      if (program.tensors[t].first > now || program.tensors[t].last <= now) {
        continue;
      }
      for (size_t i = 0; i < program.words[t].size(); ++i) {
        if (arena[at(t) + i] != program.words[t][i]) return false;
      }
    }
  }
  return true;
}

TEST(SharingTest, ElementwiseLayerWritesOverWhatNobodyReadsAnyMore) {
  const std::vector<Lifetime> tensors = {{128, 0, 1}, {128, 1, 2}};
  const std::vector<SharingWish> wishes = {{Kind::kOverwrite, 1, 0, 0}};

  const Sharing sharing = ShareStorage(tensors, wishes);

  EXPECT_TRUE(sharing.granted[0]);
  ASSERT_EQ(sharing.groups.size(), 1U);
  EXPECT_EQ(sharing.groups[0].size, 128U);
  EXPECT_EQ(sharing.groups[0].last, 2U);
}

TEST(SharingTest, NothingIsWrittenOverThatIsReadLater) {
  const std::vector<Lifetime> tensors = {{128, 0, 2}, {128, 1, 2}};
  const std::vector<SharingWish> wishes = {{Kind::kOverwrite, 1, 0, 0}};

  EXPECT_FALSE(ShareStorage(tensors, wishes).granted[0]);
}

TEST(SharingTest, PartsOfAConcatAreWrittenWhereTheyWillLie) {
  const std::vector<Lifetime> tensors = {{128, 0, 2}, {64, 1, 2}, {192, 2, 3}};
  const std::vector<SharingWish> wishes = {{Kind::kPart, 0, 2, 0},
                                           {Kind::kPart, 1, 2, 128}};

  const Sharing sharing = ShareStorage(tensors, wishes);

  ASSERT_EQ(sharing.groups.size(), 1U);
  EXPECT_EQ(sharing.groups[0].size, 192U);
  EXPECT_EQ(sharing.groups[0].first, 0U);
  EXPECT_EQ(sharing.offset[1], 128U);
}

TEST(SharingTest, SharedBytesCountOnceAndOnlyWhileTheyAreAlive) {
  const std::vector<Lifetime> tensors = {{128, 0, 2}, {64, 1, 2}, {192, 2, 3}};
  const std::vector<SharingWish> wishes = {{Kind::kPart, 0, 2, 0},
                                           {Kind::kPart, 1, 2, 128}};

  const Sharing sharing = ShareStorage(tensors, wishes);

  EXPECT_EQ(LowerBound(tensors, sharing), 192U);
}

TEST(SharingTest, OneTensorTwiceInAConcatIsCopiedOnce) {
  const std::vector<Lifetime> tensors = {{64, 0, 1}, {128, 1, 2}};
  const std::vector<SharingWish> wishes = {{Kind::kPart, 0, 1, 0},
                                           {Kind::kPart, 0, 1, 64}};

  const Sharing sharing = ShareStorage(tensors, wishes);

  EXPECT_TRUE(sharing.granted[0]);
  EXPECT_FALSE(sharing.granted[1]);
}

TEST(SharingTest, UnalignedPartsAreCopied) {
  const std::vector<Lifetime> tensors = {{64, 0, 1}, {96, 1, 2}};
  const std::vector<SharingWish> wishes = {{Kind::kPart, 0, 1, 32}};

  EXPECT_FALSE(ShareStorage(tensors, wishes).granted[0]);
}

// It would keep room for the whole for as long as the small part is waiting.
TEST(SharingTest, PartThatWaitsLongIsCopiedWhereMemoryIsFull) {
  const std::vector<Lifetime> tensors = {
      {64, 0, 9}, {64000, 2, 3}, {6400, 9, 10}};
  const std::vector<SharingWish> wishes = {{Kind::kPart, 0, 2, 0}};

  EXPECT_FALSE(ShareStorage(tensors, wishes).granted[0]);
}

TEST(SharingTest, RandomProgramsReadWhatWasWritten) {
  size_t granted = 0;
  for (uint32_t seed = 0; seed < 3000; ++seed) {
    const Program program = RandomProgram(seed).Make();

    const Sharing sharing = ShareStorage(program.tensors, program.wishes);

    const MemoryPlan memory = PlanMemory(sharing.groups);
    EXPECT_TRUE(RunsIn(program, sharing, memory)) << "seed " << seed;
    EXPECT_LE(LowerBound(sharing.groups), LowerBound(program.tensors))
        << "seed " << seed;
    EXPECT_LE(LowerBound(program.tensors, sharing), memory.size)
        << "seed " << seed;
    granted += static_cast<size_t>(
        std::count(sharing.granted.begin(), sharing.granted.end(), true));
  }
  EXPECT_GT(granted, 5000U);
}

}  // namespace
}  // namespace rknnd::soft
