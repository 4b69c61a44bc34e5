// A camera's frames: captured by one process, computed on by another, in the
// buffers that the camera's driver filled.

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "client/include/rknnd.h"
#include "tests/integration/harness/files.h"
#include "tests/vm/guest_test.h"

namespace rknnd::vm {
namespace {

using integration::ClientProcess;
using integration::MakeFrameNet;
using integration::ReadText;
using integration::TestModel;
using nlohmann::json;
using testing::Contains;

constexpr int kWidth = 320, kHeight = 180;
constexpr size_t kPixels = size_t{kWidth} * kHeight;
constexpr int kBuffers = 3;

class FramesTest : public GuestTest {
 protected:
  void SetUp() override {
    StartDaemon();
    StartNeighbour();
    model_ = MakeFrameNet(folder(), kWidth, kHeight);
    camera_ =
        StartGiver({"camera", std::to_string(kWidth), std::to_string(kHeight),
                    "RGB3", std::to_string(kBuffers)});
    client_ = StartClient();
  }

  // Context 'v', which reads the camera's buffers f0, f1, ... and writes 'out'
  // as the NPU computes it.
  void Connect() {
    ASSERT_TRUE(Done(client_->Do("init v " + model_.path)));
    for (int i = 0; i < kBuffers; ++i) {
      ASSERT_TRUE(Done(Import(*client_, *camera_, i,
                              "f" + std::to_string(i) + " v", 3 * kPixels)));
    }
    BindHalves("v", "out");
  }

  void BindHalves(const std::string& context, const std::string& memory) {
    ASSERT_TRUE(Done(client_->Do("create " + memory + " " + context + " " +
                                 std::to_string(kOutputBytes))));
    ASSERT_TRUE(Done(client_->Do("bind " + context + " " + memory + " out 0 " +
                                 std::to_string(RKNN_TENSOR_FLOAT16))));
  }

  // The answer to the picture in buffer `number`, where it lies.
  std::string RunOn(const std::string& number) {
    EXPECT_TRUE(Done(client_->Do("bind v f" + number + " in 0 " +
                                 std::to_string(RKNN_TENSOR_UINT8))));
    EXPECT_TRUE(Done(client_->Do("run v")));
    return Answer("out");
  }
  std::string Answer(const std::string& memory) {
    return client_->Do("peek " + memory + " 0 " + std::to_string(kOutputBytes))
        .text;
  }

  json Copied(size_t context) {
    return integration::AskRknnctl(folder(), daemon().target(), {"contexts"})
        .at(context)
        .at("copied_bytes");
  }

  static constexpr size_t kOutputBytes = kPixels / 4 * 2;

  TestModel model_;
  std::unique_ptr<Giver> camera_;
  std::unique_ptr<ClientProcess> client_;
};

TEST_F(FramesTest, AreComputedOnWhereTheCameraPutThem) {
  Connect();
  // The same network, given the same bytes by rknn_inputs_set.
  ASSERT_TRUE(Done(client_->Do("init w " + model_.path)));
  BindHalves("w", "copy_out");
  const std::string saved = folder() + "/frame";

  std::set<std::string> pictures;
  for (int i = 0; i < 2 * kBuffers; ++i) {
    const std::string number = camera_->Do("frame");
    const std::string in_place = RunOn(number);
    camera_->Do("save " + number + " " + saved);
    camera_->Do("back " + number);
    ASSERT_TRUE(Done(client_->Do("pixels w " + saved)));
    ASSERT_TRUE(Done(client_->Do("run w")));
    ASSERT_EQ(in_place.size(), 2 * kOutputBytes);
    EXPECT_TRUE(in_place == Answer("copy_out")) << "frame " << i;
    pictures.insert(ReadText(saved));
  }
  // It films: there is a clock in the picture.
  EXPECT_GT(pictures.size(), 1U);
  EXPECT_EQ(pictures.begin()->size(), 3 * kPixels);

  EXPECT_EQ(client_->Do("copies v").text, "0");
  EXPECT_EQ(client_->Do("copies w").text,
            std::to_string(2 * kBuffers * 3 * kPixels));
  EXPECT_THAT(Heaps(), Contains("dma-buf:videobuf2_vmalloc").Times(kBuffers));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(FramesTest, OfACamerasOwnFormatAreConvertedOnTheWayIn) {
  constexpr size_t kNv12Bytes = kPixels * 3 / 2;
  camera_->End();
  camera_ = StartGiver({"camera_ro", std::to_string(kWidth),
                        std::to_string(kHeight), "NV12", "1"});
  ASSERT_TRUE(Done(client_->Do("init v " + model_.path)));
  BindHalves("v", "out");
  ASSERT_TRUE(Done(Import(*client_, *camera_, 0, "f0 v", kNv12Bytes)));
  const auto run_on = [this](const std::string& memory) {
    EXPECT_TRUE(Done(client_->Do(
        "frame v " + memory + " " + std::to_string(RKNND_PIXEL_NV12) + " " +
        std::to_string(kWidth) + " " + std::to_string(kHeight))));
    EXPECT_TRUE(Done(client_->Do("run v")));
    return Answer("out");
  };

  ASSERT_EQ(camera_->Do("frame"), "0");
  const std::string in_place = run_on("f0");
  // The same bytes from elsewhere.
  const std::string saved = folder() + "/frame";
  camera_->Do("save 0 " + saved);
  ASSERT_TRUE(Done(client_->Do("create copy v " + std::to_string(kNv12Bytes))));
  ASSERT_TRUE(Done(client_->Do("fill copy " + saved)));
  EXPECT_TRUE(run_on("copy") == in_place);
  EXPECT_EQ(in_place.size(), 2 * kOutputBytes);
  // Two pictures as the network sees them; no byte by rknn_inputs_set.
  EXPECT_EQ(client_->Do("copies v").text, std::to_string(2 * 3 * kPixels));
}

TEST_F(FramesTest, BuffersAreTheCamerasAgainWhenTheClientIsKilled) {
  Connect();
  RunOn(camera_->Do("frame"));
  client_->Kill();
  EXPECT_TRUE(OnlyNeighbourIsLeft());
  EXPECT_TRUE(Eventually([this] {
    return testing::Value(Exporters(daemon().pid()),
                          Contains("videobuf2_vmalloc").Times(0));
  }));
  EXPECT_TRUE(NeighbourIsWell());

  // Another client goes on with them.
  client_ = StartClient();
  Connect();
  EXPECT_EQ(RunOn(camera_->Do("frame")).size(), 2 * kOutputBytes);
  EXPECT_EQ(client_->Do("copies v").text, "0");
}

TEST_F(FramesTest, LastPictureStaysWhenTheCameraIsKilled) {
  Connect();
  const std::string number = camera_->Do("frame");
  const std::string answer = RunOn(number);
  camera_->Kill();
  ASSERT_TRUE(Done(client_->Do("run v")));
  EXPECT_TRUE(Answer("out") == answer);
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(FramesTest, GoOnWhenTheDaemonIsKilledAndStartedAnew) {
  Connect();
  const std::string number = camera_->Do("frame");
  const std::string answer = RunOn(number);
  KillDaemon();
  RestartDaemon();
  ASSERT_TRUE(Done(client_->Do("run v")));
  EXPECT_TRUE(Answer("out") == answer);
  EXPECT_THAT(Heaps(), Contains("dma-buf:videobuf2_vmalloc").Times(kBuffers));
}

TEST_F(FramesTest, ReadOnlyBuffersAreInputsAndNoOutputs) {
  camera_->End();
  camera_ =
      StartGiver({"camera_ro", std::to_string(kWidth), std::to_string(kHeight),
                  "RGB3", std::to_string(kBuffers)});
  Connect();
  EXPECT_EQ(RunOn(camera_->Do("frame")).size(), 2 * kOutputBytes);
  EXPECT_EQ(
      client_->Do("bind v f0 out 0 " + std::to_string(RKNN_TENSOR_FLOAT16))
          .code,
      RKNN_ERR_PARAM_INVALID);
  EXPECT_TRUE(NeighbourIsWell());
}

}  // namespace
}  // namespace rknnd::vm
