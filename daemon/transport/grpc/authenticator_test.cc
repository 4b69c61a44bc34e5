#include "daemon/transport/grpc/authenticator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/status/matchers.h"
#include "daemon/transport/session/testing/recorded_lines.h"

namespace rknnd::transport {
namespace {

using transport::testing::RecordedLines;

using ::rknnd::base::IsOk;
using ::rknnd::base::StatusIs;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kUserToken[] = "0123456789abcdef-user";
constexpr char kOperatorToken[] = "0123456789abcdef-operator";

class AuthenticatorTest : public ::testing::Test {
 protected:
  AuthenticatorTest() {
    char name[] = "/tmp/authenticator_test.XXXXXX";
    folder_ = mkdtemp(name);
    options_.addresses = {"127.0.0.1:0"};
  }
  ~AuthenticatorTest() override { std::filesystem::remove_all(folder_); }

  std::string WriteTokens(const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_ + "/tokens";
    // Replaced as a whole, as an administrator's tool does.
    const std::string part = path + ".new";
    std::ofstream(part) << text;
    chmod(part.c_str(), mode);
    std::filesystem::rename(part, path);
    return path;
  }

  void UseTokens() {
    options_.tokens =
        WriteTokens("# who\n\nuser ci " + std::string(kUserToken) +
                    "\noperator ops " + kOperatorToken + "\n");
  }

  std::unique_ptr<GrpcAuthenticator> MakeAuthenticator() {
    auto authenticator =
        GrpcAuthenticator::Create(options_, &failures_, &clock_);
    EXPECT_THAT(authenticator.status(), IsOk());
    return *std::move(authenticator);
  }

  static GrpcCredentials FromNetwork() {
    GrpcCredentials shown;
    shown.address = "ipv4:192.0.2.7:40112";
    return shown;
  }
  static GrpcCredentials WithToken(const std::string& token) {
    GrpcCredentials shown = FromNetwork();
    shown.authorization = "Bearer " + token;
    return shown;
  }

  std::string folder_;
  GrpcOptions options_;
  RecordedLines log_;
  base::FakeClock clock_;
  FailureLog failures_{&log_, &clock_};
};

TEST_F(AuthenticatorTest, WhoComesByTheSocketIsAnOperator) {
  UseTokens();
  GrpcCredentials shown;
  shown.address = "unix:";
  const auto peer = MakeAuthenticator()->Admit(shown);
  ASSERT_THAT(peer.status(), IsOk());
  EXPECT_EQ(peer->role, GrpcRole::kOperator);
  EXPECT_EQ(peer->account, "unix:");
}

TEST_F(AuthenticatorTest, WithoutTokensANetworkPeerIsAUser) {
  const auto peer = MakeAuthenticator()->Admit(FromNetwork());
  ASSERT_THAT(peer.status(), IsOk());
  EXPECT_EQ(peer->role, GrpcRole::kUser);
  EXPECT_THAT(RequireOperator(*peer, "a reset"),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       HasSubstr("'192.0.2.7:40112' is none")));
}

TEST_F(AuthenticatorTest, InsecureMakesEveryoneAnOperator) {
  options_.insecure = true;
  const auto peer = MakeAuthenticator()->Admit(FromNetwork());
  ASSERT_THAT(peer.status(), IsOk());
  EXPECT_THAT(RequireOperator(*peer, "a reset"), IsOk());
}

TEST_F(AuthenticatorTest, ATokenGivesNameAndRole) {
  UseTokens();
  const auto authenticator = MakeAuthenticator();
  const auto user = authenticator->Admit(WithToken(kUserToken));
  ASSERT_THAT(user.status(), IsOk());
  EXPECT_EQ(user->role, GrpcRole::kUser);
  EXPECT_EQ(user->Describe(), "192.0.2.7:40112 (ci)");
  EXPECT_EQ(user->account, "ci");
  const auto chief = authenticator->Admit(WithToken(kOperatorToken));
  ASSERT_THAT(chief.status(), IsOk());
  EXPECT_EQ(chief->role, GrpcRole::kOperator);
}

TEST_F(AuthenticatorTest, WithTokensNobodyGetsInWithoutEvenWhereInsecure) {
  UseTokens();
  options_.insecure = true;
  const auto authenticator = MakeAuthenticator();
  EXPECT_THAT(authenticator->Admit(FromNetwork()).status(),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("it has no token")));
  constexpr auto kCode =
      static_cast<size_t>(absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(failures_.failures()[kCode], 1U);
  for (const std::string& wrong :
       {std::string(kUserToken) + "x", std::string("0123456789abcdef-use"),
        std::string(), std::string(5000, 'a')}) {
    EXPECT_THAT(authenticator->Admit(WithToken(wrong)).status(),
                StatusIs(absl::StatusCode::kUnauthenticated,
                         HasSubstr("its token is unknown")));
  }
  GrpcCredentials basic = FromNetwork();
  basic.authorization = "Basic " + std::string(kUserToken);
  EXPECT_THAT(authenticator->Admit(basic).status(),
              StatusIs(absl::StatusCode::kUnauthenticated,
                       HasSubstr("no 'Bearer TOKEN'")));
}

TEST_F(AuthenticatorTest, RefusalsAreLoggedWithoutTheTokenAndNotWithoutEnd) {
  UseTokens();
  const auto authenticator = MakeAuthenticator();
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(
        authenticator->Admit(WithToken("secret-but-wrong-token")).ok());
  }
  EXPECT_FALSE(log_.lines.empty());
  EXPECT_LT(log_.lines.size(), 30U);
  EXPECT_THAT(log_.lines, Each(HasSubstr("192.0.2.7")));
  EXPECT_THAT(log_.lines, Each(Not(HasSubstr("secret-but"))));
}

TEST_F(AuthenticatorTest, ACertificatesNameDecidesTheRole) {
  options_.client_ca = "/etc/rknnd/ca.pem";
  options_.operators = {"ops.example"};
  const auto authenticator = MakeAuthenticator();
  GrpcCredentials shown = FromNetwork();
  shown.certificate = {"camera.example", "CN=camera.example,O=Shop"};
  const auto user = authenticator->Admit(shown);
  ASSERT_THAT(user.status(), IsOk());
  EXPECT_EQ(user->role, GrpcRole::kUser);
  EXPECT_EQ(user->name, "camera.example");
  shown.certificate = {"me", "ops.example"};
  const auto chief = authenticator->Admit(shown);
  ASSERT_THAT(chief.status(), IsOk());
  EXPECT_EQ(chief->role, GrpcRole::kOperator);
}

TEST_F(AuthenticatorTest, ATokenRaisesWhatACertificateGives) {
  UseTokens();
  const auto authenticator = MakeAuthenticator();
  GrpcCredentials shown = WithToken(kOperatorToken);
  shown.certificate = {"camera.example"};
  EXPECT_EQ(authenticator->Admit(shown)->role, GrpcRole::kOperator);
  shown.authorization.reset();
  EXPECT_EQ(authenticator->Admit(shown)->role, GrpcRole::kUser);
}

TEST_F(AuthenticatorTest, AChangedFileIsReadAgain) {
  UseTokens();
  const auto authenticator = MakeAuthenticator();
  WriteTokens("user later 0123456789abcdef-later\n");
  clock_.Advance(2 * base::kSecond);
  EXPECT_THAT(
      authenticator->Admit(WithToken("0123456789abcdef-later")).status(),
      IsOk());
  EXPECT_FALSE(authenticator->Admit(WithToken(kUserToken)).ok());
}

TEST_F(AuthenticatorTest, AFileThatWentWrongChangesNothing) {
  UseTokens();
  const auto authenticator = MakeAuthenticator();
  WriteTokens("user later 0123456789abcdef-later\n", 0644);
  clock_.Advance(2 * base::kSecond);
  EXPECT_THAT(authenticator->Admit(WithToken(kUserToken)).status(), IsOk());
  EXPECT_THAT(log_.lines,
              ::testing::Contains(HasSubstr("keeps its tokens of before")));
  std::filesystem::remove(options_.tokens);
  clock_.Advance(2 * base::kSecond);
  EXPECT_THAT(authenticator->Admit(WithToken(kUserToken)).status(), IsOk());
}

TEST_F(AuthenticatorTest, AFileThatOthersCanReadIsRefused) {
  const std::string good = "user ci " + std::string(kUserToken);
  for (const mode_t mode : {0644, 0604, 0620, 0602}) {
    options_.tokens = WriteTokens(good, mode);
    EXPECT_THAT(
        GrpcAuthenticator::Create(options_, &failures_, &clock_).status(),
        StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("chmod 600")))
        << std::oct << mode;
  }
  options_.tokens = WriteTokens(good, 0640);
  EXPECT_THAT(GrpcAuthenticator::Create(options_, &failures_, &clock_).status(),
              IsOk());
  options_.tokens = folder_ + "/missing";
  EXPECT_THAT(GrpcAuthenticator::Create(options_, &failures_, &clock_).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("missing")));
  options_.tokens = folder_;
  EXPECT_FALSE(GrpcAuthenticator::Create(options_, &failures_, &clock_).ok());
}

TEST(TokenListTest, AWrongLineIsNamedWithoutItsToken) {
  const struct {
    std::string text, message;
  } cases[] = {
      {"user ci", "line 1: must be 'ROLE NAME TOKEN'"},
      {"\nroot ci secretsecretsecret", "line 2: role 'root' is unknown"},
      {"user ci secret", "the token of 'ci' has 6 characters"},
      {"user a secretsecretsecret\nuser b secretsecretsecret",
       "line 2: the token of 'b' is another's"},
      {"# nothing", "has no tokens"},
  };
  for (const auto& wrong : cases) {
    const absl::Status status = TokenList::Parse(wrong.text, "f").status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument,
                                 HasSubstr(wrong.message)));
    EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace rknnd::transport
