// Contexts and runs; memories are in memories.cc.

#include "tests/integration/programs/commands.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "rknnd.h"

namespace rknnd::integration {
namespace {

uint64_t Number(const std::string& word) {
  return std::strtoull(word.c_str(), nullptr, 0);
}

int InputsFromFiles(rknn_context context, const Words& words, size_t first) {
  std::vector<std::vector<char>> contents;
  for (size_t i = first; i < words.size(); ++i) {
    contents.push_back(ReadFile(words[i]));
  }
  std::vector<rknn_input> inputs;
  for (std::vector<char>& bytes : contents) {
    rknn_input input{};
    input.index = static_cast<uint32_t>(inputs.size());
    input.buf = bytes.data();
    input.size = static_cast<uint32_t>(bytes.size());
    input.type = RKNN_TENSOR_FLOAT32;
    input.fmt = RKNN_TENSOR_NCHW;
    inputs.push_back(input);
  }
  return rknn_inputs_set(context, static_cast<uint32_t>(inputs.size()),
                         inputs.data());
}

// Calls use(index, output) with each output as floats.
template <class Use>
int WithOutputs(rknn_context context, Use use) {
  const std::vector<rknn_tensor_attr> attrs = Attributes(context, false);
  std::vector<rknn_output> outputs(std::max<size_t>(attrs.size(), 1));
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i].index = static_cast<uint32_t>(i);
    outputs[i].want_float = 1;
  }
  const auto count = static_cast<uint32_t>(outputs.size());
  const int code = rknn_outputs_get(context, count, outputs.data(), nullptr);
  if (code != RKNN_SUCC) return code;
  for (size_t i = 0; i < outputs.size(); ++i) use(i, outputs[i]);
  return rknn_outputs_release(context, count, outputs.data());
}

// The hash of the outputs.
Reply HashOutputs(rknn_context context) {
  Hash hash;
  const int code =
      WithOutputs(context, [&hash](size_t, const rknn_output& output) {
        hash.Add(output.buf, output.size);
      });
  return Answer(code, hash.text());
}

}  // namespace

Reply Answer(int code, const std::string& text) {
  return {code, code == RKNN_SUCC ? text : rknnd_last_error()};
}

std::vector<char> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  std::vector<char> bytes(static_cast<size_t>(file.tellg()));
  file.seekg(0);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

std::vector<rknn_tensor_attr> Attributes(rknn_context context, bool inputs) {
  rknn_input_output_num number{};
  if (rknn_query(context, RKNN_QUERY_IN_OUT_NUM, &number, sizeof number) !=
      RKNN_SUCC) {
    return {};
  }
  std::vector<rknn_tensor_attr> attrs(inputs ? number.n_input
                                             : number.n_output);
  for (size_t i = 0; i < attrs.size(); ++i) {
    attrs[i].index = static_cast<uint32_t>(i);
    rknn_query(context, inputs ? RKNN_QUERY_INPUT_ATTR : RKNN_QUERY_OUTPUT_ATTR,
               &attrs[i], sizeof attrs[i]);
  }
  return attrs;
}

double RelativeError(const float* got, size_t count,
                     const std::vector<char>& wanted) {
  if (count * sizeof(float) != wanted.size()) return 1e30;
  double largest = 0;
  double error = 0;
  for (size_t i = 0; i < count; ++i) {
    float reference = 0;
    std::memcpy(&reference, wanted.data() + i * sizeof reference,
                sizeof reference);
    largest = std::max(largest, std::abs(double{reference}));
    const double difference = std::abs(double{got[i]} - double{reference});
    // A NaN must not get lost.
    error = difference <= error ? error : difference;
    if (std::isnan(difference)) return 1e30;
  }
  return largest == 0 ? error : error / largest;
}

const std::map<std::string, Commands::Entry>& Commands::Table() {
  static const std::map<std::string, Entry> table = {
      // CTX PATH [FLAGS]; the second reads the file and frees it after the
      // call; the third: PATH THREADS RUNS INPUT...
      {"init", {&Commands::Init, 2}},
      {"init_bytes", {&Commands::InitBytes, 2}},
      // CTX PATH OWNER: with the weights of another context's model
      {"share", {&Commands::InitShared, 3}},
      {"share_bytes", {&Commands::InitBytesShared, 3}},
      {"storm", {&Commands::InitStorm, 4}},
      {"dup", {&Commands::Duplicate, 2}},              // NEW OLD
      {"destroy", {&Commands::Destroy, 1}},            // CTX
      {"mask", {&Commands::SetCoreMask, 2}},           // CTX MASK
      {"batch_cores", {&Commands::SetBatchCores, 2}},  // CTX CORES
      {"shape", {&Commands::SetShape, 3}},     // CTX FMT DIM...: of input 0
      {"inputs", {&Commands::SetInputs, 1}},   // CTX FILE...
      {"input", {&Commands::SetOneInput, 4}},  // CTX INDEX TYPE BYTES
      {"pixels", {&Commands::SetPixels, 2}},   // CTX FILE: input 0, UINT8
      {"run", {&Commands::Run, 1}},            // CTX [TIMEOUT_MS]
      // CTX RUNS: "RIGHT WRONG FAILED THE LAST ERROR"; right is what the first
      // answer was
      {"repeat", {&Commands::Repeat, 2}},
      {"outputs", {&Commands::GetOutputs, 1}},  // CTX: a hash
      {"compare", {&Commands::Compare, 2}},     // CTX FILE...: relative error
      {"copies", {&Commands::CountCopies, 1}},  // CTX: bytes copied in all
      {"report", {&Commands::Report, 1}},       // CTX: "core N" of the last run
      {"took", {&Commands::TellTime, 1}},  // CTX: ns of the last run, on cores
      {"memory_size", {&Commands::AskMemorySize, 1}},  // CTX
      {"sram_size", {&Commands::AskSramSize, 1}},      // CTX: "TOTAL FREE"
      // CTX: "NAME TYPE LAYOUT DIMS ZERO SCALE; ..., 'CUSTOM STRING'"
      {"describe", {&Commands::Describe, 1}},
      // MEM CTX BYTES [FLAGS]
      {"create", {&Commands::Create, 3}},
      // MEM CTX KIND FD_BYTES BYTES OFFSET
      {"import", {&Commands::Import, 6}},
      {"destroy_mem", {&Commands::DestroyMemory, 2}},  // CTX MEM
      {"bind", {&Commands::Bind, 4}},  // CTX MEM in|out INDEX [TYPE|native]
      {"bind_all", {&Commands::BindAll, 1}},  // CTX: CTX.in0, ... CTX.out0, ...
      // CTX MEM FORMAT WIDTH HEIGHT: of input 0, its planes in one piece
      {"frame", {&Commands::SetFrame, 5}},
      {"fill", {&Commands::Fill, 2}},                  // MEM FILE
      {"hash_mem", {&Commands::HashMemory, 2}},        // MEM BYTES
      {"compare_mem", {&Commands::CompareMemory, 2}},  // MEM FILE
      // CTX FORMAT W H FIT CX CY CW CH [MEM OFFSET STRIDE]...: of input 0
      {"camera_frame", {&Commands::SetCameraFrame, 9}},
      {"place", {&Commands::PlaceFrame, 9}},         // CTX ... CH
      {"physical", {&Commands::CreatePhysical, 4}},  // MEM CTX ADDRESS BYTES
      {"internal", {&Commands::SetInternal, 2}},     // CTX MEM
      {"weights", {&Commands::SetWeights, 2}},       // CTX MEM
      {"internal_size", {&Commands::AskInternalSize, 1}},  // CTX
      {"import_of", {&Commands::ImportOf, 4}},  // NEW CTX MEM BYTES [OFFSET]
      {"listen", {&Commands::Listen, 1}},       // PATH
      {"hand", {&Commands::Hand, 1}},           // MEM: to who connects there
      {"flip", {&Commands::Flip, 1}},  // MEM: every bit; how many were not 0
      {"init_zero_copy", {&Commands::InitZeroCopy, 3}},  // CTX PATH MODE
      {"model_memory", {&Commands::AskModelMemory, 1}},  // CTX [MEM]
      {"churn_free", {&Commands::ChurnFree, 1}},         // ROUNDS
      {"token", {&Commands::TellToken, 1}},              // CTX
      {"init_token", {&Commands::InitFromToken, 2}},     // CTX TOKEN
      {"punch", {&Commands::PunchHole, 1}},              // MEM
      {"shrink", {&Commands::Shrink, 1}},                // MEM: to nothing
      {"close_fd", {&Commands::CloseFd, 1}},            // MEM: the imported one
      {"churn_mems", {&Commands::ChurnMemories, 3}},    // CTX BYTES ROUNDS
      {"churn_imports", {&Commands::ChurnImports, 3}},  // CTX MEM ROUNDS
      {"churn_contexts", {&Commands::ChurnContexts, 2}},  // PATH ROUNDS
      {"admit", {&Commands::Admit, 2}},                   // CTX RATE [reserve]
      {"key", {&Commands::AskKey, 2}},  // CTX MEM: "DIGITS OFFSET SIZE"
      {"peek", {&Commands::Peek, 3}},   // MEM OFFSET COUNT: bytes in hex
      {"poke", {&Commands::Poke, 3}},   // MEM OFFSET BYTE
  };
  return table;
}

Reply Commands::Do(const Words& words) {
  const auto found = Table().find(words[0]);
  if (found == Table().end() || words.size() <= found->second.arguments) {
    return {kBadCommand, "no such command, or too few words"};
  }
  return (this->*found->second.method)(words);
}

Reply Commands::Describe(const Words& words) {
  const rknn_context context = Context(words[1]);
  std::string text;
  for (const bool inputs : {true, false}) {
    for (const rknn_tensor_attr& attr : Attributes(context, inputs)) {
      std::string dims;
      for (uint32_t i = 0; i < attr.n_dims; ++i) {
        dims += (i == 0 ? "" : ",") + std::to_string(attr.dims[i]);
      }
      char numbers[64];
      std::snprintf(numbers, sizeof numbers, "%d %g", attr.zp,
                    static_cast<double>(attr.scale));
      text += std::string(attr.name) + " " + get_type_string(attr.type) + " " +
              get_format_string(attr.fmt) + " " + dims + " " + numbers + "; ";
    }
  }
  rknn_sdk_version version{};
  int code =
      rknn_query(context, RKNN_QUERY_SDK_VERSION, &version, sizeof version);
  rknn_custom_string custom{};
  if (code == RKNN_SUCC) {
    code =
        rknn_query(context, RKNN_QUERY_CUSTOM_STRING, &custom, sizeof custom);
  }
  return Answer(code, text + "'" + custom.string + "'");
}

rknn_context Commands::Context(const std::string& name) const {
  const auto found = contexts_.find(name);
  return found == contexts_.end() ? 0 : found->second;
}

Reply Commands::Init(const Words& words) {
  const auto flags =
      static_cast<uint32_t>(words.size() > 3 ? Number(words[3]) : 0);
  std::string path = words[2];
  rknn_context context = 0;
  const int code = rknn_init(&context, path.data(), 0, flags, nullptr);
  if (code == RKNN_SUCC) contexts_[words[1]] = context;
  return Answer(code);
}

Reply Commands::InitBytes(const Words& words) {
  const auto flags =
      static_cast<uint32_t>(words.size() > 3 ? Number(words[3]) : 0);
  std::vector<char> model = ReadFile(words[2]);
  rknn_context context = 0;
  const int code =
      rknn_init(&context, model.data(), static_cast<uint32_t>(model.size()),
                flags, nullptr);
  // Whoever reads it later reads something else.
  std::memset(model.data(), 0x5a, model.size());
  if (code == RKNN_SUCC) contexts_[words[1]] = context;
  return Answer(code);
}

namespace {

// As in the guide: nothing but the context is ever set.
rknn_init_extend ExtendWith(rknn_context owner) {
  rknn_init_extend extend;
  std::memset(&extend, 0xa5, sizeof extend);
  extend.ctx = owner;
  return extend;
}

}  // namespace

Reply Commands::InitShared(const Words& words) {
  std::string path = words[2];
  rknn_init_extend extend = ExtendWith(Context(words[3]));
  rknn_context context = 0;
  const int code =
      rknn_init(&context, path.data(), 0, RKNN_FLAG_SHARE_WEIGHT_MEM, &extend);
  if (code == RKNN_SUCC) contexts_[words[1]] = context;
  return Answer(code);
}

Reply Commands::InitBytesShared(const Words& words) {
  std::vector<char> model = ReadFile(words[2]);
  rknn_init_extend extend = ExtendWith(Context(words[3]));
  rknn_context context = 0;
  const int code =
      rknn_init(&context, model.data(), static_cast<uint32_t>(model.size()),
                RKNN_FLAG_SHARE_WEIGHT_MEM, &extend);
  std::memset(model.data(), 0x5a, model.size());
  if (code == RKNN_SUCC) contexts_[words[1]] = context;
  return Answer(code);
}

// Threads with a context each; one hash if all of their answers are the same.
Reply Commands::InitStorm(const Words& words) {
  const uint64_t count = Number(words[2]);
  const uint64_t runs = Number(words[3]);
  const Words inputs(words.begin() + 4, words.end());
  std::vector<Reply> replies(count);
  std::vector<std::thread> threads;
  for (Reply& reply : replies) {
    threads.emplace_back([&words, &inputs, &reply, runs] {
      std::string path = words[1];
      rknn_context context = 0;
      int code = rknn_init(&context, path.data(), 0, 0, nullptr);
      if (code == RKNN_SUCC) code = InputsFromFiles(context, inputs, 0);
      Reply last = Answer(code);
      for (uint64_t i = 0; i < runs && last.code == RKNN_SUCC; ++i) {
        last = Answer(rknn_run(context, nullptr));
        if (last.code == RKNN_SUCC) last = HashOutputs(context);
        if (i > 0 && last.code == RKNN_SUCC && last.text != reply.text) {
          last = {kBadCommand, "answers of one context differ: " + last.text};
        }
        reply = last;
      }
      reply = last;
      rknn_destroy(context);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Reply& reply : replies) {
    if (reply.code != RKNN_SUCC) return reply;
    if (reply.text != replies[0].text) {
      return {kBadCommand, "answers of two threads differ"};
    }
  }
  return replies[0];
}

Reply Commands::Duplicate(const Words& words) {
  rknn_context from = Context(words[2]);
  rknn_context to = 0;
  const int code = rknn_dup_context(&from, &to);
  if (code == RKNN_SUCC) contexts_[words[1]] = to;
  return Answer(code);
}

Reply Commands::Destroy(const Words& words) {
  return Answer(rknn_destroy(Context(words[1])));
}

Reply Commands::SetCoreMask(const Words& words) {
  return Answer(rknn_set_core_mask(
      Context(words[1]), static_cast<rknn_core_mask>(Number(words[2]))));
}

Reply Commands::SetBatchCores(const Words& words) {
  return Answer(rknn_set_batch_core_num(Context(words[1]),
                                        static_cast<int>(Number(words[2]))));
}

Reply Commands::SetShape(const Words& words) {
  rknn_tensor_attr attr{};
  attr.fmt = static_cast<rknn_tensor_format>(Number(words[2]));
  for (size_t i = 3; i < words.size() && attr.n_dims < RKNN_MAX_DIMS; ++i) {
    attr.dims[attr.n_dims++] = static_cast<uint32_t>(Number(words[i]));
  }
  return Answer(rknn_set_input_shapes(Context(words[1]), 1, &attr));
}

Reply Commands::SetInputs(const Words& words) {
  return Answer(InputsFromFiles(Context(words[1]), words, 2));
}

// As a camera gives them, channels last.
Reply Commands::SetPixels(const Words& words) {
  std::vector<char> pixels = ReadFile(words[2]);
  rknn_input input{};
  input.type = RKNN_TENSOR_UINT8;
  input.fmt = RKNN_TENSOR_NHWC;
  input.buf = pixels.data();
  input.size = static_cast<uint32_t>(pixels.size());
  return Answer(rknn_inputs_set(Context(words[1]), 1, &input));
}

// Zeros, as said and be it wrong.
Reply Commands::SetOneInput(const Words& words) {
  std::vector<char> zeros(Number(words[4]));
  rknn_input input{};
  input.index = static_cast<uint32_t>(Number(words[2]));
  input.type = static_cast<rknn_tensor_type>(Number(words[3]));
  input.fmt = RKNN_TENSOR_NHWC;
  input.buf = zeros.data();
  input.size = static_cast<uint32_t>(zeros.size());
  return Answer(rknn_inputs_set(Context(words[1]), 1, &input));
}

Reply Commands::Run(const Words& words) {
  rknn_run_extend extend{};
  if (words.size() > 2) {
    extend.timeout_ms = static_cast<int32_t>(Number(words[2]));
  }
  const int code = rknn_run(Context(words[1]), &extend);
  return Answer(code, std::to_string(extend.frame_id));
}

Reply Commands::Repeat(const Words& words) {
  const rknn_context context = Context(words[1]);
  std::string first;
  uint64_t right = 0;
  uint64_t wrong = 0;
  Reply failed;
  const uint64_t runs = Number(words[2]);
  for (uint64_t run = 0; run < runs; ++run) {
    Reply reply = Answer(rknn_run(context, nullptr));
    if (reply.code == RKNN_SUCC) reply = HashOutputs(context);
    if (reply.code != RKNN_SUCC) {
      failed = reply;
      continue;
    }
    if (first.empty()) first = reply.text;
    ++(reply.text == first ? right : wrong);
  }
  return {RKNN_SUCC, std::to_string(right) + " " + std::to_string(wrong) + " " +
                         std::to_string(runs - right - wrong) + " " +
                         failed.text};
}

Reply Commands::GetOutputs(const Words& words) {
  return HashOutputs(Context(words[1]));
}

Reply Commands::Compare(const Words& words) {
  double error = 0;
  const int code = WithOutputs(
      Context(words[1]), [&](size_t index, const rknn_output& output) {
        const std::vector<char> wanted = index + 2 < words.size()
                                             ? ReadFile(words[index + 2])
                                             : std::vector<char>();
        error =
            std::max(error, RelativeError(static_cast<const float*>(output.buf),
                                          output.size / sizeof(float), wanted));
      });
  return Answer(code, std::to_string(error));
}

Reply Commands::CountCopies(const Words& words) {
  rknnd_copy_counters copies{};
  const int code =
      rknnd_query_copies(Context(words[1]), &copies, sizeof copies);
  return Answer(code, std::to_string(copies.to_device_inputs_set +
                                     copies.to_device_conversion +
                                     copies.from_device_outputs_get +
                                     copies.from_device_conversion));
}

Reply Commands::Report(const Words& words) {
  rknnd_run_report report{};
  const int code = rknnd_last_run(Context(words[1]), &report);
  return Answer(code, "core " + std::to_string(report.core));
}

Reply Commands::TellTime(const Words& words) {
  rknnd_run_report report{};
  const int code = rknnd_last_run(Context(words[1]), &report);
  return Answer(code, std::to_string(report.run_ns));
}

Reply Commands::AskMemorySize(const Words& words) {
  rknn_mem_size size{};
  const int code =
      rknn_query(Context(words[1]), RKNN_QUERY_MEM_SIZE, &size, sizeof size);
  return Answer(code, std::to_string(size.total_weight_size));
}

Reply Commands::AskSramSize(const Words& words) {
  rknn_mem_size size{};
  const int code =
      rknn_query(Context(words[1]), RKNN_QUERY_MEM_SIZE, &size, sizeof size);
  return Answer(code, std::to_string(size.total_sram_size) + " " +
                          std::to_string(size.free_sram_size));
}

}  // namespace rknnd::integration
