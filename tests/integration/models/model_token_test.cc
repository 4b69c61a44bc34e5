// Models without a file: in memory of the program's own, by a token of another
// process, or only looked at.

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "tests/integration/harness/integration_test.h"

namespace rknnd::integration {
namespace {

class ModelTokenTest : public IntegrationTest {
 protected:
  void SetUp() override { model_ = MakeConvNet(folder()); }

  testing::AssertionResult RunsRight(ClientProcess& client,
                                     const std::string& name) {
    if (auto set = Done(client.Do("inputs " + name + model_.input_list()));
        !set) {
      return set;
    }
    if (auto run = Done(client.Do("run " + name)); !run) return run;
    return Right(client.Do("compare " + name + model_.output_list()));
  }

  TestModel model_;
};

TEST_F(ModelTokenTest, AnotherProcessDuplicatesTheContextWithoutTheFile) {
  StartDaemon();
  const auto owner = StartClient();
  ASSERT_TRUE(Done(owner->Do("init a " + model_.path)));
  const Reply token = owner->Do("token a");
  ASSERT_TRUE(Done(token));
  ASSERT_EQ(unlink(model_.path.c_str()), 0);
  const auto taker = StartClient();
  ASSERT_TRUE(Done(taker->Do("init_token b " + token.text)));
  EXPECT_TRUE(RunsRight(*taker, "b"));
  EXPECT_EQ(Status().model_count, 1U);
  // Of that context again, and after the first has gone.
  EXPECT_EQ(taker->Do("token b").text, token.text);
  ASSERT_TRUE(Done(owner->Do("destroy a")));
  ASSERT_TRUE(Done(taker->Do("init_token c " + token.text)));
  EXPECT_TRUE(RunsRight(*taker, "c"));
  ASSERT_TRUE(Done(taker->Do("dup d c")));
  EXPECT_TRUE(RunsRight(*taker, "d"));
}

TEST_F(ModelTokenTest, FlagsComeWithTheToken) {
  StartDaemon();
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model_.path + " 0x200")));
  const Reply token = client->Do("token a");
  ASSERT_TRUE(Done(client->Do("init_token b " + token.text)));
  ASSERT_TRUE(Done(client->Do("inputs b" + model_.input_list())));
  EXPECT_THAT(client->Do("run b"),
              Fails(RKNN_ERR_FAIL, "rknn_set_internal_mem"));
}

TEST_F(ModelTokenTest, TokenOfAForeignModelSaysThatTheDaemonLacksIt) {
  StartDaemon();
  const auto local = StartClient({}, kLocal);
  ASSERT_TRUE(Done(local->Do("init a " + model_.path)));
  const Reply token = local->Do("token a");
  const auto client = StartClient();
  EXPECT_THAT(client->Do("init_token b " + token.text),
              Fails(RKNN_ERR_MODEL_INVALID, "does not have model"));
}

TEST_F(ModelTokenTest, TextThatIsNoTokenIsRefused) {
  StartDaemon();
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model_.path)));
  std::string text = client->Do("token a").text;
  EXPECT_THAT(client->Do("init_token b nonsense"),
              Fails(RKNN_ERR_PARAM_INVALID, "no model token"));
  text[20] = text[20] == '0' ? '1' : '0';
  EXPECT_THAT(client->Do("init_token b " + text),
              Fails(RKNN_ERR_PARAM_INVALID, "changed on the way"));
  EXPECT_THAT(client->Do("token nothing"), Fails(RKNN_ERR_CTX_INVALID, ""));
}

TEST_F(ModelTokenTest, ContextOfATokenComesBackFromTheCacheFolder) {
  StartDaemon({.cache_dir = folder() + "/cache"});
  const auto owner = StartClient();
  ASSERT_TRUE(Done(owner->Do("init a " + model_.path)));
  const Reply token = owner->Do("token a");
  const auto taker = StartClient();
  ASSERT_TRUE(Done(taker->Do("init_token b " + token.text)));
  owner->Kill();
  EndDaemon();
  RestartDaemon();
  EXPECT_TRUE(RunsRight(*taker, "b"));
  // So is the token itself good.
  ASSERT_TRUE(Done(taker->Do("init_token c " + token.text)));
  EXPECT_TRUE(RunsRight(*taker, "c"));
}

TEST_F(ModelTokenTest, ModelInMemoryOfTheProgramIsLoaded) {
  StartDaemon();
  const auto client = StartClient();
  for (const std::string mode : {"pointer", "fd", "slice"}) {
    ASSERT_TRUE(Done(
        client->Do("init_zero_copy " + mode + " " + model_.path + " " + mode)));
    EXPECT_TRUE(RunsRight(*client, mode)) << mode;
    const Reply memory =
        client->Do("model_memory " + mode + " " + mode + ".model");
    EXPECT_EQ(memory.text.substr(0, 5), mode == "fd" ? "other" : "same ")
        << mode;
  }
  EXPECT_EQ(Status().model_count, 1U);
}

TEST_F(ModelTokenTest, WrongModelMemoryIsRefusedInWords) {
  StartDaemon();
  StartNeighbour();
  const auto client = StartClient();
  EXPECT_THAT(client->Do("init_zero_copy a " + model_.path + " short"),
              Fails(RKNN_ERR_MODEL_INVALID, "it was shrunk"));
  EXPECT_THAT(client->Do("init_zero_copy a " + model_.path + " outside"),
              Fails(RKNN_ERR_MODEL_INVALID, "real_model_offset 1073741824"));
  EXPECT_THAT(client->Do("init_zero_copy a " + model_.path + " bad_fd"),
              Fails(RKNN_ERR_MODEL_INVALID, "987654 is not an open"));
  client->Kill();
  EXPECT_TRUE(NeighbourIsWell());
  EXPECT_TRUE(OnlyNeighbourIsLeft());
}

TEST_F(ModelTokenTest, ModelWithoutMemoryOfTheProgramsTellsItsWeights) {
  StartDaemon();
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model_.path)));
  EXPECT_EQ(client->Do("model_memory a").text,
            "no fd " + client->Do("memory_size a").text);
}

TEST_F(ModelTokenTest, MemoryWithoutAContextLeavesNoDescriptor) {
  StartDaemon();
  const auto client = StartClient();
  // Of contexts that were, that never were, and before the first.
  EXPECT_TRUE(Done(client->Do("churn_free 1000")));
  ASSERT_TRUE(Done(client->Do("init a " + model_.path)));
  ASSERT_TRUE(Done(client->Do("create m nothing 4096 0x20000")));
  ASSERT_TRUE(Done(client->Do("destroy a")));
  EXPECT_TRUE(Done(client->Do("destroy_mem a m")));
  EXPECT_TRUE(Done(client->Do("churn_free 100")));
  EXPECT_EQ(Status().buffer_count, 0U);
}

TEST_F(ModelTokenTest, ContextThatOnlyLooksTellsSizesAndDoesNotRun) {
  StartDaemon();
  const auto client = StartClient();
  ASSERT_TRUE(Done(client->Do("init a " + model_.path + " 0x100")));
  EXPECT_GT(std::stoul(client->Do("memory_size a").text), 100U);
  EXPECT_GT(std::stoul(client->Do("internal_size a").text), 100U);
  ASSERT_TRUE(Done(client->Do("create m a 4096")));
  EXPECT_THAT(client->Do("bind a m in 0"),
              Fails(RKNN_ERR_FAIL, "COLLECT_MODEL_INFO_ONLY"));
  EXPECT_THAT(client->Do("run a"),
              Fails(RKNN_ERR_FAIL, "COLLECT_MODEL_INFO_ONLY"));
  ASSERT_TRUE(Done(client->Do("dup b a")));
  EXPECT_GT(std::stoul(client->Do("memory_size b").text), 100U);
}

}  // namespace
}  // namespace rknnd::integration
