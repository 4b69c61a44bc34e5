// Certificates as tests of TLS need them: of an authority of their own, good or
// expired, as PEM files in a test's folder.

#ifndef TESTS_INTEGRATION_HARNESS_CERTIFICATES_H_
#define TESTS_INTEGRATION_HARNESS_CERTIFICATES_H_

#include <memory>
#include <string>

namespace rknnd::integration {

struct CertificateFiles {
  std::string certificate, key;
};

// Signs what a test asks for. Thread: any, one at a time.
class CertificateAuthority {
 public:
  // Its files, and those it issues, are "FOLDER/NAME*".
  CertificateAuthority(const std::string& folder, const std::string& name);
  ~CertificateAuthority();
  CertificateAuthority(const CertificateAuthority&) = delete;
  CertificateAuthority& operator=(const CertificateAuthority&) = delete;

  // Its own certificate: whom to believe.
  [[nodiscard]] const std::string& file() const { return file_; }

  // For the common name `name`, and as a server "localhost" and 127.0.0.1.
  // Expired ones were good until an hour ago.
  enum class Times { kGood, kExpired };
  CertificateFiles Issue(const std::string& name, Times times = Times::kGood);

 private:
  class Impl;
  const std::string folder_, name_, file_;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace rknnd::integration

#endif  // TESTS_INTEGRATION_HARNESS_CERTIFICATES_H_
