// Files that are no model, or not one for this device: each is refused with
// what it is and what to do, and costs nobody anything.

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

class BadModelTest : public IntegrationTest {
 protected:
  void SetUp() override {
    StartDaemon();
    StartNeighbour();
    client_ = StartClient();
  }

  std::string Write(std::string_view bytes) {
    return WriteFile(folder() + "/bad.onnx", bytes);
  }

  // As a path and as bytes: refused with these words; nothing stays.
  void ExpectRefused(const std::string& path, int code,
                     const std::string& words) {
    EXPECT_THAT(client_->Do("init m " + path), Fails(code, words));
    EXPECT_THAT(client_->Do("init_bytes m " + path), Fails(code, words));
    EXPECT_EQ(Status().context_count, 1U);
    EXPECT_EQ(Status().model_count, 1U);
    EXPECT_TRUE(NeighbourIsWell());
  }

  std::unique_ptr<ClientProcess> client_;
};

TEST_F(BadModelTest, TruncatedFileIsSaidToBeOne) {
  const std::string whole = ReadText(MakeConvNet(folder()).path);
  ExpectRefused(Write(whole.substr(0, whole.size() / 2)),
                RKNN_ERR_MODEL_INVALID, "is truncated");
}

TEST_F(BadModelTest, ModelCutAnywhereIsRefused) {
  const std::string whole = ReadText(MakeRelu(folder()).path);
  for (size_t size = 1; size < whole.size(); ++size) {
    const Reply reply = client_->Do("init m " + Write(whole.substr(0, size)));
    EXPECT_NE(reply.code, RKNN_SUCC) << size << " bytes";
    EXPECT_NE(reply.text, "") << size << " bytes";
  }
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(BadModelTest, EmptyFileIsSaidToBeOne) {
  const std::string path = Write("");
  EXPECT_THAT(client_->Do("init m " + path),
              Fails(RKNN_ERR_MODEL_INVALID, "0 bytes"));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(BadModelTest, MissingFileAndFolderAreNamed) {
  EXPECT_THAT(client_->Do("init m " + folder() + "/none.onnx"),
              Fails(RKNN_ERR_MODEL_INVALID, folder() + "/none.onnx"));
  EXPECT_THAT(client_->Do("init m " + folder()),
              Fails(RKNN_ERR_MODEL_INVALID, "is no regular file"));
}

TEST_F(BadModelTest, HugeSparseFileIsRefusedBeforeItIsRead) {
  const std::string path = Write("");
  std::filesystem::resize_file(path, uintmax_t{1} << 40);
  EXPECT_THAT(client_->Do("init m " + path),
              Fails(RKNN_ERR_MODEL_INVALID, "1099511627776 bytes"));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(BadModelTest, ZerosAreNoModel) {
  ExpectRefused(Write(std::string(100000, '\0')), RKNN_ERR_MODEL_INVALID,
                "is not an ONNX model (first bytes 00 00");
}

TEST_F(BadModelTest, TextIsNoModel) {
  ExpectRefused(Write("This is a letter, and not a network at all.\n"),
                RKNN_ERR_MODEL_INVALID,
                "is not an ONNX model (first bytes 54 68");
}

TEST_F(BadModelTest, GitLfsPointerIsRecognised) {
  ExpectRefused(Write("version https://git-lfs.github.com/spec/v1\n"
                      "oid sha256:"
                      "4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24"
                      "d17e2393\nsize 12345\n"),
                RKNN_ERR_MODEL_INVALID, "looks like a Git LFS pointer");
}

TEST_F(BadModelTest, WebPageIsRecognised) {
  ExpectRefused(Write("\n<!DOCTYPE html>\n<html><body>404</body></html>\n"),
                RKNN_ERR_MODEL_INVALID, "looks like HTML");
}

TEST_F(BadModelTest, CompiledModelIsRecognised) {
  constexpr char kWords[] = "cannot run on the software NPU; give the ONNX";
  const std::string given =
      SharedFolder() + "/rknn/multiple_input_demo_rk3588.rknn";
  if (std::filesystem::exists(given)) {
    ExpectRefused(given, RKNN_ERR_MODEL_INVALID, kWords);
    EXPECT_THAT(client_->Do("init m " + given),
                Fails(RKNN_ERR_MODEL_INVALID, "is compiled for rk3588"));
  }
  ExpectRefused(Write("RKNN" + std::string(60, '\1') +
                      "{\"target_platform\":[\"rk3576\"]}"),
                RKNN_ERR_MODEL_INVALID, kWords);
}

TEST_F(BadModelTest, StandardOperatorThatIsLackingIsNamedAtTheLoad) {
  const std::string path = MakeLackingOperator(folder()).path;
  for (const char* words : {"'Det'", "'odd_one'", "'lacking.onnx'"}) {
    EXPECT_THAT(client_->Do("init m " + path),
                Fails(RKNN_ERR_MODEL_INVALID, words));
  }
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(BadModelTest, OperatorOfAnotherDomainLoadsAndIsNamedAtTheRun) {
  const TestModel model = MakeCustomOperator(folder());
  ASSERT_TRUE(Done(client_->Do("init m " + model.path)));
  ASSERT_TRUE(Done(client_->Do("inputs m" + model.input_list())));
  for (const char* words : {"'acme::Frobnicate'", "'odd_one'", "'custom'"}) {
    EXPECT_THAT(client_->Do("run m"), Fails(RKNN_ERR_FAIL, words));
  }
  EXPECT_EQ(Status().jobs_running, 0U);
  EXPECT_TRUE(NeighbourIsWell());
}

// ---- good models, wrong data ------------------------------------------------

TEST_F(BadModelTest, RunWithoutInputsNamesTheInput) {
  ASSERT_TRUE(Done(client_->Do("init m " + MakeConvNet(folder()).path)));
  EXPECT_THAT(client_->Do("run m"),
              Fails(RKNN_ERR_INPUT_INVALID, "input 'image' has no data"));
  EXPECT_THAT(client_->Do("outputs m"), Fails(RKNN_ERR_FAIL, "rknn_run first"));
}

TEST_F(BadModelTest, WrongInputsAreRefusedWithWhatIsNeeded) {
  ASSERT_TRUE(Done(client_->Do("init m " + MakeConvNet(folder()).path)));
  const std::string fp32 = std::to_string(RKNN_TENSOR_FLOAT32);
  const std::string uint8 = std::to_string(RKNN_TENSOR_UINT8);
  // 768 numbers: bytes by mistake for floats.
  EXPECT_THAT(client_->Do("input m 0 " + fp32 + " 768"),
              Fails(RKNN_ERR_INPUT_INVALID,
                    "input 'image': 768 bytes given, 3072 needed for "
                    "1x16x16x3 FP32. 768 bytes fit UINT8: set "
                    "type=RKNN_TENSOR_UINT8"));
  EXPECT_THAT(client_->Do("input m 0 " + uint8 + " 767"),
              Fails(RKNN_ERR_INPUT_INVALID, "767 bytes given, 768 needed"));
  EXPECT_THAT(client_->Do("input m 1 " + uint8 + " 768"),
              Fails(RKNN_ERR_INPUT_INVALID, "input index 1 does not exist"));
  EXPECT_THAT(client_->Do("input m 4294967295 " + uint8 + " 768"),
              Fails(RKNN_ERR_INPUT_INVALID, "does not exist"));
  EXPECT_THAT(client_->Do("input m 0 77 768"),
              Fails(RKNN_ERR_INPUT_INVALID, "type 77"));
  EXPECT_THAT(
      client_->Do("input m 0 " + std::to_string(RKNN_TENSOR_INT64) + " 6144"),
      Fails(RKNN_ERR_INPUT_INVALID, "INT64"));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(BadModelTest, StaleContextsAreFoundOut) {
  const std::string path = MakeConvNet(folder()).path;
  ASSERT_TRUE(Done(client_->Do("init m " + path)));
  ASSERT_TRUE(Done(client_->Do("destroy m")));
  ASSERT_TRUE(Done(client_->Do("init other " + path)));
  EXPECT_THAT(client_->Do("destroy m"),
              Fails(RKNN_ERR_CTX_INVALID, "was destroyed"));
  EXPECT_THAT(client_->Do("run m"),
              Fails(RKNN_ERR_CTX_INVALID, "was destroyed"));
  EXPECT_THAT(client_->Do("dup copy m"),
              Fails(RKNN_ERR_CTX_INVALID, "was destroyed"));
  EXPECT_THAT(client_->Do("run never"),
              Fails(RKNN_ERR_CTX_INVALID, "did rknn_init fail?"));
}

}  // namespace
}  // namespace rknnd::integration
