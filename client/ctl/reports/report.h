// What a daemon reports, as JSON (names that scripts rely on) and as tables.
// Pure functions; `own_session` is rknnctl's own connection, which is left out:
// it says nothing about who uses the NPU.

#ifndef CLIENT_CTL_REPORTS_REPORT_H_
#define CLIENT_CTL_REPORTS_REPORT_H_

#include <cstdint>
#include <string>

#include "nlohmann/json.hpp"
#include "proto/wire/codec.h"

namespace rknnd::client {

// Fields in the order written.
using Json = nlohmann::ordered_json;

// One answer of rknnctl, in both forms.
// NOLINTNEXTLINE(bugprone-exception-escape): the JSON library's move
struct Output {
  Json json;
  std::string text;
};

// One line. Text that came from elsewhere may be no UTF-8; JSON has to be.
std::string DumpJson(const Json& json);

// Parts of several verbs' answers.
uint64_t Total(const wire::MemoryKinds& kinds);
Json KindsJson(const wire::MemoryKinds& kinds);
std::string HexOf(const uint8_t (&digest)[32]);
Json ForeignUsersJson(const wire::Report& status);
// Half of what was copied is a client's word, which may be any number: sums end
// at the largest.
uint64_t AddUp(uint64_t a, uint64_t b);
uint64_t TotalCopied(const wire::CopiedBytes& copied);

// `sessions` is the report of that kind, to count without ourselves. `npu`:
// wire::ClocksReply's.
Output StatusOutput(const wire::Report& status, const wire::Report& sessions,
                    uint64_t own_session, const std::string& npu = "");
Output SessionsOutput(const wire::Report& report, uint64_t own_session);
Output ModelsOutput(const wire::Report& report);
Output ContextsOutput(const wire::Report& report);
Output BuffersOutput(const wire::Report& report);
Output MemoryOutput(const wire::Report& report, uint64_t own_session);

}  // namespace rknnd::client

#endif  // CLIENT_CTL_REPORTS_REPORT_H_
