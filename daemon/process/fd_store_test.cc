// Tests of what the service manager is given to keep, and of what is believed
// of what it gives back.

#include "daemon/process/fd_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <utility>
#include <vector>

#include "base/posix/memfd.h"
#include "base/values/sha256.h"
#include "daemon/transport/session/testing/recorded_lines.h"

namespace rknnd {
namespace {

using transport::testing::RecordedLines;

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

core::ModelId Id(uint8_t number) {
  core::ModelId id{};
  id.back() = number;
  return id;
}

std::string ModelName(uint8_t number) {
  return "model-" + base::ToHex(Id(number));
}
std::string AboutName(uint8_t number) {
  return "about-" + base::ToHex(Id(number));
}

base::UniqueFd Sealed(const std::string& text) {
  return *base::MakeImmutableMemfd(
      "test", std::as_bytes(std::span(text.data(), text.size())));
}

std::string ContentsOf(int fd) {
  std::string text(4096, '\0');
  const ssize_t size = pread(fd, text.data(), text.size(), 0);
  text.resize(size < 0 ? 0 : static_cast<size_t>(size));
  return text;
}

class FdStoreTest : public ::testing::Test {
 protected:
  static constexpr FdStore::Limits kLimits{3, 100};

  FdStoreTest() { store_.emplace(Hear(), kLimits, &log_); }

  // A service manager that keeps what it is given, under its name.
  FdStore::Notify Hear() {
    return [this](const std::string& state, std::span<const int> fds) {
      const size_t name = state.find("\nFDNAME=");
      ASSERT_NE(name, std::string::npos) << state;
      const std::string what = state.substr(0, name);
      const std::string called = state.substr(name + 8);
      if (what == "FDSTOREREMOVE=1") {
        EXPECT_THAT(fds, IsEmpty());
        kept_.erase(called);
        return;
      }
      ASSERT_EQ(what, "FDSTORE=1");
      ASSERT_EQ(fds.size(), 1U);
      kept_[called] = *base::Duplicate(fds[0]);
    };
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& [name, fd] : kept_) names.push_back(name);
    return names;
  }
  void Keep(uint8_t number, uint64_t size, const std::string& name = "m",
            const std::string& options = "") {
    const base::UniqueFd bytes =
        Sealed(std::string(static_cast<size_t>(size), 'b'));
    store_->Keep(Id(number), bytes.get(), size, name, options);
  }
  // The daemon ends somehow, and another one is started.
  void Restart() {
    store_.emplace(Hear(), kLimits, &log_);
    std::vector<PassedFd> passed;
    for (const auto& [name, fd] : kept_) {
      passed.push_back({*base::Duplicate(fd.get()), name});
    }
    store_->Adopt(std::move(passed));
  }

  RecordedLines log_;
  std::map<std::string, base::UniqueFd> kept_;
  std::optional<FdStore> store_;
};

TEST_F(FdStoreTest, ModelComesBackWithItsNameAndOptions) {
  Keep(1, 10, "net.onnx", "mean: [1]\nstd: [2]\n");
  EXPECT_THAT(Names(), ElementsAre(AboutName(1), ModelName(1)));
  Restart();
  const std::optional<core::KeptModel> kept = store_->Take(Id(1));
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->name, "net.onnx");
  EXPECT_EQ(kept->options, "mean: [1]\nstd: [2]\n");
  EXPECT_EQ(kept->size, 10U);
  EXPECT_EQ(ContentsOf(kept->bytes.get()), "bbbbbbbbbb");
  EXPECT_FALSE(store_->Take(Id(2)).has_value());
  EXPECT_THAT(log_.lines, IsEmpty());
}

TEST_F(FdStoreTest, StaysKeptOverAnyNumberOfRestarts) {
  Keep(1, 10);
  for (int i = 0; i < 3; ++i) {
    Restart();
    EXPECT_TRUE(store_->Take(Id(1)).has_value());
    store_->DropUnused();
  }
}

TEST_F(FdStoreTest, ModelThatIsLetGoIsKeptNoLonger) {
  Keep(1, 10);
  Keep(2, 10);
  store_->LetGo(Id(1));
  store_->LetGo(Id(7));
  EXPECT_THAT(Names(), ElementsAre(AboutName(2), ModelName(2)));
}

TEST_F(FdStoreTest, WhatNobodyAskedForGoes) {
  Keep(1, 10);
  Keep(2, 10);
  Restart();
  EXPECT_TRUE(store_->Take(Id(2)).has_value());
  store_->DropUnused();
  EXPECT_THAT(Names(), ElementsAre(AboutName(2), ModelName(2)));
}

TEST_F(FdStoreTest, NewestModelsStay) {
  for (const uint8_t number : {1, 2, 3, 4}) Keep(number, 10);
  EXPECT_THAT(Names(), ElementsAre(AboutName(2), AboutName(3), AboutName(4),
                                   ModelName(2), ModelName(3), ModelName(4)));
  Keep(5, 85);
  EXPECT_THAT(Names(), ElementsAre(AboutName(4), AboutName(5), ModelName(4),
                                   ModelName(5)));
  Keep(6, 101);
  EXPECT_THAT(Names(), ElementsAre(AboutName(4), AboutName(5), ModelName(4),
                                   ModelName(5)));
}

TEST_F(FdStoreTest, ModelThatIsSentAgainIsKeptOnce) {
  Keep(1, 60, "first");
  Keep(1, 60, "again");
  EXPECT_THAT(Names(), ElementsAre(AboutName(1), ModelName(1)));
  Restart();
  EXPECT_EQ(store_->Take(Id(1))->name, "again");
}

TEST_F(FdStoreTest, WhatIsNotSealedOrHalfThereIsNotTaken) {
  Keep(1, 10);
  Keep(2, 10);
  Keep(3, 10);
  kept_[ModelName(1)] = *base::MakeMemfd("test", 10);
  kept_.erase(AboutName(2));
  kept_[AboutName(3)] = Sealed("no line break");
  Restart();
  for (const uint8_t number : {1, 2, 3}) {
    EXPECT_FALSE(store_->Take(Id(number)).has_value());
  }
  EXPECT_THAT(Names(), IsEmpty());
  ASSERT_EQ(log_.lines.size(), 3U);
  EXPECT_THAT(log_.lines[0], HasSubstr("is not what rknnd gave it"));
}

TEST_F(FdStoreTest, NameWithALineBreakIsNotKept) {
  Keep(1, 10, "a\nb");
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(FdStoreTest, FrozenStoreStaysAsItIs) {
  Keep(1, 10);
  store_->Freeze();
  store_->LetGo(Id(1));
  Keep(2, 10);
  EXPECT_THAT(Names(), ElementsAre(AboutName(1), ModelName(1)));
}

TEST_F(FdStoreTest, WithoutAServiceManagerNothingIsKept) {
  FdStore store(nullptr, FdStore::Limits(), &log_);
  const base::UniqueFd bytes = Sealed("bytes");
  store.Keep(Id(1), bytes.get(), 5, "m", "");
  store.LetGo(Id(1));
  store.Store("session-socket-1-2", bytes.get());
  EXPECT_FALSE(store.Take(Id(1)).has_value());
  EXPECT_FALSE(store.keeps());
}

TEST_F(FdStoreTest, NamesOfModelsAreKindAndHash) {
  EXPECT_TRUE(FdStore::IsModel(ModelName(1)));
  EXPECT_TRUE(FdStore::IsModel(AboutName(1)));
  for (const char* name : {"", "model-", "model-12", "session", "admin"}) {
    EXPECT_FALSE(FdStore::IsModel(name)) << name;
  }
  std::string upper = ModelName(1);
  upper[6] = 'A';
  EXPECT_FALSE(FdStore::IsModel(upper));
  EXPECT_FALSE(FdStore::IsModel(ModelName(1) + "0"));
}

}  // namespace
}  // namespace rknnd
