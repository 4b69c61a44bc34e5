// What is checked of an uploaded model before its bytes are read.

#include "daemon/core/sessions/model_uploads.h"

#include <sys/stat.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/posix/memfd.h"
#include "base/status/status.h"
#include "base/values/model_options.h"
#include "daemon/core/models/model_load.h"

namespace rknnd::core {
namespace {

// Uploads of one session that may wait for the loader. Each holds an fd and a
// whole model; a client with more threads than this asks again.
constexpr uint32_t kUploads = 64;
// A MODEL.yml is a page; the transport's datagram is 64 KiB.
constexpr size_t kOptionsBytes = size_t{64} << 10;
constexpr size_t kNameBytes = 255;

bool IsControl(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t' && c != '\n' &&
          c != '\r') ||
         c == 0x7f;
}

}  // namespace

void ModelUploads::Upload(ModelUpload upload, const LoadPayer& payer,
                          const Presence& session,
                          std::function<void(absl::Status)> done) {
  upload.name.resize(std::min(upload.name.size(), kNameBytes));
  std::replace_if(upload.name.begin(), upload.name.end(), IsControl, '?');
  const auto size = Check(upload);
  if (!size.ok()) {
    done(size.status());
    return;
  }
  auto charge = account_->TryCharge(MemoryKind::kOther, *size);
  if (!charge.ok()) {
    done(charge.status());
    return;
  }
  ++count_;
  parts_->models->Upload(
      std::move(upload), *size, *std::move(charge), payer,
      [weak = std::weak_ptr<LogSink>(log_)](const std::string& text) {
        if (const auto log = weak.lock()) log->Log(kLogWarning, text);
      },
      [this, token = session.token(),
       done = std::move(done)](const absl::Status& status) {
        if (token.expired()) return;
        --count_;
        done(status);
      });
}

absl::StatusOr<uint64_t> ModelUploads::Check(const ModelUpload& upload) const {
  if (parts_->drain.refuses()) {
    return absl::UnavailableError(
        "the daemon is draining and takes no new models");
  }
  if (count_ >= kUploads) {
    return absl::ResourceExhaustedError(
        absl::StrCat(account_->holder(), " has ", count_,
                     " models to load already: wait until one is loaded"));
  }
  RKNND_RETURN_IF_ERROR(
      parts_->common->Check(*tenant_, CommonKind::kDescriptors));
  RKNND_RETURN_IF_ERROR(parts_->common->Check(*tenant_, CommonKind::kMappings));
  const std::string name = NameForMessages(upload.name, upload.id);
  RKNND_ASSIGN_OR_RETURN(uint64_t size,
                         CheckFile(upload.bytes, upload.options,
                                   absl::StrCat("model '", name, "'")));
  RKNND_ASSIGN_OR_RETURN(
      const base::ModelOptionsText text,
      base::ToStatusOr(base::SplitModelOptions(upload.options)));
  if (!upload.weights_of.valid()) return size;
  if (!text.weights_of.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("model '", name,
                     "' came with another one, whose weights its options do "
                     "not say it shares"));
  }
  RKNND_ASSIGN_OR_RETURN(
      const uint64_t owner,
      CheckFile(upload.weights_of, upload.weights_of_options,
                absl::StrCat("the model whose weights '", name, "' shares")));
  return size + owner;
}

absl::StatusOr<uint64_t> ModelUploads::CheckFile(
    const base::UniqueFd& bytes, const std::string& options,
    const std::string& what) const {
  // Options follow the bytes in the hash. As text they cannot pass for the end
  // of somebody else's model.
  if (options.size() > kOptionsBytes ||
      std::any_of(options.begin(), options.end(), IsControl)) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, ": options are a text of at most ", kOptionsBytes, " bytes"));
  }
  if (!base::HasSeals(bytes.get(), base::Seals::kImmutable)) {
    return absl::InvalidArgumentError(absl::StrCat(
        what,
        " did not come in a memfd on tmpfs sealed against shrink, grow and "
        "write"));
  }
  struct stat status {};
  if (fstat(bytes.get(), &status) != 0 || status.st_size <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is empty (0 bytes)"));
  }
  const auto size = static_cast<uint64_t>(status.st_size);
  if (size > parts_->limits.model_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(what, " has ", size, " bytes, limit 'model_bytes' is ",
                     parts_->limits.model_bytes));
  }
  return size;
}

}  // namespace rknnd::core
