// The Open Inference Protocol as a client that knows only the protocol sees it:
// the list of checks of its compliance tests, answers against stored ones and
// against the C API's, and clients that do as they should not.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/values/half.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/grpc_client.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/tcp_relay.h"

namespace rknnd::integration {
namespace {

namespace fs = std::filesystem;

using nlohmann::json;
using testing::HasSubstr;

constexpr char kStream[] = "/inference.GRPCInferenceService/ModelStreamInfer";

std::string BytesOf(const std::vector<float>& numbers) {
  std::string bytes(numbers.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

std::vector<float> NumbersOf(const std::string& bytes) {
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(float));
  return numbers;
}

std::string FileBytes(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

class OpenInferenceTest : public IntegrationTest {
 protected:
  OpenInferenceTest() { fs::create_directory(repository_); }

  // Under the name of its file.
  void Put(const TestModel& model, const std::string& name) {
    fs::copy_file(model.path, repository_ + "/" + name + ".onnx");
  }
  void Serve() {
    StartDaemon({.more = {"--grpc", address_, "--grpc", "127.0.0.1:0",
                          "--model-repository", repository_}});
    client_ = std::make_unique<GrpcClient>(address_);
    EXPECT_TRUE(Eventually([this] {
      return client_->AskOip("ServerReady").reply.value("ready", false);
    }));
  }
  // A relu of 16 numbers as 'relu'.
  void ServeRelu() {
    Put(MakeRelu(folder()), "relu");
    Serve();
  }
  static OipRequest Relu(const std::string& id = "") {
    std::vector<float> x(16);
    for (int i = 0; i < 16; ++i) x[static_cast<size_t>(i)] = 3.0F * i - 20;
    return {"relu", "", id, {{"x", "FP32", {1, 16}, BytesOf(x)}}, {}};
  }
  static void ExpectRelu(const OipAnswer& answer) {
    ASSERT_TRUE(answer.ok()) << answer.message;
    ASSERT_EQ(answer.outputs.size(), 1U);
    EXPECT_EQ(answer.outputs[0].name, "y");
    EXPECT_EQ(answer.outputs[0].datatype, "FP32");
    EXPECT_EQ(answer.outputs[0].shape, (std::vector<int64_t>{1, 16}));
    const std::vector<float> y = NumbersOf(answer.outputs[0].raw);
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(y[static_cast<size_t>(i)], std::max(0.0F, 3.0F * i - 20));
    }
  }
  void ExpectInvalid(const OipRequest& request, const std::string& words) {
    const OipAnswer answer = client_->Infer(request);
    EXPECT_EQ(answer.code, GrpcCode::kInvalidArgument) << answer.message;
    EXPECT_THAT(answer.message, HasSubstr(words));
  }
  json StatisticsOf(const std::string& model) {
    const GrpcJson answer =
        client_->AskOip("ModelStatistics", {{"name", model}});
    EXPECT_TRUE(answer.ok()) << answer.message;
    return answer.reply["model_stats"][0];
  }
  static uint64_t Number(const json& of, const char* name, const char* part) {
    return std::stoull(
        of["inference_stats"][name].value(part, std::string("0")));
  }

  const std::string repository_ = folder() + "/models";
  const std::string address_ = "unix:" + folder() + "/grpc.sock";
  std::unique_ptr<GrpcClient> client_;
};

TEST_F(OpenInferenceTest, EverythingAnswersAlikeOverBothTransports) {
  ServeRelu();
  const GrpcClient tcp(daemon().grpc_address());
  for (const auto& [method, request] :
       std::vector<std::pair<std::string, json>>{
           {"ServerLive", json::object()},
           {"ServerReady", json::object()},
           {"ModelReady", {{"name", "relu"}}},
           {"ServerMetadata", json::object()},
           {"ModelMetadata", {{"name", "relu"}}},
           {"ModelConfig", {{"name", "relu"}, {"version", "1"}}}}) {
    const GrpcJson there = client_->AskOip(method, request);
    const GrpcJson here = tcp.AskOip(method, request);
    EXPECT_TRUE(there.ok()) << method << ": " << there.message;
    EXPECT_EQ(there.reply, here.reply) << method;
  }
  ExpectRelu(client_->Infer(Relu()));
  ExpectRelu(tcp.Infer(Relu()));

  const json metadata = tcp.AskOip("ModelMetadata", {{"name", "relu"}}).reply;
  EXPECT_EQ(metadata["inputs"][0]["name"], "x");
  EXPECT_EQ(metadata["inputs"][0]["datatype"], "FP32");
  EXPECT_EQ(metadata["inputs"][0]["shape"], json({"1", "16"}));
  EXPECT_EQ(metadata["properties"]["sha256"].get<std::string>().size(), 64U);
  const json config = tcp.AskOip("ModelConfig", {{"name", "relu"}}).reply;
  EXPECT_EQ(config["config"]["max_batch_size"], 0);
  EXPECT_EQ(config["config"]["input"][0]["data_type"], "TYPE_FP32");
}

TEST_F(OpenInferenceTest, TypedContentsGiveTheSameAnswer) {
  ServeRelu();
  json request = {{"model_name", "relu"}};
  json input = {{"name", "x"}, {"datatype", "FP32"}, {"shape", {1, 16}}};
  for (int i = 0; i < 16; ++i) {
    input["contents"]["fp32_contents"].push_back(3 * i - 20);
  }
  request["inputs"].push_back(input);
  const GrpcJson typed = client_->AskOip("ModelInfer", request);
  ASSERT_TRUE(typed.ok()) << typed.message;
  const std::string bytes =
      GrpcMessage("inference.ModelInferResponse", typed.reply);
  ExpectRelu(DecodeOip({GrpcCode::kOk, "", bytes}));
  request["raw_input_contents"] = {"AAAA"};
  const GrpcJson mixed = client_->AskOip("ModelInfer", request);
  EXPECT_EQ(mixed.code, GrpcCode::kInvalidArgument);
  EXPECT_THAT(mixed.message, HasSubstr("cannot be mixed"));
}

// Who looks after the board sees it, too, and not only the client.
TEST_F(OpenInferenceTest, FailedRequestsAreInTheDaemonsLog) {
  ServeRelu();
  OipRequest request = Relu();
  request.model = "nothing";
  EXPECT_EQ(client_->Infer(request).code, GrpcCode::kNotFound);
  EXPECT_EQ(daemon().AwaitSaid(": NOT_FOUND: model '"), "nothing");
}

TEST_F(OpenInferenceTest, WhatDoesNotFitTheModelIsInvalid) {
  ServeRelu();
  OipRequest request = Relu();
  request.inputs[0].raw += '\0';
  ExpectInvalid(request, "has 65 bytes");
  request.inputs[0].raw.resize(63);
  ExpectInvalid(request, "has 63 bytes");
  request = Relu();
  request.inputs[0].shape = {int64_t{1} << 62, int64_t{1} << 62};
  ExpectInvalid(request, "the model takes [1,16]");
  request.inputs[0].shape = {-1, -16};
  ExpectInvalid(request, "the model takes [1,16]");
  request = Relu();
  request.inputs[0].name = "z";
  ExpectInvalid(request, "'z' is unknown");
  request = Relu();
  request.inputs.push_back(request.inputs[0]);
  ExpectInvalid(request, "comes twice");
  request.inputs.clear();
  ExpectInvalid(request, "input 'x' is missing");
  request = Relu();
  request.inputs[0].datatype = "BYTES";
  ExpectInvalid(request, "is BYTES");
  request = Relu();
  request.outputs = {"z"};
  ExpectInvalid(request, "output 'z' is unknown");
  const GrpcResult garbage = client_->Call(
      "/inference.GRPCInferenceService/ModelInfer", "\x3a\xff\xff\xff\x0f");
  EXPECT_EQ(garbage.code, GrpcCode::kInvalidArgument);
  request = Relu();
  request.model = "nobody";
  EXPECT_EQ(client_->Infer(request).code, GrpcCode::kNotFound);
  // A hash that no model has.
  request.model = std::string(64, 'a');
  EXPECT_EQ(client_->Infer(request).code, GrpcCode::kNotFound);
  EXPECT_EQ(client_->AskOip("ModelReady", {{"name", request.model}}).code,
            GrpcCode::kNotFound);
  ExpectRelu(client_->Infer(Relu()));
  EXPECT_EQ(client_->AskOip("ModelStatistics").reply["model_stats"].size(), 1U);
}

TEST_F(OpenInferenceTest, WhatThisServerLacksSaysSo) {
  Serve();
  for (const char* const method :
       {"CudaSharedMemoryStatus", "CudaSharedMemoryRegister",
        "CudaSharedMemoryUnregister", "TraceSetting", "LogSettings"}) {
    const GrpcJson answer = client_->AskOip(method);
    EXPECT_EQ(answer.code, GrpcCode::kUnimplemented) << method;
    EXPECT_FALSE(answer.message.empty());
  }
  EXPECT_EQ(client_->Call("/inference.GRPCInferenceService/Nonsense", "").code,
            GrpcCode::kUnimplemented);
}

TEST_F(OpenInferenceTest, IdAndOutputsAreTheRequests) {
  ServeRelu();
  OipRequest request = Relu("frame 7");
  request.outputs = {"y"};
  const OipAnswer answer = client_->Infer(request);
  ExpectRelu(answer);
  EXPECT_EQ(answer.id, "frame 7");
  EXPECT_EQ(answer.model, "relu");
  EXPECT_EQ(answer.version, "1");
}

TEST_F(OpenInferenceTest, TheLargestAreNamedOnDemand) {
  ServeRelu();
  json request =
      GrpcMessageJson("inference.ModelInferRequest", EncodeOip(Relu()));
  request["outputs"] = json::array(
      {{{"name", "y"},
        {"parameters", {{"classification", {{"int64_param", 2}}}}}}});
  const GrpcJson answer = client_->AskOip("ModelInfer", request);
  ASSERT_TRUE(answer.ok()) << answer.message;
  const OipAnswer decoded =
      DecodeOip({GrpcCode::kOk, "",
                 GrpcMessage("inference.ModelInferResponse", answer.reply)});
  EXPECT_EQ(decoded.outputs[0].datatype, "BYTES");
  EXPECT_EQ(decoded.outputs[0].shape, (std::vector<int64_t>{1, 2}));
  EXPECT_THAT(decoded.outputs[0].raw, HasSubstr("25.000000:15"));
  EXPECT_THAT(decoded.outputs[0].raw, HasSubstr("22.000000:14"));
}

TEST_F(OpenInferenceTest, ListedShapesAreServedSideBySide) {
  const TestModel model = MakeListedConvNet(folder(), {8, 12});
  Put(model, "net");
  Serve();
  const json metadata =
      client_->AskOip("ModelMetadata", {{"name", "net"}}).reply;
  EXPECT_EQ(metadata["inputs"][0]["shape"], json({"1", "3", "-1", "-1"}));
  const std::string name = metadata["inputs"][0]["name"];
  for (const size_t k : {0U, 1U, 0U}) {
    const int64_t side = k == 0 ? 8 : 12;
    const OipAnswer answer = client_->Infer(
        {"net",
         "",
         "",
         {{name, "FP32", {1, 3, side, side}, FileBytes(model.inputs[k])}},
         {}});
    ASSERT_TRUE(answer.ok()) << answer.message;
    EXPECT_EQ(answer.outputs[0].raw, FileBytes(model.outputs[k]));
  }
}

TEST_F(OpenInferenceTest, StatisticsRiseByOneForEachRequest) {
  ServeRelu();
  EXPECT_EQ(StatisticsOf("relu").value("inference_count", ""), "0");
  for (int i = 0; i < 3; ++i) ExpectRelu(client_->Infer(Relu()));
  OipRequest wrong = Relu();
  wrong.inputs[0].raw.clear();
  EXPECT_FALSE(client_->Infer(wrong).ok());
  const json statistics = StatisticsOf("relu");
  EXPECT_EQ(statistics["inference_count"], "3");
  EXPECT_EQ(Number(statistics, "success", "count"), 3U);
  EXPECT_EQ(Number(statistics, "fail", "count"), 1U);
  uint64_t parts = 0;
  for (const char* const part :
       {"queue", "compute_input", "compute_infer", "compute_output"}) {
    EXPECT_EQ(Number(statistics, part, "count"), 3U);
    parts += Number(statistics, part, "ns");
  }
  EXPECT_GT(Number(statistics, "compute_infer", "ns"), 0U);
  EXPECT_LE(parts, Number(statistics, "success", "ns"));
  EXPECT_EQ(client_->AskOip("ModelStatistics", {{"name", "nobody"}}).code,
            GrpcCode::kNotFound);
}

TEST_F(OpenInferenceTest, ModelsOfSessionsHaveTheNamesOfTheirFiles) {
  Serve();
  const TestModel model = MakeRelu(folder());
  const std::string name = fs::path(model.path).stem().string();
  const auto owner = StartClient();
  ASSERT_TRUE(Done(owner->Do("init a " + model.path)));
  OipRequest request = Relu();
  request.model = name;
  const OipAnswer answer = client_->Infer(request);
  ExpectRelu(answer);
  const json metadata =
      client_->AskOip("ModelMetadata", {{"name", name}}).reply;
  request.model = metadata["properties"]["sha256"];
  ExpectRelu(client_->Infer(request));
  const json index = client_->AskOip("RepositoryIndex").reply["models"];
  EXPECT_THAT(index.dump(), HasSubstr("\"" + name + "\""));
  // The name goes with the session, though the daemon keeps the model a while.
  EXPECT_TRUE(Done(owner->Do("destroy a")));
  EXPECT_TRUE(Eventually([&] {
    return client_->AskOip("ModelReady", {{"name", name}}).code ==
           GrpcCode::kNotFound;
  }));
}

// Many clients refuse a whole message for one wrong byte of a string.
TEST_F(OpenInferenceTest, ASessionsFileMayHaveAnyNameAndSpoilsNoAnswer) {
  Serve();
  const std::string path = folder() + "/odd\xFF.onnx";
  fs::rename(MakeRelu(folder()).path, path);
  const auto owner = StartClient();
  ASSERT_TRUE(Done(owner->Do("init a " + path)));
  const json index = client_->AskOip("RepositoryIndex").reply["models"];
  ASSERT_EQ(index.size(), 1U);
  EXPECT_EQ(index[0]["name"], "odd?");
  OipRequest request = Relu();
  request.model = "odd?";
  ExpectRelu(client_->Infer(request));
}

// Bit for bit: the same network, the same bytes in.
TEST_F(OpenInferenceTest, AnswersAreThoseOfTheCApi) {
  const TestModel model = MakeConvNet(folder());
  Put(model, "net");
  Serve();
  const json metadata =
      client_->AskOip("ModelMetadata", {{"name", "net"}}).reply;
  std::vector<int64_t> shape;
  for (const json& dim : metadata["inputs"][0]["shape"]) {
    shape.push_back(std::stoll(dim.get<std::string>()));
  }
  const OipAnswer answer =
      client_->Infer({"net",
                      "",
                      "",
                      {{metadata["inputs"][0]["name"], "FP32", shape,
                        FileBytes(model.inputs[0])}},
                      {}});
  ASSERT_TRUE(answer.ok()) << answer.message;
  EXPECT_EQ(answer.outputs[0].raw, FileBytes(model.outputs[0]));
  const std::string file = WriteFile(folder() + "/oip", answer.outputs[0].raw);
  const auto c_api = StartClient();
  ASSERT_TRUE(Done(c_api->Do("init a " + model.path)));
  ASSERT_TRUE(Done(c_api->Do("inputs a" + model.input_list())));
  ASSERT_TRUE(Done(c_api->Do("run a")));
  EXPECT_TRUE(Right(c_api->Do("compare a " + file), 0));
}

TEST_F(OpenInferenceTest, ManyClientsAtOnceGetTheirOwnAnswers) {
  const TestModel net = MakeConvNet(folder());
  Put(net, "net");
  ServeRelu();
  const json metadata =
      client_->AskOip("ModelMetadata", {{"name", "net"}}).reply;
  std::vector<int64_t> shape;
  for (const json& dim : metadata["inputs"][0]["shape"]) {
    shape.push_back(std::stoll(dim.get<std::string>()));
  }
  const OipRequest picture = {"net",
                              "",
                              "",
                              {{metadata["inputs"][0]["name"], "FP32", shape,
                                FileBytes(net.inputs[0])}},
                              {}};
  const std::string right = FileBytes(net.outputs[0]);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const GrpcClient client(address_);
      for (int i = 0; i < 20; ++i) {
        const std::string id = std::to_string(t) + "/" + std::to_string(i);
        const OipAnswer relu = client.Infer(Relu(id));
        ExpectRelu(relu);
        EXPECT_EQ(relu.id, id);
        const OipAnswer conv = client.Infer(picture);
        ASSERT_TRUE(conv.ok()) << conv.message;
        EXPECT_EQ(conv.outputs[0].raw, right);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Number(StatisticsOf("relu"), "success", "count"), 160U);
}

TEST_F(OpenInferenceTest, AStreamAnswersEachRequestAndErrorsDoNotEndIt) {
  ServeRelu();
  const auto stream = client_->Start(kStream);
  constexpr int kRequests = 100;
  constexpr int kAhead = 12;  // in flight at one time
  std::set<std::string> right, wrong;
  for (int i = 0; i < kRequests + kAhead; ++i) {
    if (i < kRequests) {
      OipRequest request = Relu(std::to_string(i));
      if (i % 10 == 3) request.inputs[0].raw.clear();
      ASSERT_TRUE(stream->Write(EncodeOip(request)));
    }
    if (i < kAhead) continue;
    const auto bytes = stream->Read();
    ASSERT_TRUE(bytes.has_value());
    const json answer =
        GrpcMessageJson("inference.ModelStreamInferResponse", *bytes);
    const std::string id = answer["infer_response"]["id"];
    const std::string error = answer["error_message"];
    EXPECT_THAT(error, testing::AnyOf("", HasSubstr("has 0 bytes")));
    (error.empty() ? right : wrong).insert(id);
  }
  EXPECT_EQ(right.size(), 90U);
  EXPECT_EQ(wrong.size(), 10U);
  EXPECT_TRUE(stream->WritesDone());
  EXPECT_FALSE(stream->Read().has_value());
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(OpenInferenceTest, AStreamThatAsksForItEndsWithAnErrorsStatus) {
  ServeRelu();
  GrpcClientOptions options;
  options.headers = {{"triton_grpc_error", "true"}};
  const GrpcClient client(address_, options);
  const auto stream = client.Start(kStream);
  OipRequest request = Relu();
  request.model = "nobody";
  EXPECT_TRUE(stream->Write(EncodeOip(request)));
  EXPECT_FALSE(stream->Read().has_value());
  EXPECT_EQ(stream->Finish().code, GrpcCode::kNotFound);
}

// What it has sent is held as far as its window; what it has not read holds
// nobody up.
TEST_F(OpenInferenceTest, AClientThatNeverReadsHoldsNobodyUp) {
  ServeRelu();
  const auto stream = client_->Start(kStream);
  std::thread writer([&] {
    while (stream->Write(EncodeOip(Relu(std::string(100000, 'i'))))) {
    }
  });
  const GrpcClient other(address_);
  for (int i = 0; i < 50; ++i) ExpectRelu(other.Infer(Relu()));
  stream->Cancel();
  writer.join();
  ExpectRelu(other.Infer(Relu()));
}

TEST_F(OpenInferenceTest, RequestsEndAtTheirDeadlines) {
  const TestModel slow = MakeSlow(folder());
  Put(slow, "slow");
  Serve();
  const json metadata =
      client_->AskOip("ModelMetadata", {{"name", "slow"}}).reply;
  std::vector<int64_t> shape;
  for (const json& dim : metadata["inputs"][0]["shape"]) {
    shape.push_back(std::stoll(dim.get<std::string>()));
  }
  OipRequest request = {"slow",
                        "",
                        "",
                        {{metadata["inputs"][0]["name"], "FP32", shape,
                          FileBytes(slow.inputs[0])}},
                        {}};
  ASSERT_TRUE(client_->Infer(request).ok());
  // More than there is room to run, with the protocol's own limit.
  json message =
      GrpcMessageJson("inference.ModelInferRequest", EncodeOip(request));
  message["parameters"]["timeout"]["int64_param"] = 1;
  const GrpcJson late = client_->AskOip("ModelInfer", message);
  EXPECT_EQ(late.code, GrpcCode::kDeadlineExceeded) << late.message;
  GrpcClientOptions hurried;
  hurried.timeout = std::chrono::milliseconds(1);
  EXPECT_EQ(GrpcClient(address_, hurried).Infer(request).code,
            GrpcCode::kDeadlineExceeded);
  // A client that goes takes its request with it.
  const auto stream = client_->Start(kStream);
  for (int i = 0; i < 8; ++i) EXPECT_TRUE(stream->Write(EncodeOip(request)));
  stream->Cancel();
  EXPECT_TRUE(client_->Infer(request).ok());
}

// As over a slow line: of what is to be moved, little is there at a time.
TEST_F(OpenInferenceTest, ALargeRequestMayComeInSmallPieces) {
  constexpr int kSide = 320;
  const TestModel model = MakeConvNetOfSide(folder(), kSide);
  Put(model, "net");
  Serve();
  const std::string address = daemon().grpc_address();
  TcpRelay line(std::stoi(address.substr(address.rfind(':') + 1)));
  auto client = std::make_unique<GrpcClient>(line.address());
  const std::string picture = FileBytes(model.inputs[0]);
  ASSERT_GT(picture.size(), size_t{1} << 20);
  const OipRequest request = {
      "net", "", "", {{"image", "FP32", {1, 3, kSide, kSide}, picture}}, {}};
  for (const size_t piece : {16'000, 1'400, 97}) {
    line.CutInto(piece);
    const OipAnswer answer = client->Infer(request);
    ASSERT_TRUE(answer.ok()) << piece << ": " << answer.message;
    EXPECT_TRUE(answer.outputs[0].raw == FileBytes(model.outputs[0])) << piece;
  }
  client.reset();
  client_.reset();
  // gRPC's own end may last ten seconds after answers that were not taken at
  // once.
  EXPECT_EQ(EndDaemon(8 * base::kSecond), 0);
}

// A call that has sent nothing, one that waits for its answers, and a stream
// that idles.
TEST_F(OpenInferenceTest, TheEndOfTheDaemonEndsEveryCall) {
  ServeRelu();
  const auto silent =
      client_->Start("/inference.GRPCInferenceService/ModelInfer");
  const auto idle = client_->Start(kStream);
  EXPECT_TRUE(idle->Write(EncodeOip(Relu())));
  EXPECT_TRUE(idle->Read().has_value());
  const auto busy = client_->Start(kStream);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(busy->Write(EncodeOip(Relu())));
  EXPECT_TRUE(busy->Read().has_value());
  EXPECT_EQ(EndDaemon(), 0);
  EXPECT_FALSE(idle->Read().has_value());
  while (busy->Read().has_value()) {
  }
  EXPECT_EQ(idle->Finish().code, GrpcCode::kUnavailable);
  EXPECT_EQ(busy->Finish().code, GrpcCode::kUnavailable);
  // Whether the server had seen this one, its client cannot know.
  EXPECT_THAT(silent->Finish().code,
              testing::AnyOf(GrpcCode::kUnavailable, GrpcCode::kCancelled));
}

struct Stored {
  const char* name;
  double tolerance;
  const char* datatype = "FP32";
};

std::vector<float> HalvesOf(const std::string& bytes) {
  std::vector<float> numbers;
  for (size_t at = 0; at + sizeof(base::Half) <= bytes.size();
       at += sizeof(base::Half)) {
    base::Half half{};
    std::memcpy(&half, bytes.data() + at, sizeof half);
    numbers.push_back(base::HalfToFloat(half));
  }
  return numbers;
}

class StoredAnswersTest : public OpenInferenceTest,
                          public testing::WithParamInterface<Stored> {};

TEST_P(StoredAnswersTest, ComeBackOverTheNetwork) {
  const auto model = SharedModel(GetParam().name, 0);
  if (!model) GTEST_SKIP() << GetParam().name << " is not in RKNND_SHARED";
  Put(*model, "net");
  Serve();
  const json metadata =
      client_->AskOip("ModelMetadata", {{"name", "net"}}).reply;
  OipRequest request = {"net", "", "", {}, {}};
  for (size_t i = 0; i < model->inputs.size(); ++i) {
    const json& input = metadata["inputs"][i];
    OipTensor tensor = {
        input["name"], input["datatype"], {}, FileBytes(model->inputs[i])};
    for (const json& dim : input["shape"]) {
      tensor.shape.push_back(std::stoll(dim.get<std::string>()));
    }
    request.inputs.push_back(tensor);
  }
  const OipAnswer answer = client_->Infer(request);
  ASSERT_TRUE(answer.ok()) << answer.message;
  ASSERT_EQ(answer.outputs.size(), model->outputs.size());
  for (size_t i = 0; i < answer.outputs.size(); ++i) {
    EXPECT_EQ(answer.outputs[i].datatype, GetParam().datatype);
    const auto numbers_of =
        answer.outputs[i].datatype == "FP16" ? HalvesOf : NumbersOf;
    const std::vector<float> right = numbers_of(FileBytes(model->outputs[i]));
    const std::vector<float> got = numbers_of(answer.outputs[i].raw);
    ASSERT_EQ(got.size(), right.size());
    float largest = 0;
    for (const float value : right) largest = std::max(largest, abs(value));
    for (size_t k = 0; k < got.size(); ++k) {
      ASSERT_NEAR(got[k], right[k], GetParam().tolerance * largest);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    , StoredAnswersTest,
    testing::Values(Stored{"mnist_8", 1e-4}, Stored{"ultraface_rfb_320", 1e-4},
                    Stored{"retinaface_int8_qdq", 1e-6},
                    Stored{"shufflenet_v2_int8", 1e-2},
                    Stored{"squeezenet_fp16", 1e-3, "FP16"}),
    [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace rknnd::integration
