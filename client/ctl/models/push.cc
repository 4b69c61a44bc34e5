#include "client/ctl/models/push.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "client/ctl/control_connection.h"
#include "client/ctl/text/progress.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"
#include "client/target/model_source.h"
#include "rknn_api.h"

namespace rknnd::client {
namespace {

using base::Code;
using base::Expected;

// The daemon compiles it, which takes seconds on a small board; and its bytes
// may have a slow way.
constexpr int64_t kLoadTimeoutMs = 3'600'000;
constexpr uint32_t kContext = 1;

// Loads it for a moment; kNotFound where the daemon lacks its bytes. From then
// on it stays for the daemon's grace period.
Expected<wire::ContextInfo> Load(ControlConnection& daemon,
                                 const ModelSource& model) {
  wire::CreateContext create{};
  create.context = kContext;
  std::copy(model.id().begin(), model.id().end(), create.model);
  // Nothing is to run: it costs no internal memory.
  create.flags = RKNN_FLAG_COLLECT_MODEL_INFO_ONLY;
  return daemon.Request<wire::ContextInfo>(wire::Verb::kCreateContext, create,
                                           kLoadTimeoutMs);
}

Expected<void> Upload(ControlConnection& daemon, ModelSource& model) {
  Expected<base::UniqueFd> bytes = model.ToMemfd();
  if (!bytes) return std::move(bytes).error();
  wire::UploadModel upload;
  upload.model = model.id();
  upload.name = model.name();
  upload.options = model.options();
  std::vector<base::UniqueFd> fds;
  fds.push_back(*std::move(bytes));
  const Expected<wire::Empty> done = daemon.Request<wire::Empty>(
      wire::Verb::kUploadModel, upload, kLoadTimeoutMs, std::move(fds));
  if (!done) return done.error();
  return {};
}

}  // namespace

Expected<Output> Push(const PushOptions& options) {
  const Expected<std::shared_ptr<ModelSource>> opened =
      ModelSource::OfFile(options.model, std::nullopt);
  if (!opened) return opened.error();
  ModelSource& model = **opened;
  std::error_code ignored;
  const uint64_t size = std::filesystem::file_size(options.model, ignored);

  Progress progress(options.json, Progress::Unit::kBytes);
  const std::string title = "push " + model.name();
  Expected<ControlConnection> daemon = ControlConnection::Open(
      options.target, wire::SessionClient::Poll,
      [&progress, &title](const char* /*what*/, uint64_t done, uint64_t total) {
        progress.Update(title, done, total);
      });
  if (!daemon) return std::move(daemon).error();
  const auto begun = std::chrono::steady_clock::now();
  Expected<wire::ContextInfo> loaded = Load(*daemon, model);
  const bool missing = !loaded && loaded.error().code == Code::kNotFound;
  if (missing) {
    if (Expected<void> sent = Upload(*daemon, model); !sent) {
      return std::move(sent).error();
    }
    loaded = Load(*daemon, model);
  }
  if (!loaded) return loaded.error();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begun)
          .count();
  progress.Clear();

  uint8_t digest[32];
  std::copy(model.id().begin(), model.id().end(), digest);
  Output output;
  output.json = {{"sha256", HexOf(digest)},
                 {"name", model.name()},
                 {"bytes", size},
                 {"was_there", !missing},
                 {"sent_bytes", missing ? size : 0},
                 {"seconds", seconds},
                 {"weight", loaded->weight_size},
                 {"internal", loaded->internal_size}};
  output.text =
      Printable(model.name()) + ": " +
      (missing ? FormatBytes(size) + " sent and loaded in " +
                     FormatMicroseconds(seconds * 1e6)
               : "was there already, nothing was sent (" +
                     FormatMicroseconds(seconds * 1e6) + ")") +
      "\nSHA-256 " + HexOf(digest) +
      "\nit stays for the daemon's grace period, or as long as a program uses "
      "it\n";
  return output;
}

}  // namespace rknnd::client
