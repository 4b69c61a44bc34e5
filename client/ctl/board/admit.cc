#include "client/ctl/board/admit.h"

#include <memory>
#include <utility>
#include <vector>

#include "client/ctl/models/network.h"
#include "client/ctl/models/tensor_input.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"

namespace rknnd::client {
namespace {

using base::Expected;

// The first one loads what the later ones find.
constexpr int kMeasuringRuns = 4;

// Runs the model, so that its time is known. What goes wrong is no matter: the
// answer says that it was not measured.
void Measure(Network& network) {
  std::vector<TensorInput> inputs;
  for (const rknn_tensor_attr& attr : network.inputs()) {
    inputs.push_back(NoiseInput(attr, static_cast<uint32_t>(inputs.size())));
  }
  if (!network.SetInputs(inputs)) return;
  for (int run = 0; run < kMeasuringRuns; ++run) {
    if (!network.Run()) return;
  }
}

std::string Percent(double share) { return FormatValue(share * 100) + " %"; }

}  // namespace

std::optional<uint32_t> ParsePriority(std::string_view text) {
  if (text == "high") return RKNN_FLAG_PRIOR_HIGH;
  if (text == "medium") return RKNN_FLAG_PRIOR_MEDIUM;
  if (text == "low") return RKNN_FLAG_PRIOR_LOW;
  return std::nullopt;
}

Expected<AdmitAnswer> Admit(const AdmitOptions& options) {
  const uint32_t priority =
      ParsePriority(options.priority).value_or(RKNN_FLAG_PRIOR_MEDIUM);
  const Expected<std::unique_ptr<Network>> network =
      Network::Load(options.model, priority);
  if (!network) return network.error();
  if (options.core_mask != RKNN_NPU_CORE_AUTO) {
    if (Expected<void> set = (*network)->SetCoreMask(options.core_mask); !set) {
      return std::move(set).error();
    }
  }
  rknnd_stream stream{};
  stream.size = sizeof stream;
  stream.rate = static_cast<float>(options.rate);
  stream.priority = priority;
  stream.streams = options.streams;
  Expected<rknnd_admission> answer = (*network)->Admit(stream);
  if (answer && answer->measured == 0) {
    Measure(**network);
    answer = (*network)->Admit(stream);
  }
  if (!answer) return std::move(answer).error();
  return AdmitAnswer{answer->fits != 0, AdmissionOutput(options, *answer)};
}

Output AdmissionOutput(const AdmitOptions& options,
                       const rknnd_admission& admission) {
  const double run_us = static_cast<double>(admission.run_ns) / 1e3;
  const std::string reason = Printable(admission.reason);
  Output output;
  output.json = {{"fits", admission.fits != 0},
                 {"rate", options.rate},
                 {"streams", options.streams},
                 {"most", admission.rate},
                 {"run_us", run_us},
                 {"measured", admission.measured != 0},
                 {"load", admission.load},
                 {"reason", reason}};
  const bool many = options.streams > 1;
  output.text = std::string(admission.fits != 0 ? "yes: " : "no: ") +
                (many ? std::to_string(options.streams) + " streams of " : "") +
                FormatValue(options.rate) + " frames a second" +
                (many ? " each" : "") +
                (admission.fits != 0 ? " fit" : " do not fit") + "\n";
  const auto line = [&output](const char* title, const std::string& text) {
    std::string label = title;
    label.resize(9, ' ');
    output.text += label + text + "\n";
  };
  if (!reason.empty()) line("why", reason);
  line("at most", FormatValue(admission.rate) + " frames a second" +
                      (many ? " each" : ""));
  if (admission.run_ns > 0) {
    line("a run",
         FormatMicroseconds(run_us) + (admission.measured != 0
                                           ? ", measured"
                                           : ", by the SoC's timing model"));
  }
  line("taken", Percent(admission.load) +
                    " of the cores it may use, by streams that were admitted");
  return output;
}

}  // namespace rknnd::client
