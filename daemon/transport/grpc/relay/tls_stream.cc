// Peers may be anybody until their certificate was verified; OpenSSL reads what
// they send. Its errors stay in a queue of the thread, which is emptied after
// each call that failed.

#include "daemon/transport/grpc/relay/tls_stream.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status/status.h"
#include "daemon/transport/grpc/relay/tls_files.h"

namespace rknnd::transport {
namespace {

// How soon a renewed certificate is used.
constexpr base::Nanoseconds kReadAgain = 10 * base::kSecond;
constexpr std::string_view kHttp2 = "h2";
constexpr std::string_view kOffered = "\2h2";
// Of TLS 1.2; those of 1.3 are all good.
constexpr char kCiphers[] = "ECDHE+AESGCM:ECDHE+CHACHA20";

using Ssl = std::unique_ptr<SSL, OpenSslDeleter<SSL, SSL_free>>;
using Certificate = std::unique_ptr<X509, OpenSslDeleter<X509, X509_free>>;
using Names =
    std::unique_ptr<GENERAL_NAMES,
                    OpenSslDeleter<GENERAL_NAMES, GENERAL_NAMES_free>>;

int ChooseProtocol(SSL* /*ssl*/, const unsigned char** chosen,
                   unsigned char* size, const unsigned char* offers,
                   unsigned int offers_size, void* /*unused*/) {
  unsigned char* found = nullptr;
  const int result = SSL_select_next_proto(
      &found, size, reinterpret_cast<const unsigned char*>(kOffered.data()),
      kOffered.size(), offers, offers_size);
  *chosen = found;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK
                                          : SSL_TLSEXT_ERR_ALERT_FATAL;
}

// A name with a zero in it would be read as a shorter one.
void AddText(const ASN1_STRING* text, std::vector<std::string>& names) {
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, text);
  if (size > 0 && std::memchr(utf8, 0, static_cast<size_t>(size)) == nullptr) {
    names.emplace_back(reinterpret_cast<const char*>(utf8),
                       static_cast<size_t>(size));
  }
  if (size >= 0) OPENSSL_free(utf8);
}

void AddAddress(const ASN1_OCTET_STRING* address,
                std::vector<std::string>& names) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int size = ASN1_STRING_length(address);
  if ((size == 4 || size == 16) &&
      inet_ntop(size == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(address),
                text.data(), text.size()) != nullptr) {
    names.emplace_back(text.data());
  }
}

void AddCommonNames(const X509_NAME* subject, std::vector<std::string>& names) {
  for (int at = -1;;) {
    at = X509_NAME_get_index_by_NID(subject, NID_commonName, at);
    if (at < 0) return;
    AddText(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)), names);
  }
}

void AddAlternativeNames(const X509* certificate,
                         std::vector<std::string>& names) {
  const Names all(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  if (all == nullptr) return;
  for (int i = 0; i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(all.get(), i);
    if (name->type == GEN_DNS || name->type == GEN_URI ||
        name->type == GEN_EMAIL) {
      AddText(name->d.ia5, names);
    } else if (name->type == GEN_IPADD) {
      AddAddress(name->d.iPAddress, names);
    }
  }
}

void AddSubject(const X509_NAME* subject, std::vector<std::string>& names) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> bio(BIO_new(BIO_s_mem()),
                                                          &BIO_free_all);
  if (bio == nullptr ||
      X509_NAME_print_ex(bio.get(), subject, 0, XN_FLAG_RFC2253) < 0) {
    return;
  }
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  if (size > 0) names.emplace_back(text, static_cast<size_t>(size));
}

class TlsStream final : public PeerStream {
 public:
  explicit TlsStream(Ssl ssl) : ssl_(std::move(ssl)) {}

  ssize_t Begin() override {
    const int result = SSL_accept(ssl_.get());
    if (result != 1) return Failed(result);
    const unsigned char* protocol = nullptr;
    unsigned int size = 0;
    SSL_get0_alpn_selected(ssl_.get(), &protocol, &size);
    const std::string_view chosen(reinterpret_cast<const char*>(protocol),
                                  size);
    return chosen == kHttp2 ? 0 : kBroken;
  }

  ssize_t Read(std::span<std::byte> to) override {
    // A record has 16 KiB at most: as many as there are.
    size_t all = 0;
    while (all < to.size()) {
      size_t got = 0;
      const int result =
          SSL_read_ex(ssl_.get(), to.data() + all, to.size() - all, &got);
      if (result != 1) {
        const ssize_t failed = Failed(result);
        // Whatever it is, it comes again after what was read.
        return all > 0 ? static_cast<ssize_t>(all) : failed;
      }
      all += got;
    }
    return static_cast<ssize_t>(all);
  }

  ssize_t Write(std::span<const std::byte> from) override {
    size_t sent = 0;
    const int result =
        SSL_write_ex(ssl_.get(), from.data(), from.size(), &sent);
    if (result == 1) return static_cast<ssize_t>(sent);
    const ssize_t failed = Failed(result);
    return failed == 0 ? kBroken : failed;
  }

  [[nodiscard]] bool pending() const override {
    return SSL_has_pending(ssl_.get()) == 1;
  }
  [[nodiscard]] bool wants_to_write() const override { return wants_to_write_; }

  [[nodiscard]] std::vector<std::string> names() const override {
    std::vector<std::string> names;
    const Certificate certificate(SSL_get1_peer_certificate(ssl_.get()));
    if (certificate == nullptr ||
        SSL_get_verify_result(ssl_.get()) != X509_V_OK) {
      return names;
    }
    const X509_NAME* const subject = X509_get_subject_name(certificate.get());
    AddCommonNames(subject, names);
    AddAlternativeNames(certificate.get(), names);
    AddSubject(subject, names);
    ERR_clear_error();
    return names;
  }

 private:
  ssize_t Failed(int result) {
    const int error = SSL_get_error(ssl_.get(), result);
    ERR_clear_error();
    wants_to_write_ = error == SSL_ERROR_WANT_WRITE;
    if (wants_to_write_ || error == SSL_ERROR_WANT_READ) return kLater;
    return error == SSL_ERROR_ZERO_RETURN ? 0 : kBroken;
  }

  const Ssl ssl_;
  bool wants_to_write_ = false;
};

bool SameFile(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino &&
         a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
         a.st_mtim.tv_nsec == b.st_mtim.tv_nsec &&
         a.st_ctim.tv_sec == b.st_ctim.tv_sec &&
         a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

std::array<struct stat, 3> StatAll(const GrpcOptions& options) {
  std::array<struct stat, 3> all{};
  size_t at = 0;
  for (const std::string* path :
       {&options.certificate, &options.key, &options.client_ca}) {
    if (!path->empty()) stat(path->c_str(), &all[at]);
    ++at;
  }
  return all;
}

}  // namespace

TlsFiles::TlsFiles(const GrpcOptions& options, base::EventLoop* loop,
                   FailureLog* failures)
    : options_(options), loop_(loop), failures_(failures) {}

TlsFiles::~TlsFiles() {
  if (look_ != 0) loop_->CancelTimer(look_);
}

absl::StatusOr<std::unique_ptr<TlsFiles>> TlsFiles::Read(
    const GrpcOptions& options, base::EventLoop* loop, FailureLog* failures) {
  std::unique_ptr<TlsFiles> files(new TlsFiles(options, loop, failures));
  // Before they are read: what is written meanwhile is seen as a change.
  files->read_ = StatAll(options);
  RKNND_RETURN_IF_ERROR(files->ReadAll());
  files->look_ =
      loop->RunAfter(kReadAgain, [at = files.get()] { at->LookAgain(); });
  return files;
}

absl::Status TlsFiles::ReadAll() {
  RKNND_RETURN_IF_ERROR(CheckTlsFiles(options_).status());
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()),
                                   &SSL_CTX_free);
  if (context == nullptr) return absl::InternalError("TLS: no memory");
  SSL_CTX* const at = context.get();
  SSL_CTX_set_min_proto_version(at, TLS1_2_VERSION);
  SSL_CTX_set_cipher_list(at, kCiphers);
  SSL_CTX_set_options(at, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
                              SSL_OP_NO_COMPRESSION |
                              SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_num_tickets(at, 0);
  SSL_CTX_set_session_cache_mode(at, SSL_SESS_CACHE_OFF);
  // Memory of an idle connection; and what is written may be another copy of
  // the same bytes the next time.
  SSL_CTX_set_mode(at, SSL_MODE_RELEASE_BUFFERS |
                           SSL_MODE_ENABLE_PARTIAL_WRITE |
                           SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_alpn_select_cb(at, ChooseProtocol, nullptr);
  bool good = SSL_CTX_use_certificate_chain_file(
                  at, options_.certificate.c_str()) == 1 &&
              SSL_CTX_use_PrivateKey_file(at, options_.key.c_str(),
                                          SSL_FILETYPE_PEM) == 1;
  if (good && !options_.client_ca.empty()) {
    good = SSL_CTX_load_verify_file(at, options_.client_ca.c_str()) == 1;
    SSL_CTX_set_client_CA_list(
        at, SSL_load_client_CA_file(options_.client_ca.c_str()));
    SSL_CTX_set_verify(at, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                       nullptr);
  }
  std::array<char, 200> why{};
  ERR_error_string_n(ERR_get_error(), why.data(), why.size());
  ERR_clear_error();
  if (!good) {
    return absl::InvalidArgumentError(
        absl::StrCat("TLS cannot use grpc.certificate '", options_.certificate,
                     "' with its key and client_ca: ", why.data()));
  }
  context_ = std::move(context);
  return absl::OkStatus();
}

void TlsFiles::LookAgain() {
  look_ = loop_->RunAfter(kReadAgain, [this] { LookAgain(); });
  const std::array<struct stat, 3> now = StatAll(options_);
  if (std::equal(now.begin(), now.end(), read_.begin(), SameFile)) return;
  read_ = now;
  const absl::Status read = ReadAll();
  failures_->Note(read.ok()
                      ? absl::StrCat("gRPC uses the changed certificate '",
                                     options_.certificate, "' from now on")
                      : absl::StrCat("gRPC keeps its certificate of before: ",
                                     std::string(read.message())));
}

std::unique_ptr<PeerStream> TlsFiles::Accept(int fd) {
  Ssl ssl(SSL_new(context_.get()));
  if (ssl == nullptr || SSL_set_fd(ssl.get(), fd) != 1) {
    ERR_clear_error();
    return nullptr;
  }
  SSL_set_accept_state(ssl.get());
  return std::make_unique<TlsStream>(std::move(ssl));
}

}  // namespace rknnd::transport
