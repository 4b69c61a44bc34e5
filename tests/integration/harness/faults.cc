#include "tests/integration/harness/faults.h"

#include <gtest/gtest.h>

#include <functional>
#include <string_view>

#include "tests/integration/harness/files.h"

namespace rknnd::integration {
namespace {

// Calls tell(field, value, is_text) with what is not as it would be anyway.
void EachField(
    const driver::Fault& fault,
    const std::function<void(const char*, const std::string&, bool)>& tell) {
  const auto number = [&tell](const char* field, uint64_t value,
                              uint64_t usual) {
    if (value != usual) tell(field, std::to_string(value), false);
  };
  if (fault.core) tell("core", std::to_string(*fault.core), false);
  if (!fault.model.empty()) tell("model", fault.model, true);
  number("after", fault.after, 0);
  number("every", fault.every, 1);
  number("times", fault.times, 0);
  number("ms", fault.ms, 0);
  if (fault.factor != 0) tell("factor", std::to_string(fault.factor), false);
  number("bytes", fault.bytes, 0);
  if (fault.status) tell("status", std::to_string(*fault.status), false);
}

}  // namespace

DaemonOptions WithFaults(const std::string& folder, const FaultOptions& faults,
                         DaemonOptions options) {
  std::string text;
  if (faults.hang != 0) {
    text = "[scheduler]\nhang = " +
           std::to_string(static_cast<double>(faults.hang) / base::kSecond) +
           "\n";
  }
  text += "[faults]\nenabled = true\ngive_up_ms = " +
          std::to_string(faults.give_up / base::kMillisecond) + "\n";
  for (const driver::Fault& fault : faults.preset) {
    text += "[[faults.preset]]\nkind = \"" +
            std::string(driver::NameOf(fault.kind)) + "\"\n";
    EachField(fault, [&text](const char* field, const std::string& value,
                             bool is_text) {
      const char* quote = is_text ? "\"" : "";
      text += std::string(field) + " = " + quote + value + quote + "\n";
    });
  }
  options.more.insert(options.more.end(),
                      {"--config", WriteFile(folder + "/rknnd.toml", text)});
  return options;
}

RknnctlResult RunFault(const std::string& folder, const std::string& target,
                       std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--target", target, "fault"});
  return RunRknnctl(folder, arguments);
}

uint64_t SetFault(const std::string& folder, const std::string& target,
                  const driver::Fault& fault) {
  std::vector<std::string> arguments = {
      "fault", "set", std::string(driver::NameOf(fault.kind))};
  EachField(fault, [&arguments](const char* field, const std::string& value,
                                bool /*is_text*/) {
    arguments.push_back(std::string("--") + field);
    arguments.push_back(value);
  });
  return AskRknnctl(folder, target, arguments).value("id", uint64_t{0});
}

void ClearFault(const std::string& folder, const std::string& target,
                uint64_t id) {
  AskRknnctl(folder, target,
             {"fault", "clear", id == 0 ? "all" : std::to_string(id)});
}

}  // namespace rknnd::integration
