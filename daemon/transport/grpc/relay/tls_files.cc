// The files are an administrator's: wrong, perhaps, but not hostile.

#include "daemon/transport/grpc/relay/tls_files.h"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <cerrno>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/posix/unique_fd.h"
#include "base/status/status.h"
#include "base/values/expected.h"
#include "daemon/transport/grpc/tokens.h"

namespace rknnd::transport {
namespace {

void FreeBio(BIO* bio) { BIO_free(bio); }
using Bio = std::unique_ptr<BIO, OpenSslDeleter<BIO, FreeBio>>;
using Certificate = std::unique_ptr<X509, OpenSslDeleter<X509, X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, OpenSslDeleter<EVP_PKEY, EVP_PKEY_free>>;

absl::StatusOr<Bio> Open(const std::string& path, const char* option) {
  errno = 0;
  Bio bio(BIO_new_file(path.c_str(), "re"));
  if (bio != nullptr) return bio;
  const int error = errno;
  ERR_clear_error();
  return base::ToStatus(base::ErrnoError(
      error, absl::StrCat("grpc.", option, ": open '", path, "'")));
}

absl::StatusOr<Certificate> ReadCertificate(const std::string& path,
                                            const char* option) {
  RKNND_ASSIGN_OR_RETURN(const Bio bio, Open(path, option));
  Certificate certificate(
      PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  if (certificate == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "grpc.", option, ": '", path, "' has no certificate in PEM form"));
  }
  return certificate;
}

// A key with a passphrase is refused: nobody is there to type it.
int NoPassphrase(char* /*text*/, int /*size*/, int /*writing*/,
                 void* /*unused*/) {
  return -1;
}

absl::StatusOr<Key> ReadKey(const std::string& path) {
  const base::UniqueFd file(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) {
    return base::ToStatus(
        base::ErrnoError(errno, absl::StrCat("grpc.key: open '", path, "'")));
  }
  if (const absl::Status secret = CheckSecretFile(file.get(), path);
      !secret.ok()) {
    return base::Annotate(secret, "grpc.key");
  }
  RKNND_ASSIGN_OR_RETURN(const Bio bio, Open(path, "key"));
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, NoPassphrase, nullptr));
  ERR_clear_error();
  if (key == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("grpc.key: '", path,
                     "' has no private key in PEM form without passphrase"));
  }
  return key;
}

// What is wrong with the times of a certificate, if anything.
void AddComplaints(const X509* certificate, const std::string& path,
                   std::vector<std::string>& complaints) {
  if (X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0) {
    complaints.push_back(absl::StrCat(
        "certificate '", path,
        "' has expired: clients will refuse it; renew the file, which is read "
        "again by itself"));
  }
  if (X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0) {
    complaints.push_back(
        absl::StrCat("certificate '", path,
                     "' is not valid yet: is the date of this machine right?"));
  }
}

}  // namespace

absl::StatusOr<std::vector<std::string>> CheckTlsFiles(
    const GrpcOptions& options) {
  std::vector<std::string> complaints;
  if (options.certificate.empty() != options.key.empty()) {
    return absl::InvalidArgumentError(
        "grpc.certificate and grpc.key belong together: one of them is "
        "missing");
  }
  if (options.certificate.empty()) {
    if (!options.client_ca.empty()) {
      return absl::InvalidArgumentError(
          "grpc.client_ca asks clients for certificates, which takes "
          "grpc.certificate and grpc.key");
    }
    return complaints;
  }
  RKNND_ASSIGN_OR_RETURN(const Certificate certificate,
                         ReadCertificate(options.certificate, "certificate"));
  RKNND_ASSIGN_OR_RETURN(const Key key, ReadKey(options.key));
  const bool fits = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat("grpc.key: '", options.key,
                                                   "' is not the key of '",
                                                   options.certificate, "'"));
  }
  AddComplaints(certificate.get(), options.certificate, complaints);
  if (options.client_ca.empty()) return complaints;
  RKNND_ASSIGN_OR_RETURN(const Certificate ca,
                         ReadCertificate(options.client_ca, "client_ca"));
  AddComplaints(ca.get(), options.client_ca, complaints);
  return complaints;
}

}  // namespace rknnd::transport
