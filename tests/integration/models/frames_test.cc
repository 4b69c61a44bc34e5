// Frames as cameras make them, from the process that fills them to the answer,
// and memory known by its address. What a conversion computes is tested with
// the device; here are the ways there.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "base/posix/unique_fd.h"
#include "tests/integration/harness/files.h"
#include "tests/integration/harness/integration_test.h"
#include "tests/integration/harness/rknnctl.h"

namespace rknnd::integration {
namespace {

using testing::SizeIs;

// RKNND_PIXEL_*: "FORMAT WIDTH HEIGHT FIT CX CY CW CH".
constexpr char kRgb16[] = "3 16 16 0 0 0 0 0";
constexpr char kNv12Of32[] = "1 32 32 0 0 0 0 0";

class FramesTest : public IntegrationTest {
 protected:
  void SetUp() override {
    StartDaemon();
    StartNeighbour();
    model_ = MakeConvNet(folder());  // a picture of 16x16, three channels
    client_ = StartClient();
    ASSERT_TRUE(Done(client_->Do("init a " + model_.path)));
  }

  // 16x16 pixels, in rows of `stride` bytes behind `lead` bytes.
  static std::string Pixels(size_t stride, size_t lead = 0) {
    std::string bytes(lead + 15 * stride + 48, '\x7f');
    for (size_t y = 0; y < 16; ++y) {
      for (size_t i = 0; i < 48; ++i) {
        bytes[lead + y * stride + i] = static_cast<char>(y * 37 + i * 11);
      }
    }
    return bytes;
  }

  // The answer to those pixels as rknn_inputs_set takes them.
  std::string AnswerToPixels() {
    const std::string file = WriteFile(folder() + "/pixels", Pixels(48));
    EXPECT_TRUE(Done(client_->Do("pixels a " + file)));
    return AnswerOf(*client_);
  }
  static std::string AnswerOf(ClientProcess& client) {
    EXPECT_TRUE(Done(client.Do("run a")));
    const Reply reply = client.Do("outputs a");
    EXPECT_TRUE(Done(reply));
    return reply.text;
  }

  // Memory 'm' of `client` with those pixels at offset 100, 64 bytes a row.
  void MakeFrame(ClientProcess& client) {
    ASSERT_TRUE(Done(client.Do("create m a 4096")));
    ASSERT_TRUE(Done(client.Do(
        "fill m " + WriteFile(folder() + "/frame", Pixels(64, 100)))));
  }

  // Of all contexts: the neighbour runs only when it is asked.
  uint64_t Converted() {
    uint64_t bytes = 0;
    for (const auto& context :
         AskRknnctl(folder(), daemon().target(), {"contexts"})) {
      bytes +=
          context["copied_bytes"]["to_device"]["conversion"].get<uint64_t>();
    }
    return bytes;
  }

  TestModel model_;
  std::unique_ptr<ClientProcess> client_;
};

TEST_F(FramesTest, FrameAnswersAsThePixelsItHolds) {
  const std::string wanted = AnswerToPixels();
  MakeFrame(*client_);
  ASSERT_TRUE(
      Done(client_->Do(std::string("camera_frame a ") + kRgb16 + " m 100 64")));
  EXPECT_EQ(AnswerOf(*client_), wanted);
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(FramesTest, BytesOfThePictureAreCountedAsConverted) {
  MakeFrame(*client_);
  const std::string before = client_->Do("copies a").text;
  ASSERT_EQ(before, "0");
  ASSERT_TRUE(Done(client_->Do(std::string("camera_frame a ") + kNv12Of32 +
                               " m 0 0 m 1024 0")));
  const uint64_t others = Converted();
  ASSERT_TRUE(Done(client_->Do("run a")));
  ASSERT_TRUE(Done(client_->Do("run a")));
  EXPECT_EQ(Converted(), others + 2 * 768U);
  // Results leave as floats in planes: 4 x 16 x 16.
  EXPECT_EQ(client_->Do("copies a").text, std::to_string(2 * (768 + 4096)));
}

TEST_F(FramesTest, TensorTakesTheFramesPlaceAgain) {
  const std::string wanted = AnswerToPixels();
  MakeFrame(*client_);
  ASSERT_TRUE(Done(client_->Do(std::string("camera_frame a ") + kNv12Of32 +
                               " m 0 0 m 1024 0")));
  EXPECT_NE(AnswerOf(*client_), wanted);
  EXPECT_EQ(AnswerToPixels(), wanted);
}

TEST_F(FramesTest, OneProcessFillsAndAnotherInfers) {
  const std::string wanted = AnswerToPixels();
  const auto camera = StartClient();
  ASSERT_TRUE(Done(camera->Do("init a " + model_.path)));
  MakeFrame(*camera);
  const std::string path = folder() + "/camera.sock";
  ASSERT_TRUE(Done(camera->Do("listen " + path)));
  client_->Send("import m a from:" + path + ":0 4096 3996 100");
  ASSERT_TRUE(Done(camera->Do("hand m")));
  ASSERT_TRUE(Done(client_->Receive()));
  ASSERT_TRUE(
      Done(client_->Do(std::string("camera_frame a ") + kRgb16 + " m 0 64")));
  EXPECT_EQ(AnswerOf(*client_), wanted);

  // The next frame, in the same memory.
  ASSERT_TRUE(Done(camera->Do("poke m 700 200")));
  EXPECT_NE(AnswerOf(*client_), wanted);

  // The camera goes, its memory stays with whom it gave it to.
  camera->Kill();
  ASSERT_TRUE(Done(client_->Do("run a")));
}

TEST_F(FramesTest, MemoryThatWasDestroyedStaysWithTheFrame) {
  const std::string wanted = AnswerToPixels();
  MakeFrame(*client_);
  ASSERT_TRUE(
      Done(client_->Do(std::string("camera_frame a ") + kRgb16 + " m 100 64")));
  ASSERT_TRUE(Done(client_->Do("destroy_mem a m")));
  EXPECT_EQ(AnswerOf(*client_), wanted);
}

TEST_F(FramesTest, FrameOutlivesTheDaemon) {
  const std::string wanted = AnswerToPixels();
  MakeFrame(*client_);
  ASSERT_TRUE(
      Done(client_->Do(std::string("camera_frame a ") + kRgb16 + " m 100 64")));
  ASSERT_EQ(AnswerOf(*client_), wanted);
  for (int i = 0; i < 2; ++i) {
    KillDaemon();
    RestartDaemon();
    EXPECT_EQ(AnswerOf(*client_), wanted);
  }
}

TEST_F(FramesTest, PlacementSaysWhereTheFrameComesToLie) {
  const Reply reply = client_->Do("place a 1 64 32 1 0 0 0 0");
  ASSERT_TRUE(Done(reply));
  EXPECT_EQ(reply.text, "0,4 16x8 scale 0.250000 offset 0.000000");
  EXPECT_EQ(client_->Do("place a 1 64 32 0 32 0 32 32").text,
            "0,0 16x16 scale 0.500000 offset -16.000000");
  EXPECT_THAT(client_->Do("place a 1 64 32 0 40 0 32 32"),
              Fails(RKNN_ERR_PARAM_INVALID, "the crop of 32x32 at 40,0"));
}

TEST_F(FramesTest, FramesThatCannotBeAreRefusedAndLeaveWhatWasBound) {
  const std::string wanted = AnswerToPixels();
  MakeFrame(*client_);
  const auto refused = [&](const std::string& frame, const std::string& words) {
    const Reply reply = client_->Do("camera_frame a " + frame);
    EXPECT_NE(reply.code, RKNN_SUCC) << frame;
    EXPECT_NE(reply.text.find(words), std::string::npos) << reply.text;
  };
  refused("3 16 16 0 0 0 0 0", "the memory of plane 0 is NULL");
  refused("1 32 32 0 0 0 0 0 m 0 0",
          "plane 1 of the frame for input 0 'image' "
          "has no memory");
  refused("3 16 16 0 0 0 0 0 m 0 47",
          "stride 47 of plane 0 is less than the "
          "48 bytes");
  refused("1 31 32 0 0 0 0 0 m 0 0 m 1024 0", "width 31 is odd");
  refused("1 32 32 0 1 0 30 32 m 0 0 m 1024 0", "crop_x 1 is odd");
  refused("3 16 16 0 8 8 9 8 m 0 0", "the crop of 9x8 at 8,8 is not inside");
  refused("3 16 16 0 0 0 0 0 m 3400 0", "has 696 bytes, 768 needed");
  refused("3 16 16 0 0 0 0 0 m 4096 0",
          "starts at offset 4096 of a memory of "
          "4096 bytes");
  refused("3 16 16 0 0 0 0 0 m 18446744073709551615 0", "starts at offset");
  refused("3 16384 16384 0 0 0 0 0 m 0 4294967295", "4096 bytes, 70");
  refused("3 4294967295 1 0 0 0 0 0 m 0 0", "each side is 1 to 16384");
  refused("9 16 16 0 0 0 0 0 m 0 0", "pixel format 9 does not exist");
  refused("3 16 16 7 0 0 0 0 m 0 0", "fit 7 does not exist");
  refused("3 16 16 0 0 0 0 0 m 0 0 m 0 0 m 0 0", "plane 2 has memory");
  EXPECT_EQ(AnswerOf(*client_), wanted);
  EXPECT_TRUE(NeighbourIsWell());
}

// ---- memory by its address --------------------------------------------------

class PhysicalTest : public IntegrationTest {
 protected:
  static constexpr off_t kBegin = 0x10000000;
  static constexpr off_t kSize = 0x10000;

  void StartWith(uid_t uid) {
    device_ = folder() + "/device";
    file_.reset(open(device_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(ftruncate(file_.get(), kBegin + kSize), 0);
    const std::string config =
        "[[physical_memory]]\nuid = " + std::to_string(uid) +
        "\nbegin = 0x10000000\nsize = 0x10000\ndevice = \"" + device_ + "\"\n";
    StartDaemon(
        {.more = {"--config", WriteFile(folder() + "/rknnd.toml", config)}});
    StartNeighbour();
    client_ = StartClient();
    model_ = MakeRelu(folder());
    ASSERT_TRUE(Done(client_->Do("init a " + model_.path)));
  }

  std::string device_;
  base::UniqueFd file_;
  TestModel model_;
  std::unique_ptr<ClientProcess> client_;
};

TEST_F(PhysicalTest, AllowedMemoryIsReadAtItsAddress) {
  StartWith(getuid());
  const std::string x = ReadText(model_.inputs[0]);
  ASSERT_EQ(pwrite(file_.get(), x.data(), x.size(), kBegin + 4096),
            static_cast<ssize_t>(x.size()));
  ASSERT_TRUE(Done(client_->Do("physical in a 0x10001000 4096")));
  ASSERT_TRUE(Done(client_->Do("bind a in in 0")));
  ASSERT_TRUE(Done(client_->Do("run a")));
  EXPECT_TRUE(Right(client_->Do("compare a" + model_.output_list())));
  bool shown = false;
  for (const auto& buffer :
       AskRknnctl(folder(), daemon().target(), {"buffers"})) {
    shown = shown || buffer["heap"] == "physical";
  }
  EXPECT_TRUE(shown);

  KillDaemon();
  RestartDaemon();
  ASSERT_TRUE(Done(client_->Do("run a")));
  EXPECT_TRUE(Right(client_->Do("compare a" + model_.output_list())));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(PhysicalTest, MemoryThatIsNotAllowedIsRefusedWithTheKeyToSet) {
  StartWith(getuid());
  EXPECT_THAT(client_->Do("physical in a 0x1000f000 8192"),
              Fails(RKNN_ERR_FAIL, "[[physical_memory]]"));
  EXPECT_THAT(client_->Do("physical in a 0xffffffffffffffff 2"),
              Fails(RKNN_ERR_FAIL, "end beyond all addresses"));
  EXPECT_THAT(client_->Do("physical in a 0x10000000 0"),
              Fails(RKNN_ERR_FAIL, "size is 0"));
  EXPECT_TRUE(NeighbourIsWell());
}

TEST_F(PhysicalTest, AnotherUsersMemoryIsRefused) {
  StartWith(getuid() + 1);
  EXPECT_THAT(client_->Do("physical in a 0x10000000 4096"),
              Fails(RKNN_ERR_FAIL,
                    "are not allowed to uid " + std::to_string(getuid())));
  EXPECT_TRUE(NeighbourIsWell());
}

// ---- memory by its descriptor -----------------------------------------------

class ImportedTest : public IntegrationTest {
 protected:
  void SetUp() override {
    StartDaemon();
    client_ = StartClient();
    model_ = MakeRelu(folder());  // 16 numbers in, 16 out
    ASSERT_TRUE(Done(client_->Do("init a " + model_.path)));
    ASSERT_TRUE(Done(client_->Do("create all a 12288")));
  }

  TestModel model_;
  std::unique_ptr<ClientProcess> client_;
};

TEST_F(ImportedTest, PartsOfOneMemoryAreBoundEachAtItsOffset) {
  ASSERT_TRUE(Done(client_->Do("import_of in a all 64 4096")));
  ASSERT_TRUE(Done(client_->Do("import_of out a all 64 8192")));
  ASSERT_TRUE(Done(client_->Do("bind a in in 0")));
  ASSERT_TRUE(Done(client_->Do("bind a out out 0")));
  ASSERT_TRUE(Done(client_->Do("fill in" + model_.input_list())));
  ASSERT_TRUE(Done(client_->Do("run a")));
  EXPECT_TRUE(Right(client_->Do("compare_mem out" + model_.output_list())));
}

TEST_F(ImportedTest, ImportOutlivesTheMemoryItCameFrom) {
  const std::string path = folder() + "/all.sock";
  const auto other = StartClient();
  ASSERT_TRUE(Done(other->Do("init a " + model_.path)));
  ASSERT_TRUE(Done(client_->Do("listen " + path)));
  other->Send("import in a from:" + path + ":0 12288 64 4096");
  ASSERT_TRUE(Done(client_->Do("hand all")));
  ASSERT_TRUE(Done(other->Receive()));
  // The memory that allocated it goes; so does its process.
  ASSERT_TRUE(Done(client_->Do("destroy_mem a all")));
  client_->Kill();

  ASSERT_TRUE(Done(other->Do("bind a in in 0")));
  ASSERT_TRUE(Done(other->Do("fill in" + model_.input_list())));
  ASSERT_TRUE(Done(other->Do("run a")));
  EXPECT_TRUE(Right(other->Do("compare a" + model_.output_list())));
}

TEST_F(ImportedTest, RangePastTheEndIsRefusedWithTheNumbers) {
  EXPECT_THAT(client_->Do("import_of in a all 8192 8192"),
              Fails(RKNN_ERR_FAIL,
                    "size 8192 from offset 8192 ends at 16384, past the end "
                    "of fd "));
  EXPECT_THAT(client_->Do("import_of in a all 4294967295 2147483647"),
              Fails(RKNN_ERR_FAIL, "ends at 6442450942, past the end"));
}

TEST_F(ImportedTest, OffsetBetweenTwoNumbersIsRefused) {
  ASSERT_TRUE(Done(client_->Do("import_of in a all 64 4098")));
  EXPECT_THAT(client_->Do("bind a in in 0"),
              Fails(RKNN_ERR_PARAM_INVALID,
                    "offset 4098 is not a multiple of the 4 bytes of FP32"));
}

}  // namespace
}  // namespace rknnd::integration
