// Models that are served from a folder, as clients of the Open Inference
// Protocol see them: both dialects of loading, files that change or are broken,
// and names that lead elsewhere.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/grpc_client.h"
#include "tests/integration/harness/integer_model.h"
#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

namespace fs = std::filesystem;

using nlohmann::json;
using testing::HasSubstr;

// As JSON has bytes.
std::string Base64(const std::string& bytes) {
  constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  uint32_t held = 0;
  int bits = 0;
  for (const char byte : bytes) {
    held = held << 8 | static_cast<unsigned char>(byte);
    for (bits += 8; bits >= 6; bits -= 6) {
      text += kDigits[held >> (bits - 6) & 63];
    }
  }
  if (bits > 0) text += kDigits[held << (6 - bits) & 63];
  text.resize((text.size() + 3) / 4 * 4, '=');
  return text;
}

class RepositoryTest : public IntegrationTest {
 protected:
  RepositoryTest() { fs::create_directory(repository_); }

  // Renamed into place, as a maintainer should.
  void Put(const std::string& path, const std::string& from) {
    fs::create_directories(fs::path(repository_ + "/" + path).parent_path());
    fs::copy_file(from, repository_ + "/.new");
    fs::rename(repository_ + "/.new", repository_ + "/" + path);
  }
  void Serve() {
    StartDaemon(
        {.more = {"--grpc", address_, "--model-repository", repository_}});
    client_ = std::make_unique<GrpcClient>(address_);
    EXPECT_TRUE(Eventually([this] {
      return client_->AskOip("ServerReady").reply.value("ready", false);
    }));
  }
  // By "name version".
  std::map<std::string, json> Index(bool ready = false) {
    std::map<std::string, json> index;
    const GrpcJson answer =
        client_->AskOip("RepositoryIndex", {{"ready", ready}});
    EXPECT_TRUE(answer.ok()) << answer.message;
    for (const json& model : answer.reply["models"]) {
      index[model["name"].get<std::string>() + " " +
            model["version"].get<std::string>()] = model;
    }
    return index;
  }
  // For 1, 2, ... 16 as x.
  OipAnswer Infer(const std::string& model, const std::string& version = "") {
    std::string x(16 * sizeof(float), '\0');
    for (int i = 0; i < 16; ++i) {
      const auto number = static_cast<float>(i + 1);
      std::memcpy(&x[static_cast<size_t>(i) * sizeof number], &number,
                  sizeof number);
    }
    OipRequest request;
    request.model = model;
    request.version = version;
    request.inputs = {{"x", "FP32", {1, 16}, x}};
    return client_->Infer(request);
  }
  GrpcJson Load(const json& request) {
    return client_->AskOip("RepositoryModelLoad", request);
  }

  const std::string repository_ = folder() + "/models";
  const std::string address_ = "unix:" + folder() + "/grpc.sock";
  std::unique_ptr<GrpcClient> client_;
};

TEST_F(RepositoryTest, EachLayoutIsServedAndABrokenModelStopsNoOther) {
  const std::string relu = MakeRelu(folder()).path;
  Put("file.onnx", relu);
  Put("folder/model.onnx", relu);
  Put("versions/1/model.onnx", relu);
  Put("versions/3/model.onnx", relu);
  Put("broken/1/model.onnx",
      WriteFile(folder() + "/broken", "this is no network"));
  Serve();
  const auto index = Index();
  EXPECT_EQ(index.at("file 1")["state"], "READY");
  EXPECT_EQ(index.at("folder 1")["state"], "READY");
  EXPECT_EQ(index.at("versions 3")["state"], "READY");
  EXPECT_FALSE(index.contains("versions 1"));
  EXPECT_EQ(index.at("broken 1")["state"], "UNAVAILABLE");
  EXPECT_NE(index.at("broken 1")["reason"], "");
  EXPECT_FALSE(Index(/*ready=*/true).contains("broken 1"));
  for (const char* name : {"file", "folder", "versions"}) {
    const OipAnswer answer = Infer(name);
    EXPECT_TRUE(answer.ok()) << answer.message;
    EXPECT_EQ(answer.version, std::string(name) == "versions" ? "3" : "1");
  }
  EXPECT_EQ(Infer("broken").code, GrpcCode::kUnavailable);
  EXPECT_EQ(Infer("versions", "1").code, GrpcCode::kNotFound);
  EXPECT_EQ(Infer("nobody").code, GrpcCode::kNotFound);
}

TEST_F(RepositoryTest, BothDialectsLoadAndUnload) {
  Put("m.onnx", MakeRelu(folder()).path);
  Serve();
  const json kserve = {{"repository_name", "m"}};  // its model_name is field 1
  const json triton = {{"model_name", "m"}};
  for (const json& dialect : {kserve, triton}) {
    const GrpcJson unloaded = client_->AskOip("RepositoryModelUnload", dialect);
    ASSERT_TRUE(unloaded.ok()) << unloaded.message;
    EXPECT_EQ(unloaded.reply["model_name"], "m");
    EXPECT_EQ(unloaded.reply["isUnloaded"], true);
    EXPECT_EQ(Index().at("m 1")["state"], "UNAVAILABLE");
    EXPECT_EQ(Infer("m").code, GrpcCode::kUnavailable);
    const GrpcJson loaded = Load(dialect);
    ASSERT_TRUE(loaded.ok()) << loaded.message;
    EXPECT_EQ(loaded.reply["model_name"], "m");
    EXPECT_EQ(loaded.reply["isLoaded"], true);
    EXPECT_TRUE(Infer("m").ok());
  }
  EXPECT_EQ(Load({{"model_name", "nobody"}}).code, GrpcCode::kNotFound);
}

TEST_F(RepositoryTest, ChangedFileIsTakenWhenItIsLoadedAgain) {
  Put("m/1/model.onnx", MakeRelu(folder()).path);
  Serve();
  Put("m/1/model.onnx", WriteFile(folder() + "/sum", IntegerSum()));
  const auto datatype = [this] {
    return client_->AskOip("ModelMetadata", {{"name", "m"}})
        .reply["inputs"][0]["datatype"];
  };
  EXPECT_EQ(datatype(), "FP32");
  ASSERT_TRUE(Load({{"model_name", "m"}}).ok());
  EXPECT_EQ(datatype(), "INT32");
  // Nothing of a file that is broken takes its place.
  Put("m/1/model.onnx", WriteFile(folder() + "/broken", "no network"));
  const GrpcJson failed = Load({{"model_name", "m"}});
  EXPECT_FALSE(failed.ok());
  EXPECT_NE(failed.message, "");
  EXPECT_EQ(datatype(), "INT32");
}

TEST_F(RepositoryTest, ModelThatIsWrittenOverWhileItIsServedIsStillServed) {
  Put("m.onnx", MakeRelu(folder()).path);
  Serve();
  // In place, as nobody should.
  std::ofstream(repository_ + "/m.onnx", std::ios::trunc) << "gone";
  EXPECT_TRUE(Infer("m").ok());
  fs::remove_all(repository_);
  EXPECT_TRUE(Infer("m").ok());
  EXPECT_EQ(Load({{"model_name", "m"}}).code, GrpcCode::kNotFound);
  EXPECT_TRUE(Infer("m").ok());
}

TEST_F(RepositoryTest, ClientMaySendTheFileWithTheRequest) {
  Serve();
  const std::string bytes = ReadText(MakeRelu(folder()).path);
  EXPECT_EQ(Infer("sent").code, GrpcCode::kNotFound);
  const GrpcJson loaded = Load(
      {{"model_name", "sent"},
       {"parameters",
        {{"config",
          {{"string_param", R"({"name":"sent","version_policy":{"all":{}}})"}}},
         {"file:2/model.onnx", {{"bytes_param", Base64(bytes)}}}}}});
  ASSERT_TRUE(loaded.ok()) << loaded.message;
  EXPECT_EQ(Infer("sent").version, "2");
  ASSERT_TRUE(
      client_->AskOip("RepositoryModelUnload", {{"model_name", "sent"}}).ok());
  EXPECT_FALSE(Index().contains("sent 2"));
  EXPECT_EQ(Infer("sent").code, GrpcCode::kNotFound);
}

TEST_F(RepositoryTest, ParametersOfAnotherKindAreRefused) {
  Serve();
  const std::string text = Base64("bytes");
  for (const json& parameters :
       {json{{"config", {{"int64_param", 1}}}},
        json{{"file:1/model.onnx", {{"string_param", text}}}},
        json{{"nonsense", {{"bool_param", true}}}}}) {
    const GrpcJson loaded =
        Load({{"model_name", "m"}, {"parameters", parameters}});
    EXPECT_EQ(loaded.code, GrpcCode::kInvalidArgument) << parameters;
    EXPECT_THAT(loaded.message, HasSubstr("parameter '")) << parameters;
  }
}

TEST_F(RepositoryTest, NoNameAndNoLinkLeadsOutOfTheFolder) {
  const std::string relu = MakeRelu(folder()).path;
  fs::create_symlink(relu, repository_ + "/link.onnx");
  fs::create_directory_symlink(folder(), repository_ + "/outside");
  Serve();
  for (const std::string& name :
       {std::string("../relu"), std::string(".."), std::string("/etc/passwd"),
        std::string("outside/relu"),
        fs::path(relu).replace_extension().string(), std::string(200, 'm')}) {
    EXPECT_EQ(Load({{"model_name", name}}).code, GrpcCode::kInvalidArgument)
        << name;
  }
  const GrpcJson link = Load({{"model_name", "link"}});
  EXPECT_EQ(link.code, GrpcCode::kInvalidArgument) << link.message;
  EXPECT_THAT(link.message, HasSubstr("symbolic link"));
  EXPECT_EQ(Load({{"model_name", "outside"}}).code, GrpcCode::kInvalidArgument);
  EXPECT_TRUE(Index().empty());
}

}  // namespace
}  // namespace rknnd::integration
