#include "daemon/transport/grpc/inference/conversion.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status/status.h"
#include "base/values/overflow.h"
#include "daemon/transport/grpc/inference/typed_contents.h"
#include "inference/open_inference.pb.h"

namespace rknnd::transport {
namespace {

using inference::InferParameter;
using inference::ModelInferRequest;
using Parameters = google::protobuf::Map<std::string, InferParameter>;

constexpr uint32_t kMostClasses = 4096;
// Of a request; a client that waits longer has gone.
constexpr base::Nanoseconds kLongestTimeout = 24 * 3600 * base::kSecond;
constexpr size_t kImageRank = 4;

// What a message quotes of a client's text.
std::string Quote(std::string_view text) {
  constexpr size_t kLongest = 100;
  if (text.size() <= kLongest) return absl::StrCat("'", std::string(text), "'");
  return absl::StrCat("'", std::string(text.substr(0, kLongest)), "...'");
}

absl::Status Wrong(const std::string& what) {
  return absl::InvalidArgumentError(what);
}

const InferParameter* Find(const Parameters& parameters, const char* name) {
  const auto found = parameters.find(name);
  return found == parameters.end() ? nullptr : &found->second;
}

// A number that is not negative, however it was sent; nothing: not there.
absl::StatusOr<std::optional<uint64_t>> Number(const Parameters& parameters,
                                               const std::string& of,
                                               const char* name) {
  const InferParameter* const found = Find(parameters, name);
  if (found == nullptr) return std::nullopt;
  if (found->parameter_choice_case() == InferParameter::kUint64Param) {
    return found->uint64_param();
  }
  if (found->parameter_choice_case() == InferParameter::kInt64Param &&
      found->int64_param() >= 0) {
    return static_cast<uint64_t>(found->int64_param());
  }
  return Wrong(absl::StrCat(of, ": parameter '", name,
                            "' must be an int64_param that is not negative"));
}

absl::StatusOr<std::optional<RegionRange>> ReadRegion(
    const Parameters& parameters, const std::string& of) {
  const InferParameter* const named = Find(parameters, "shared_memory_region");
  RKNND_ASSIGN_OR_RETURN(const std::optional<uint64_t> offset,
                         Number(parameters, of, "shared_memory_offset"));
  RKNND_ASSIGN_OR_RETURN(const std::optional<uint64_t> size,
                         Number(parameters, of, "shared_memory_byte_size"));
  if (named == nullptr) {
    if (!offset.has_value() && !size.has_value()) return std::nullopt;
    return Wrong(absl::StrCat(
        of,
        ": 'shared_memory_offset' or 'shared_memory_byte_size' without "
        "'shared_memory_region'"));
  }
  if (named->parameter_choice_case() != InferParameter::kStringParam ||
      named->string_param().empty()) {
    return Wrong(absl::StrCat(of,
                              ": parameter 'shared_memory_region' must be the "
                              "name of a region, as string_param"));
  }
  if (!size.has_value()) {
    return Wrong(absl::StrCat(
        of, ": 'shared_memory_region' without 'shared_memory_byte_size'"));
  }
  return RegionRange{named->string_param(), offset.value_or(0), *size};
}

// The model's tensor of that name.
std::optional<size_t> IndexOf(const std::vector<TensorView>& tensors,
                              const std::string& name) {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(),
                   [&](const TensorView& each) { return each.name == name; });
  if (found == tensors.end()) return std::nullopt;
  return static_cast<size_t>(found - tensors.begin());
}

std::string Names(const std::vector<TensorView>& tensors) {
  constexpr size_t kMost = 16;
  std::string names = absl::StrJoin(
      tensors.begin(),
      tensors.begin() + static_cast<int64_t>(std::min(tensors.size(), kMost)),
      ", ", [](std::string* out, const TensorView& tensor) {
        absl::StrAppend(out, "'", tensor.name, "'");
      });
  if (tensors.size() > kMost) absl::StrAppend(&names, ", ...");
  return names;
}

// One request on its way to a plan.
class Planner {
 public:
  Planner(const ModelView& model, const ModelInferRequest& request,
          std::span<const uint64_t> raw_sizes)
      : model_(model), request_(request), raw_sizes_(raw_sizes) {}

  absl::StatusOr<RequestPlan> Plan() {
    RKNND_RETURN_IF_ERROR(ReadParameters());
    RKNND_RETURN_IF_ERROR(MatchInputs());
    RKNND_RETURN_IF_ERROR(ChooseRow());
    for (size_t i = 0; i < model_.inputs.size(); ++i) {
      RKNND_RETURN_IF_ERROR(CheckInput(i));
    }
    RKNND_RETURN_IF_ERROR(PlanOutputs());
    return std::move(plan_);
  }

 private:
  using Input = ModelInferRequest::InferInputTensor;

  absl::Status ReadParameters() {
    for (const auto& [name, value] : request_.parameters()) {
      if (absl::StartsWith(name, "triton_") &&
          name != "triton_enable_empty_final_response") {
        return Wrong(absl::StrCat("parameter ", Quote(name),
                                  ": names that start with 'triton_' are "
                                  "reserved, and this one is unknown"));
      }
    }
    const Parameters& parameters = request_.parameters();
    RKNND_ASSIGN_OR_RETURN(const auto priority,
                           Number(parameters, "request", "priority"));
    RKNND_ASSIGN_OR_RETURN(const auto timeout,
                           Number(parameters, "request", "timeout"));
    plan_.priority = priority.value_or(0);
    const uint64_t most =
        static_cast<uint64_t>(kLongestTimeout / base::kMicrosecond);
    plan_.timeout =
        static_cast<base::Nanoseconds>(std::min(timeout.value_or(0), most)) *
        base::kMicrosecond;
    const InferParameter* const marks =
        Find(parameters, "triton_enable_empty_final_response");
    plan_.marks_final = marks != nullptr && marks->bool_param();
    for (const char* const name : {"sequence_start", "sequence_end"}) {
      const InferParameter* const found = Find(parameters, name);
      if (found != nullptr && found->bool_param()) return NoSequences();
    }
    const InferParameter* const sequence = Find(parameters, "sequence_id");
    if (sequence != nullptr &&
        (sequence->int64_param() != 0 || sequence->uint64_param() != 0 ||
         !sequence->string_param().empty())) {
      return NoSequences();
    }
    return absl::OkStatus();
  }

  static absl::Status NoSequences() {
    return Wrong(
        "sequences: no model here keeps anything from one request to the "
        "next; leave out sequence_id, sequence_start and sequence_end");
  }

  // Finds each of the model's inputs in the request.
  absl::Status MatchInputs() {
    found_.resize(model_.inputs.size());
    for (const Input& input : request_.inputs()) {
      const auto index = IndexOf(model_.inputs, input.name());
      if (!index.has_value()) {
        return Wrong(absl::StrCat("input ", Quote(input.name()),
                                  " is unknown: the model has ",
                                  Names(model_.inputs)));
      }
      if (found_[*index] != nullptr) {
        return Wrong(absl::StrCat("input '", input.name(), "' comes twice"));
      }
      found_[*index] = &input;
    }
    for (size_t i = 0; i < found_.size(); ++i) {
      if (found_[i] == nullptr) {
        return Wrong(absl::StrCat(
            "input '", model_.inputs[i].name, "' is missing: the request has ",
            request_.inputs_size(), " of ", model_.inputs.size()));
      }
    }
    plan_.inputs.resize(model_.inputs.size());
    return MatchContents();
  }

  // Raw entries follow the order of the request's inputs, leaving out those in
  // shared memory.
  absl::Status MatchContents() {
    size_t next_raw = 0;
    bool typed = false;
    for (const Input& input : request_.inputs()) {
      const std::string of = absl::StrCat("input '", input.name(), "'");
      InputPlan& plan = plan_.inputs[*IndexOf(model_.inputs, input.name())];
      RKNND_ASSIGN_OR_RETURN(plan.region, ReadRegion(input.parameters(), of));
      const bool has_contents =
          input.has_contents() && CountTyped(input.contents()) != 0;
      typed = typed || has_contents;
      if (plan.region.has_value()) {
        if (has_contents) {
          return Wrong(absl::StrCat(
              of, " has contents and lies in shared memory: send one of them"));
        }
        continue;
      }
      if (!raw_sizes_.empty()) {
        plan.raw = next_raw++;
      } else {
        plan.typed = &input.contents();
      }
    }
    if (raw_sizes_.empty()) return absl::OkStatus();
    if (typed) {
      return Wrong(
          "raw_input_contents and contents cannot be mixed in one request");
    }
    if (next_raw == raw_sizes_.size()) return absl::OkStatus();
    return Wrong(absl::StrCat("raw_input_contents has ", raw_sizes_.size(),
                              " entries for ", next_raw,
                              " inputs that are not in shared memory"));
  }

  // The first row that all inputs fit.
  absl::Status ChooseRow() {
    for (uint32_t row = 0; row < model_.rows.size(); ++row) {
      if (FitsRow(row)) {
        plan_.row = row;
        return absl::OkStatus();
      }
    }
    // Which one it is: where there is one row, or no row has such an input.
    for (size_t i = 0; i < found_.size(); ++i) {
      const bool fits_some =
          std::any_of(model_.rows.begin(), model_.rows.end(),
                      [&](const RowView& row) { return FitsShape(row, i); });
      if (fits_some) continue;
      const std::vector<int64_t> shape(found_[i]->shape().begin(),
                                       found_[i]->shape().end());
      constexpr size_t kShown = 16;
      if (shape.size() > kShown) {
        return Wrong(absl::StrCat("input '", found_[i]->name(), "' has ",
                                  shape.size(), " dimensions, the model's has ",
                                  model_.inputs[i].shape.size()));
      }
      return Wrong(absl::StrCat("input '", found_[i]->name(), "' has shape ",
                                ShapeText(shape), ", the model takes ",
                                RowShapes(i)));
    }
    return Wrong(
        "the shapes of the inputs are each taken, but not together: see the "
        "model's listed shapes");
  }

  [[nodiscard]] bool FitsRow(uint32_t row) const {
    for (size_t i = 0; i < found_.size(); ++i) {
      if (!FitsShape(model_.rows[row], i)) return false;
    }
    return true;
  }

  [[nodiscard]] bool FitsShape(const RowView& row, size_t input) const {
    return IsShape(found_[input]->shape(), row.inputs[input]) ||
           IsChannelsLast(row, input);
  }

  template <class Shape>
  static bool IsShape(const Shape& asked, const std::vector<int64_t>& shape) {
    // A scalar of the file's is one element here.
    if (asked.empty()) return shape.size() == 1 && shape[0] == 1;
    return std::equal(asked.begin(), asked.end(), shape.begin(), shape.end());
  }

  // Pixels with their channels side by side, as cameras leave them and as some
  // files have their images: taken where the shape can mean nothing else.
  [[nodiscard]] bool IsChannelsLast(const RowView& row, size_t input) const {
    const std::vector<int64_t>& shape = row.inputs[input];
    if (!model_.inputs[input].is_image || shape.size() != kImageRank) {
      return false;
    }
    const std::vector<int64_t> last = {shape[0], shape[2], shape[3], shape[1]};
    return last != shape && IsShape(found_[input]->shape(), last);
  }

  [[nodiscard]] std::string RowShapes(size_t input) const {
    constexpr size_t kMost = 8;
    std::string text;
    for (size_t row = 0; row < model_.rows.size() && row < kMost; ++row) {
      absl::StrAppend(&text, row == 0 ? "" : " or ",
                      ShapeText(model_.rows[row].inputs[input]));
    }
    if (model_.rows.size() > kMost) absl::StrAppend(&text, " or others");
    return text;
  }

  absl::Status CheckInput(size_t index) {
    const Input& input = *found_[index];
    const TensorView& tensor = model_.inputs[index];
    InputPlan& plan = plan_.inputs[index];
    const std::string of = absl::StrCat("input '", tensor.name, "'");
    const std::optional<Datatype> datatype = ParseDatatype(input.datatype());
    if (!datatype.has_value()) {
      return Wrong(absl::StrCat(of, ": datatype ", Quote(input.datatype()),
                                " does not exist"));
    }
    if (std::find(tensor.accepted.begin(), tensor.accepted.end(), *datatype) ==
        tensor.accepted.end()) {
      return Wrong(absl::StrCat(
          of, " is ", DatatypeName(*datatype), ", the model takes ",
          absl::StrJoin(tensor.accepted, " or ",
                        [](std::string* out, Datatype each) {
                          out->append(DatatypeName(each));
                        })));
    }
    plan.datatype = *datatype;
    const RowView& row = model_.rows[plan_.row];
    plan.channels_last = !IsShape(input.shape(), row.inputs[index]);
    const uint64_t elements = *CountElements(row.inputs[index]);
    plan.bytes = elements * DatatypeSize(*datatype);
    if (plan.typed != nullptr) {
      return base::Annotate(CheckTyped(*plan.typed, *datatype, elements), of);
    }
    const uint64_t given =
        plan.raw.has_value() ? raw_sizes_[*plan.raw] : plan.region->size;
    // A region may be longer than its tensor: memory comes in pages.
    const bool fits =
        plan.raw.has_value() ? given == plan.bytes : given >= plan.bytes;
    if (fits) return absl::OkStatus();
    return Wrong(absl::StrCat(
        of, " has ", given, " bytes, ", DatatypeName(*datatype), " of shape ",
        ShapeText(row.inputs[index]), " needs ", plan.bytes));
  }

  absl::Status PlanOutputs() {
    if (request_.outputs().empty()) {
      for (size_t i = 0; i < model_.outputs.size(); ++i) {
        plan_.outputs.push_back(OutputOf(i));
      }
      return absl::OkStatus();
    }
    std::vector<bool> taken(model_.outputs.size());
    for (const auto& output : request_.outputs()) {
      const auto index = IndexOf(model_.outputs, output.name());
      if (!index.has_value()) {
        return Wrong(absl::StrCat("output ", Quote(output.name()),
                                  " is unknown: the model has ",
                                  Names(model_.outputs)));
      }
      if (taken[*index]) {
        return Wrong(
            absl::StrCat("output '", output.name(), "' is asked for twice"));
      }
      taken[*index] = true;
      RKNND_RETURN_IF_ERROR(PlanOutput(*index, output.parameters()));
    }
    return absl::OkStatus();
  }

  [[nodiscard]] OutputPlan OutputOf(size_t index) const {
    OutputPlan output;
    output.index = static_cast<uint32_t>(index);
    output.elements = *CountElements(model_.rows[plan_.row].outputs[index]);
    output.bytes =
        output.elements * DatatypeSize(model_.outputs[index].datatype);
    return output;
  }

  absl::Status PlanOutput(size_t index, const Parameters& parameters) {
    OutputPlan output = OutputOf(index);
    const std::string of =
        absl::StrCat("output '", model_.outputs[index].name, "'");
    RKNND_ASSIGN_OR_RETURN(const auto classes,
                           Number(parameters, of, "classification"));
    if (classes.has_value()) {
      const auto& shape = model_.rows[plan_.row].outputs[index];
      const uint64_t batch =
          shape.size() > 1 ? static_cast<uint64_t>(shape[0]) : 1;
      const uint64_t most =
          std::min<uint64_t>(output.elements / batch, kMostClasses);
      if (*classes == 0 || *classes > kMostClasses) {
        return Wrong(absl::StrCat(of, ": classification is ", *classes,
                                  ", must be 1 to ", most));
      }
      output.classes = static_cast<uint32_t>(std::min(*classes, most));
    }
    RKNND_ASSIGN_OR_RETURN(output.region, ReadRegion(parameters, of));
    if (output.region.has_value() && output.classes != 0) {
      return Wrong(absl::StrCat(
          of, ": classification and shared memory: ask for one of them"));
    }
    // As the protocol's servers have it, though the client is to blame.
    if (output.region.has_value() && output.region->size < output.bytes) {
      return absl::InternalError(absl::StrCat(of, " has ", output.bytes,
                                              " bytes and its shared memory ",
                                              output.region->size));
    }
    plan_.outputs.push_back(std::move(output));
    return absl::OkStatus();
  }

  const ModelView& model_;
  const ModelInferRequest& request_;
  const std::span<const uint64_t> raw_sizes_;
  std::vector<const Input*> found_;  // by the model's index
  RequestPlan plan_;
};

}  // namespace

absl::StatusOr<RequestPlan> PlanRequest(const ModelView& model,
                                        const ModelInferRequest& request,
                                        std::span<const uint64_t> raw_sizes) {
  return Planner(model, request, raw_sizes).Plan();
}

}  // namespace rknnd::transport
