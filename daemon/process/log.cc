// Texts have passed the level and the limits that operators set.

#include "daemon/process/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "daemon/process/journal.h"

namespace rknnd {
namespace {

// Lines for people.
class StderrLog final : public transport::EventLog {
 public:
  explicit StderrLog(const char* pattern)
      : log_("rknnd", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    log_.set_pattern(pattern);
    log_.set_level(spdlog::level::debug);
    log_.flush_on(spdlog::level::trace);
  }

  void Write(transport::Severity severity, const std::string& text) override {
    switch (severity) {
      case transport::Severity::kError:
        return log_.error(text);
      case transport::Severity::kWarning:
        return log_.warn(text);
      case transport::Severity::kInfo:
        return log_.info(text);
      case transport::Severity::kDebug:
        return log_.debug(text);
    }
  }

 private:
  spdlog::logger log_;
};

class JournalLog final : public transport::EventLog {
 public:
  explicit JournalLog(std::unique_ptr<Journal> journal)
      : journal_(std::move(journal)) {}

  void Write(transport::Severity severity, const std::string& text) override {
    journal_->Write(severity, text, {});
  }
  void WriteEvent(transport::Severity severity, const std::string& text,
                  const core::EventFields& fields) override {
    journal_->Write(severity, text, fields);
  }

 private:
  const std::unique_ptr<Journal> journal_;
};

}  // namespace

std::unique_ptr<transport::EventLog> OpenLog() {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): before any thread is started
  const char* const stream = std::getenv("JOURNAL_STREAM");
  if (Journal::IsStream(stream, STDERR_FILENO)) {
    if (std::unique_ptr<Journal> journal = Journal::Open(STDERR_FILENO)) {
      return std::make_unique<JournalLog>(std::move(journal));
    }
    // The journal has the time.
    return std::make_unique<StderrLog>("%v");
  }
  return std::make_unique<StderrLog>("%Y-%m-%d %H:%M:%S.%e %l: %v");
}

}  // namespace rknnd
