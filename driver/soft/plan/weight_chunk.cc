#include "driver/soft/plan/weight_chunk.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/posix/memfd.h"
#include "base/status/status.h"

namespace rknnd::soft {
namespace {

constexpr size_t kAhead = size_t{64} << 10;

size_t Page() {
  static const auto kPage = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return kPage;
}

size_t WholePages(size_t size) { return (size + Page() - 1) / Page() * Page(); }

absl::Status NoMemory(size_t size, int error) {
  return absl::ResourceExhaustedError(absl::StrCat(
      "no memory for ", size,
      " bytes of weights: ", base::ErrnoError(error, "fallocate").message));
}

}  // namespace

WeightChunk::WeightChunk(base::UniqueFd fd, base::Mapping mapping)
    : fd_(std::move(fd)), mapping_(std::move(mapping)) {}

absl::StatusOr<std::unique_ptr<WeightChunk>> WeightChunk::Make(uint64_t bytes) {
  const size_t size = WholePages(std::max<size_t>(bytes, 1));
  RKNND_ASSIGN_OR_RETURN(base::UniqueFd fd,
                         base::ToStatusOr(base::MakeGrowingMemfd(kName)));
  if (ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return NoMemory(size, errno);
  }
  RKNND_ASSIGN_OR_RETURN(
      base::Mapping mapping,
      base::ToStatusOr(base::Mapping::OfFd(fd.get(), 0, size,
                                           base::Mapping::Access::kReadWrite)));
  return std::unique_ptr<WeightChunk>(
      new WeightChunk(std::move(fd), std::move(mapping)));
}

absl::Status WeightChunk::TakeTo(size_t end) {
  if (end <= taken_) return absl::OkStatus();
  // Small pieces need no call each; Seal gives back what was too much.
  end = std::min(size(), WholePages(end) + kAhead);
  int result = 0;
  do {
    result = fallocate(fd_.get(), 0, static_cast<off_t>(taken_),
                       static_cast<off_t>(end - taken_));
  } while (result != 0 && errno == EINTR);
  if (result != 0) return NoMemory(end - taken_, errno);
  taken_ = end;
  return absl::OkStatus();
}

absl::Status WeightChunk::Seal(size_t end) {
  end = WholePages(end);
  mapping_.ShrinkTo(end);
  if (ftruncate(fd_.get(), static_cast<off_t>(end)) != 0) {
    return base::ToStatus(base::ErrnoError(errno, "shrink weight memory"));
  }
  RKNND_RETURN_IF_ERROR(base::ToStatus(mapping_.MakeReadOnly()));
  held_ = end;
  page_uses_.assign(end / Page(), 0);
  return absl::OkStatus();
}

void WeightChunk::Use(size_t offset, size_t size) {
  ++uses_;
  for (size_t page = offset / Page(); page * Page() < offset + size; ++page) {
    ++page_uses_[page];
  }
}

void WeightChunk::Drop(size_t offset, size_t size) {
  --uses_;
  size_t first = 0;
  size_t unused = 0;  // pages in a row, from `first`
  const auto give_back = [&] {
    if (unused == 0) return;
    // Where that fails the pages stay until the chunk goes, and are counted.
    if (fallocate(fd_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  static_cast<off_t>(first * Page()),
                  static_cast<off_t>(unused * Page())) == 0) {
      held_ -= unused * Page();
    }
    unused = 0;
  };
  for (size_t page = offset / Page(); page * Page() < offset + size; ++page) {
    if (--page_uses_[page] > 0) {
      give_back();
      continue;
    }
    if (unused++ == 0) first = page;
  }
  give_back();
}

}  // namespace rknnd::soft
