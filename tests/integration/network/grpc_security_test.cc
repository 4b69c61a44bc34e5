// Who gets in by the gRPC port: certificates, tokens, plain text.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include "tests/integration/harness/certificates.h"
#include "tests/integration/network/grpc_harness.h"

namespace rknnd::integration {
namespace {

using testing::HasSubstr;
using Times = CertificateAuthority::Times;

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";

class GrpcSecurityTest : public GrpcTest {
 protected:
  static std::string Quoted(const std::string& text) {
    return "\"" + text + "\"\n";
  }
  void ServeTls(const CertificateFiles& files, const std::string& more = "") {
    Serve("certificate = " + Quoted(files.certificate) +
          "key = " + Quoted(files.key) + more);
  }
  std::string Tokens(mode_t mode = 0600) {
    const std::string path = WriteFile(folder() + "/tokens",
                                       "user ci " + std::string(kToken) + "\n");
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }

  CertificateAuthority authority_{folder(), "authority"};
  CertificateAuthority stranger_{folder(), "stranger"};
};

TEST_F(GrpcSecurityTest, TlsServesWhoBelievesItsAuthority) {
  ServeTls(authority_.Issue("board"));
  EXPECT_THAT(daemon().log(), HasSubstr("' with TLS"));
  const GrpcClient client(Address(), {.ca = authority_.file()});
  const GrpcJson answer = Metadata(client);
  EXPECT_TRUE(answer.ok()) << answer.message;
}

TEST_F(GrpcSecurityTest, AnotherAuthorityOrPlainTextGetsNowhere) {
  ServeTls(authority_.Issue("board"));
  const GrpcClient other(Address(), {.ca = stranger_.file()});
  EXPECT_EQ(Metadata(other).code, GrpcCode::kUnavailable);
  const GrpcClient plain(Address());
  EXPECT_EQ(Metadata(plain).code, GrpcCode::kUnavailable);
  // And nobody else notices.
  const GrpcClient good(Address(), {.ca = authority_.file()});
  EXPECT_TRUE(Metadata(good).ok());
}

TEST_F(GrpcSecurityTest, AnExpiredCertificateIsToldOfAndClientsRefuseIt) {
  ServeTls(authority_.Issue("board", Times::kExpired));
  EXPECT_THAT(daemon().log(), HasSubstr("has expired"));
  const GrpcClient client(Address(), {.ca = authority_.file()});
  EXPECT_EQ(Metadata(client).code, GrpcCode::kUnavailable);
}

TEST_F(GrpcSecurityTest, WhoMustShowACertificateGetsInByAGoodOneOnly) {
  ServeTls(
      authority_.Issue("board"),
      "client_ca = " + Quoted(authority_.file()) + "operators = [\"ops\"]\n");
  const auto code_with = [this](const CertificateFiles& files) {
    const GrpcClient client(Address(), {.ca = authority_.file(),
                                        .certificate = files.certificate,
                                        .key = files.key});
    return Metadata(client).code;
  };
  EXPECT_EQ(code_with(authority_.Issue("camera")), GrpcCode::kOk);
  EXPECT_EQ(code_with({}), GrpcCode::kUnavailable) << "none";
  EXPECT_EQ(code_with(authority_.Issue("camera", Times::kExpired)),
            GrpcCode::kUnavailable)
      << "expired";
  EXPECT_EQ(code_with(stranger_.Issue("camera")), GrpcCode::kUnavailable)
      << "foreign";
}

TEST_F(GrpcSecurityTest, ACertificatesNameMakesAnOperator) {
  ServeTls(
      authority_.Issue("board"),
      "client_ca = " + Quoted(authority_.file()) + "operators = [\"ops\"]\n");
  const auto drain_as = [this](const std::string& name) {
    const CertificateFiles files = authority_.Issue(name);
    const GrpcClient client(Address(), {.ca = authority_.file(),
                                        .certificate = files.certificate,
                                        .key = files.key});
    return client.Ask("rknnd.v1.Debug/Drain");
  };
  const GrpcJson refused = drain_as("camera");
  EXPECT_EQ(refused.code, GrpcCode::kPermissionDenied);
  EXPECT_THAT(refused.message, HasSubstr("127.0.0.1:"));
  EXPECT_THAT(refused.message, HasSubstr(" (camera)"));
  const GrpcJson drained = drain_as("ops");
  EXPECT_TRUE(drained.ok()) << drained.message;
}

TEST_F(GrpcSecurityTest, ARenewedCertificateIsUsedWithoutARestart) {
  const CertificateFiles files = authority_.Issue("board");
  ServeTls(files);
  const GrpcClient before(Address(), {.ca = authority_.file()});
  EXPECT_TRUE(Metadata(before).ok());
  const CertificateFiles renewed = stranger_.Issue("board");
  std::filesystem::rename(renewed.key, files.key);
  std::filesystem::rename(renewed.certificate, files.certificate);
  EXPECT_TRUE(Eventually([this] {
    const GrpcClient after(Address(), {.ca = stranger_.file()});
    return Metadata(after).ok();
  }));
  // Who was there already notices nothing.
  EXPECT_TRUE(Metadata(before).ok());
}

TEST_F(GrpcSecurityTest, WithTokensEveryCallNeedsOne) {
  Serve("tokens = " + Quoted(Tokens()));
  const GrpcClient good(Address(), {.token = kToken});
  const GrpcJson answer = Metadata(good);
  EXPECT_TRUE(answer.ok()) << answer.message;
  const GrpcClient none(Address());
  const GrpcJson refused = Metadata(none);
  EXPECT_EQ(refused.code, GrpcCode::kUnauthenticated);
  EXPECT_THAT(refused.message, HasSubstr("authorization: Bearer TOKEN"));
  const GrpcClient wrong(Address(), {.token = "fedcba98765432100123456789"});
  EXPECT_EQ(Metadata(wrong).code, GrpcCode::kUnauthenticated);
  EXPECT_THAT(daemon().log(), HasSubstr("its token is unknown"));
  EXPECT_THAT(daemon().log(), Not(HasSubstr("fedcba9876543210")));
}

TEST_F(GrpcSecurityTest, PlainTextBeyondThisMachineIsRefusedAtStart) {
  const std::string complaint = Complaint({"--grpc", "0.0.0.0:0"});
  EXPECT_THAT(complaint, HasSubstr("there is no encryption"));
  EXPECT_THAT(complaint, HasSubstr("--grpc-insecure"));
  StartDaemon({.more = {"--grpc", "0.0.0.0:0", "--grpc-insecure"}});
  const GrpcClient client("127.0.0.1:" + Port());
  EXPECT_TRUE(Metadata(client).ok());
}

TEST_F(GrpcSecurityTest, WhatCannotBeServedIsSaidWhenOnlyChecking) {
  const auto complaint = [this](const std::string& config) {
    return Complaint({"--check-config", "--config",
                      WriteConfig("listen = \"127.0.0.1:0\"\n" + config)});
  };
  const CertificateFiles files = authority_.Issue("board");
  EXPECT_THAT(complaint("certificate = " + Quoted(files.certificate)),
              HasSubstr("belong together"));
  EXPECT_THAT(complaint("certificate = " + Quoted(files.certificate) +
                        "key = " + Quoted(authority_.Issue("x").key)),
              HasSubstr("is not the key of"));
  EXPECT_THAT(complaint("certificate = " + Quoted(files.key) +
                        "key = " + Quoted(files.key)),
              HasSubstr("has no certificate in PEM form"));
  EXPECT_EQ(chmod(files.key.c_str(), 0644), 0);
  EXPECT_THAT(complaint("certificate = " + Quoted(files.certificate) +
                        "key = " + Quoted(files.key)),
              HasSubstr("chmod 600"));
  EXPECT_THAT(complaint("tokens = " + Quoted(Tokens(0644))),
              HasSubstr("chmod 600"));
  EXPECT_THAT(complaint("memory = 2000000\n"),
              HasSubstr("at least twice grpc.message_bytes"));
  for (const std::string& wrong :
       std::vector<std::string>{"nowhere", "127.0.0.1:70000", "::1:80",
                                "unix:here", ":80", "127.0.0.1:http"}) {
    EXPECT_THAT(Complaint({"--check-config", "--grpc", wrong}),
                HasSubstr(wrong));
  }
}

}  // namespace
}  // namespace rknnd::integration
