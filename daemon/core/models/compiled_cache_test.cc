// Tests of compiled forms in the cache folder: they come back whole or not at
// all, and a disk that is full, read-only or spoilt costs nothing but time.

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/values/sha256.h"
#include "daemon/core/models/model_cache.h"
#include "daemon/core/testing/core_fixture.h"
#include "daemon/core/testing/words.h"
#include "driver/memory/fault_guard.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rknnd::core {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr char kCompiler[] = "form 1, this CPU";

// Fails with an errno where it is told to.
class FailingDisk final : public CacheDisk {
 public:
  base::UniqueFd Create(const std::string& path) override {
    if (create_error == 0) return CacheDisk::Create(path);
    errno = create_error;
    return {};
  }
  ssize_t Write(int fd, std::span<const std::byte> bytes,
                uint64_t offset) override {
    if (offset + bytes.size() <= room) {
      return CacheDisk::Write(fd, bytes, offset);
    }
    if (offset < room) {
      return CacheDisk::Write(fd, bytes.first(room - offset), offset);
    }
    errno = ENOSPC;
    return -1;
  }
  int Rename(const std::string& from, const std::string& to) override {
    if (rename_error == 0) return CacheDisk::Rename(from, to);
    errno = rename_error;
    return -1;
  }

  int create_error = 0, rename_error = 0;
  uint64_t room = UINT64_MAX;
};

class CompiledCacheTest : public ::testing::Test {
 protected:
  CompiledCacheTest() {
    driver::InstallFaultGuard();
    Open();
  }

  void Open(uint64_t limit = 1 << 20, const std::string& by = kCompiler) {
    auto opened =
        ModelCache::Open(folder_.path() + "/models", limit, by, &disk_);
    ASSERT_TRUE(opened.ok()) << opened.status();
    cache_ = *std::move(opened);
  }
  static ModelId IdOfText(const std::string& model) {
    return IdOf(BytesOf(model), "");
  }
  absl::Status TryStore(const ModelId& id, const std::string& form) {
    return cache_->StoreCompiled(
        id, "mean: 1", "n.onnx", [&](ModelCache::Write write) -> absl::Status {
          // In pieces, as devices write it.
          for (size_t at = 0; at < form.size(); at += 7) {
            const absl::Status status = write(BytesOf(form.substr(at, 7)));
            if (!status.ok()) return status;
          }
          return absl::OkStatus();
        });
  }
  ModelId Store(const std::string& model, const std::string& form) {
    const ModelId id = IdOfText(model);
    const absl::Status stored = TryStore(id, form);
    EXPECT_TRUE(stored.ok()) << stored;
    return id;
  }
  std::string FormOf(const ModelId& id) {
    const auto read = cache_->ReadCompiled(id);
    if (!read.ok()) return std::string(read.status().message());
    return {reinterpret_cast<const char*>(read->form.data()),
            read->form.size()};
  }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    for (const auto& file :
         fs::directory_iterator(folder_.path() + "/models")) {
      files.push_back(file.path());
    }
    return files;
  }

  testing::TemporaryFolder folder_;
  FailingDisk disk_;
  std::unique_ptr<ModelCache> cache_;
};

TEST_F(CompiledCacheTest, FormComesBackWithNameAndOptions) {
  const std::string form(100000, 'f');
  const ModelId id = Store("a", form);
  EXPECT_TRUE(cache_->ContainsCompiled(id));
  EXPECT_FALSE(cache_->Contains(id));
  const auto read = cache_->ReadCompiled(id);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(FormOf(id), form);
  EXPECT_EQ(read->options, "mean: 1");
  EXPECT_EQ(read->name, "n.onnx");
}

TEST_F(CompiledCacheTest, AnotherCompilersFormIsNotThere) {
  const ModelId id = Store("a", "form");
  Open(1 << 20, "form 2, this CPU");
  EXPECT_FALSE(cache_->ContainsCompiled(id));
  EXPECT_TRUE(absl::IsNotFound(cache_->ReadCompiled(id).status()));
  Open();
  EXPECT_EQ(FormOf(id), "form");
}

TEST_F(CompiledCacheTest, DeviceThatCompilesNothingKeepsNothing) {
  Open(1 << 20, "");
  const ModelId id = Store("a", "form");
  EXPECT_FALSE(cache_->ContainsCompiled(id));
  EXPECT_TRUE(Files().empty());
}

TEST_F(CompiledCacheTest, FormUnderAnotherModelsNameIsRefused) {
  Store("a", "form");
  const fs::path stored = Files()[0];
  const std::string name = stored.filename().string();
  const ModelId other = IdOfText("b");
  fs::rename(stored,
             stored.parent_path() / (base::ToHex(other) + name.substr(64)));
  EXPECT_TRUE(absl::IsDataLoss(cache_->ReadCompiled(other).status()));
}

TEST_F(CompiledCacheTest, AnyChangedByteIsFoundAndTheFileRemoved) {
  const size_t size = fs::file_size([this] {
    Store("a", "the compiled form");
    return Files()[0];
  }());
  for (size_t at = 0; at < size; ++at) {
    const ModelId id = Store("a", "the compiled form");
    {
      std::fstream file(Files()[0], std::ios::in | std::ios::out);
      file.seekg(static_cast<std::streamoff>(at));
      const int byte = file.get();
      file.seekp(static_cast<std::streamoff>(at));
      file.put(static_cast<char>(byte ^ 4));
    }
    EXPECT_TRUE(absl::IsDataLoss(cache_->ReadCompiled(id).status())) << at;
    EXPECT_TRUE(Files().empty());
  }
}

TEST_F(CompiledCacheTest, TornFileIsFoundWhereverItEnds) {
  const std::string form(5000, 'f');
  const size_t size = fs::file_size([&] {
    Store("a", form);
    return Files()[0];
  }());
  for (size_t end = 0; end < size; end += 37) {
    const ModelId id = Store("a", form);
    fs::resize_file(Files()[0], end);
    EXPECT_TRUE(absl::IsDataLoss(cache_->ReadCompiled(id).status())) << end;
    EXPECT_TRUE(Files().empty());
  }
}

TEST_F(CompiledCacheTest, FullDiskLeavesNothingBehind) {
  disk_.room = 1000;
  const ModelId id = IdOfText("a");

  const absl::Status stored = TryStore(id, std::string(5000, 'f'));

  EXPECT_FALSE(stored.ok());
  EXPECT_THAT(std::string(stored.message()), HasSubstr("No space left"));
  EXPECT_TRUE(Files().empty());
}

TEST_F(CompiledCacheTest, FullDiskKeepsTheFormThatWasThere) {
  const ModelId id = Store("a", "the old form");
  disk_.room = 10;
  EXPECT_FALSE(TryStore(id, "the new form").ok());
  EXPECT_EQ(FormOf(id), "the old form");
}

TEST_F(CompiledCacheTest, ReadOnlyDiskIsReadAllTheSame) {
  const ModelId id = Store("a", "form");
  disk_.create_error = EROFS;
  const absl::Status stored = TryStore(IdOfText("b"), "other");
  EXPECT_THAT(std::string(stored.message()), HasSubstr("Read-only"));
  EXPECT_EQ(FormOf(id), "form");
  EXPECT_EQ(Files().size(), 1U);
}

TEST_F(CompiledCacheTest, RenameThatFailsLeavesNothingBehind) {
  disk_.rename_error = EIO;
  EXPECT_FALSE(TryStore(IdOfText("a"), "form").ok());
  EXPECT_TRUE(Files().empty());
}

TEST_F(CompiledCacheTest, FileThatMayNotGrowIsAnErrorAndNoSignal) {
  // As on a full disk, from the kernel itself.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1000, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);

  const absl::Status stored = TryStore(IdOfText("a"), std::string(5000, 'f'));

  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_FALSE(stored.ok());
  EXPECT_TRUE(Files().empty());
}

TEST_F(CompiledCacheTest, ErrorOfTheDeviceIsTheError) {
  const absl::Status stored =
      cache_->StoreCompiled(IdOfText("a"), "", "", [](ModelCache::Write write) {
        (void)write(BytesOf("half of"));
        return absl::UnimplementedError("no form");
      });
  EXPECT_TRUE(absl::IsUnimplemented(stored));
  EXPECT_TRUE(Files().empty());
}

TEST_F(CompiledCacheTest, BytesAndFormsShareOneLimit) {
  Open(3000);
  const std::string model(1000, 'a');
  const ModelId a = IdOf(BytesOf(model), "");
  ASSERT_TRUE(cache_->Store(a, BytesOf(model), "", "a").ok());
  const ModelId b = Store("b", std::string(1000, 'b'));
  const auto now = fs::file_time_type::clock::now();
  for (const fs::path& file : Files()) {
    const bool is_model = file.extension() == ".model";
    fs::last_write_time(file, now - std::chrono::hours(is_model ? 2 : 1));
  }

  const ModelId c = Store("c", std::string(1000, 'c'));

  EXPECT_FALSE(cache_->Contains(a));
  EXPECT_TRUE(cache_->ContainsCompiled(b));
  EXPECT_TRUE(cache_->ContainsCompiled(c));
}

TEST_F(CompiledCacheTest, UseOfTheFormKeepsTheBytesToo) {
  const std::string model = "the bytes";
  const ModelId id = IdOf(BytesOf(model), "");
  ASSERT_TRUE(cache_->Store(id, BytesOf(model), "", "a").ok());
  ASSERT_TRUE(TryStore(id, "form").ok());
  const auto long_ago =
      fs::file_time_type::clock::now() - std::chrono::hours(5);
  for (const fs::path& file : Files()) fs::last_write_time(file, long_ago);

  ASSERT_TRUE(cache_->ReadCompiled(id).ok());

  for (const fs::path& file : Files()) {
    EXPECT_GT(fs::last_write_time(file), long_ago) << file;
  }
}

TEST_F(CompiledCacheTest, FormAboveTheLimitIsNotKeptAndEvictsNobody) {
  Open(1000);
  const ModelId first = Store("a", "small");
  EXPECT_TRUE(absl::IsResourceExhausted(
      TryStore(IdOfText("b"), std::string(5000, 'x'))));
  EXPECT_EQ(FormOf(first), "small");
}

TEST_F(CompiledCacheTest, LargeFormAboveTheLimitEvictsNobody) {
  Open(400 << 10);
  const ModelId first = Store("a", std::string(200 << 10, 'a'));
  const std::string form(600 << 10, 'x');
  const absl::Status stored = cache_->StoreCompiled(
      IdOfText("b"), "", "b.onnx",
      [&](ModelCache::Write write) { return write(BytesOf(form)); },
      form.size());
  EXPECT_TRUE(absl::IsResourceExhausted(stored)) << stored;
  EXPECT_TRUE(cache_->ContainsCompiled(first));
}

TEST_F(CompiledCacheTest, FolderIsForTheDaemonAlone) {
  EXPECT_EQ(fs::status(folder_.path() + "/models").permissions(),
            fs::perms::owner_all);
  Store("a", "form");
  EXPECT_EQ(fs::status(Files()[0]).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(CompiledCacheTest, FormThatOthersCanWriteIsNotTaken) {
  const ModelId id = Store("a", "form");
  for (const fs::perms writer :
       {fs::perms::group_write, fs::perms::others_write}) {
    fs::permissions(Files()[0], writer, fs::perm_options::add);
    const absl::Status read = cache_->ReadCompiled(id).status();
    EXPECT_TRUE(absl::IsPermissionDenied(read)) << read;
    fs::permissions(Files()[0], writer, fs::perm_options::remove);
  }
  EXPECT_EQ(FormOf(id), "form");
}

TEST_F(CompiledCacheTest, PipeInPlaceOfTheFormIsNotWaitedFor) {
  const ModelId id = Store("a", "form");
  const fs::path path = Files()[0];
  fs::remove(path);
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(absl::IsDataLoss(cache_->ReadCompiled(id).status()));
}

TEST_F(CompiledCacheTest, FormStaysReadableWhenItsFileGoes) {
  const std::string form(5000, 'f');
  const ModelId id = Store("a", form);
  const auto read = cache_->ReadCompiled(id);
  ASSERT_TRUE(read.ok());
  fs::remove(Files()[0]);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(read->form.data()),
                        read->form.size()),
            form);
}

}  // namespace
}  // namespace rknnd::core
