// Tests of the cache folder: what is stored comes back, what is spoilt does
// not.

#include "daemon/core/models/model_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/values/sha256.h"
#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

namespace fs = std::filesystem;

class ModelCacheTest : public ::testing::Test {
 protected:
  ModelCacheTest() { Open(1 << 20); }

  void Open(uint64_t limit) {
    auto opened = ModelCache::Open(folder_.path() + "/models", limit);
    ASSERT_TRUE(opened.ok()) << opened.status();
    cache_ = *std::move(opened);
  }
  ModelId Store(const std::string& model, const std::string& options = "") {
    const ModelId id = IdOf(BytesOf(model), options);
    EXPECT_TRUE(cache_->Store(id, BytesOf(model), options, "n.onnx").ok());
    return id;
  }
  fs::path PathOf(const ModelId& id) const {
    return folder_.path() + "/models/" + base::ToHex(id) + ".model";
  }
  size_t Files() const {
    size_t count = 0;
    for (const auto& file :
         fs::directory_iterator(folder_.path() + "/models")) {
      (void)file;
      ++count;
    }
    return count;
  }

  testing::TemporaryFolder folder_;
  std::unique_ptr<ModelCache> cache_;
};

TEST_F(ModelCacheTest, StoredModelComesBackWithNameAndOptions) {
  const ModelId id = Store("the bytes", "mean: 1");
  auto read = cache_->Read(id);
  ASSERT_TRUE(read.ok()) << read.status();
  const auto bytes = read->bytes();
  EXPECT_EQ(
      std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()),
      "the bytes");
  EXPECT_EQ(read->options, "mean: 1");
  EXPECT_EQ(read->name, "n.onnx");
  EXPECT_TRUE(cache_->Contains(id));
  EXPECT_EQ(Files(), 1U);
}

TEST_F(ModelCacheTest, MissingModelIsNotFound) {
  const ModelId id = IdOf(BytesOf("x"), "");
  EXPECT_FALSE(cache_->Contains(id));
  EXPECT_TRUE(absl::IsNotFound(cache_->Read(id).status()));
}

TEST_F(ModelCacheTest, ChangedFileIsRefusedAndRemoved) {
  const ModelId id = Store("the bytes");
  std::fstream file(PathOf(id), std::ios::in | std::ios::out);
  file.put('T');
  file.close();
  EXPECT_TRUE(absl::IsDataLoss(cache_->Read(id).status()));
  EXPECT_FALSE(cache_->Contains(id));
}

TEST_F(ModelCacheTest, TruncatedFileIsRefusedAndRemoved) {
  for (const size_t size : {size_t{0}, size_t{10}, size_t{30}}) {
    const ModelId id = Store("the bytes of a model");
    fs::resize_file(PathOf(id), size);
    EXPECT_TRUE(absl::IsDataLoss(cache_->Read(id).status())) << size;
    EXPECT_FALSE(cache_->Contains(id));
  }
}

TEST_F(ModelCacheTest, TrailerWithHugeSizesIsRefused) {
  const ModelId id = Store("the bytes");
  std::fstream file(PathOf(id), std::ios::in | std::ios::out);
  file.seekp(-16, std::ios::end);
  const uint64_t huge = UINT64_MAX - 3;
  file.write(reinterpret_cast<const char*>(&huge), sizeof huge);
  file.close();
  EXPECT_TRUE(absl::IsDataLoss(cache_->Read(id).status()));
}

TEST_F(ModelCacheTest, LongestUnusedModelMakesRoom) {
  Open(1000);
  const ModelId first = Store(std::string(300, 'a'));
  const ModelId second = Store(std::string(300, 'b'));
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(PathOf(second), now - std::chrono::hours(2));
  fs::last_write_time(PathOf(first), now - std::chrono::hours(3));
  ASSERT_TRUE(cache_->Read(first).ok());  // used now

  const ModelId third = Store(std::string(500, 'c'));

  EXPECT_TRUE(cache_->Contains(first));
  EXPECT_FALSE(cache_->Contains(second));
  EXPECT_TRUE(cache_->Contains(third));
}

TEST_F(ModelCacheTest, ModelAboveTheLimitIsNotKeptAndEvictsNobody) {
  Open(1000);
  const ModelId first = Store("small");
  const std::string large(2000, 'x');
  const ModelId id = IdOf(BytesOf(large), "");
  EXPECT_TRUE(absl::IsResourceExhausted(
      cache_->Store(id, BytesOf(large), "", "large")));
  EXPECT_TRUE(cache_->Contains(first));
}

TEST_F(ModelCacheTest, LoweredLimitTakesTheLongestUnusedAtOnce) {
  const ModelId oldest = Store(std::string(400, 'a'));
  const ModelId newest = Store(std::string(400, 'b'));
  fs::last_write_time(PathOf(oldest), fs::file_time_type::clock::now() -
                                          std::chrono::seconds(20));
  cache_->SetLimit(700);
  EXPECT_FALSE(cache_->Contains(oldest));
  EXPECT_TRUE(cache_->Contains(newest));
  const std::string large(600, 'c');
  const ModelId id = IdOf(BytesOf(large), "");
  EXPECT_TRUE(cache_->Store(id, BytesOf(large), "", "c").ok());
  EXPECT_FALSE(cache_->Contains(newest));
  cache_->SetLimit(1 << 20);
  EXPECT_TRUE(cache_->Contains(Store(std::string(5000, 'd'))));
  EXPECT_TRUE(cache_->Contains(id));
}

TEST_F(ModelCacheTest, UnfinishedFilesAreClearedAway) {
  std::ofstream(folder_.path() + "/models/abc.model.77.tmp") << "half";
  Open(1 << 20);
  EXPECT_EQ(Files(), 0U);
}

TEST_F(ModelCacheTest, FolderThatIsAFileIsAnError) {
  const std::string path = folder_.path() + "/file";
  std::ofstream(path) << "x";
  EXPECT_FALSE(ModelCache::Open(path, 1000).ok());
}

}  // namespace
}  // namespace rknnd::core
