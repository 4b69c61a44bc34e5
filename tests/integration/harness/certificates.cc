#include "tests/integration/harness/certificates.h"

#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/obj_mac.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "tests/integration/harness/files.h"

namespace rknnd::integration {
namespace {

constexpr long kHour = 3600;  // NOLINT(google-runtime-int): OpenSSL's

struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
struct FreeCertificate {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
using Key = std::unique_ptr<EVP_PKEY, FreeKey>;
using Certificate = std::unique_ptr<X509, FreeCertificate>;

// Elliptic, as those are made in no time.
Key MakeKey() { return Key(EVP_EC_gen("P-256")); }

template <class Write>
std::string ToPem(Write write) {
  BIO* const memory = BIO_new(BIO_s_mem());
  EXPECT_EQ(write(memory), 1);
  char* bytes = nullptr;
  const auto size = static_cast<size_t>(BIO_get_mem_data(memory, &bytes));
  std::string text(bytes, size);
  BIO_free(memory);
  return text;
}

std::string WritePem(const std::string& path, const X509* certificate) {
  return WriteFile(path, ToPem([certificate](BIO* bio) {
                     return PEM_write_bio_X509(bio, certificate);
                   }));
}

std::string WritePem(const std::string& path, const EVP_PKEY* key) {
  WriteFile(path, ToPem([key](BIO* bio) {
              return PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0,
                                              nullptr, nullptr);
            }));
  EXPECT_EQ(chmod(path.c_str(), 0600), 0);
  return path;
}

void Extend(X509* certificate, int what, const char* value) {
  X509_EXTENSION* const extension =
      X509V3_EXT_conf_nid(nullptr, nullptr, what, value);
  ASSERT_NE(extension, nullptr) << value;
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

// Without a signature.
Certificate MakeCertificate(const std::string& name, EVP_PKEY* key, long number,
                            long end) {  // NOLINT: OpenSSL's
  Certificate certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), number);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -48 * kHour);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), end);
  X509_set_pubkey(certificate.get(), key);
  X509_NAME_add_entry_by_txt(
      X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
      reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return certificate;
}

}  // namespace

class CertificateAuthority::Impl {
 public:
  explicit Impl(const std::string& name)
      : key(MakeKey()),
        certificate(MakeCertificate(name, key.get(), 1, 48 * kHour)) {
    Extend(certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
    Sign(certificate.get());
  }
  void Sign(X509* other) const {
    X509_set_issuer_name(other, X509_get_subject_name(certificate.get()));
    EXPECT_GT(X509_sign(other, key.get(), EVP_sha256()), 0);
  }

  const Key key;
  const Certificate certificate;
  long issued = 1;  // NOLINT(google-runtime-int): OpenSSL's
};

CertificateAuthority::CertificateAuthority(const std::string& folder,
                                           const std::string& name)
    : folder_(folder),
      name_(name),
      file_(folder + "/" + name + ".pem"),
      impl_(std::make_unique<Impl>(name)) {
  WritePem(file_, impl_->certificate.get());
}

CertificateAuthority::~CertificateAuthority() = default;

CertificateFiles CertificateAuthority::Issue(const std::string& name,
                                             Times times) {
  const Key key = MakeKey();
  const Certificate certificate =
      MakeCertificate(name, key.get(), ++impl_->issued,
                      times == Times::kGood ? 24 * kHour : -kHour);
  Extend(certificate.get(), NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
  impl_->Sign(certificate.get());
  const std::string stem =
      folder_ + "/" + name_ + "-" + std::to_string(impl_->issued);
  return {WritePem(stem + ".pem", certificate.get()),
          WritePem(stem + ".key", key.get())};
}

}  // namespace rknnd::integration
