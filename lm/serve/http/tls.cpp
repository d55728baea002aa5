#include "lm/serve/http/tls.h"

#ifdef CALDERA_HAS_TLS
#include <openssl/err.h>
#include <openssl/ssl.h>
#endif

#include "engine/base/error.h"

namespace caldera::serve {

#ifdef CALDERA_HAS_TLS

struct TlsContext::Impl {
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context{nullptr, &SSL_CTX_free};
};

TlsContext::TlsContext(const std::filesystem::path& certificate, const std::filesystem::path& key)
    : impl_(std::make_unique<Impl>()) {
  impl_->context.reset(SSL_CTX_new(TLS_server_method()));
  SSL_CTX* context = impl_->context.get();
  if (context == nullptr) throw FileError("TLS: OpenSSL gives no context");
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  const auto reason = [] {
    const char* text = ERR_reason_error_string(ERR_get_error());
    ERR_clear_error();
    return std::string(text == nullptr ? "it cannot be read" : text);
  };
  ERR_clear_error();
  if (SSL_CTX_use_certificate_chain_file(context, certificate.c_str()) != 1)
    throw FileError(certificate.string() + ": no certificate in PEM: " + reason());
  if (SSL_CTX_use_PrivateKey_file(context, key.c_str(), SSL_FILETYPE_PEM) != 1)
    throw FileError(key.string() + ": no private key in PEM that fits the certificate: " + reason());
  if (SSL_CTX_check_private_key(context) != 1)
    throw FileError(key.string() + ": the key is not that of " + certificate.string());
}
TlsContext::~TlsContext() = default;

struct TlsSession::Impl {
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl{nullptr, &SSL_free};
  bool failed = false;  // after which OpenSSL is to be asked nothing more

  Result result(int returned) {
    switch (SSL_get_error(ssl.get(), returned)) {
      case SSL_ERROR_WANT_READ:
        return Result::waits_to_read;
      case SSL_ERROR_WANT_WRITE:
        return Result::waits_to_write;
      case SSL_ERROR_ZERO_RETURN:
        return Result::ended;
      default:
        ERR_clear_error();
        failed = true;
        return Result::ended;
    }
  }
};

TlsSession::TlsSession(const TlsContext& context, int socket) : impl_(std::make_unique<Impl>()) {
  impl_->ssl.reset(SSL_new(context.impl_->context.get()));
  impl_->failed = impl_->ssl == nullptr || SSL_set_fd(impl_->ssl.get(), socket) != 1;
  if (!impl_->failed) SSL_set_accept_state(impl_->ssl.get());
}
TlsSession::~TlsSession() = default;

TlsSession::Result TlsSession::read(std::span<char> to, std::size_t& count) {
  count = 0;
  if (impl_->failed) return Result::ended;
  ERR_clear_error();
  const int returned = SSL_read_ex(impl_->ssl.get(), to.data(), to.size(), &count);
  return returned == 1 ? Result::done : impl_->result(returned);
}

TlsSession::Result TlsSession::write(std::string_view bytes, std::size_t& count) {
  count = 0;
  if (impl_->failed) return Result::ended;
  ERR_clear_error();
  const int returned = SSL_write_ex(impl_->ssl.get(), bytes.data(), bytes.size(), &count);
  return returned == 1 ? Result::done : impl_->result(returned);
}

bool TlsSession::ended() {
  if (impl_->failed) return true;
  char byte = 0;
  std::size_t count = 0;
  ERR_clear_error();
  const int returned = SSL_peek_ex(impl_->ssl.get(), &byte, 1, &count);
  return returned != 1 && impl_->result(returned) == Result::ended;
}

void TlsSession::say_end() {
  if (impl_->failed || SSL_is_init_finished(impl_->ssl.get()) == 0) return;
  ERR_clear_error();
  SSL_shutdown(impl_->ssl.get());
  ERR_clear_error();
}

#else

struct TlsContext::Impl {};
struct TlsSession::Impl {};

TlsContext::TlsContext(const std::filesystem::path& certificate, const std::filesystem::path& /*key*/) {
  throw FileError(certificate.string() + ": this build has no TLS: OpenSSL was not found");
}
TlsContext::~TlsContext() = default;
TlsSession::TlsSession(const TlsContext& /*context*/, int /*socket*/) {}
TlsSession::~TlsSession() = default;
TlsSession::Result TlsSession::read(std::span<char> /*to*/, std::size_t& count) {
  count = 0;
  return Result::ended;
}
TlsSession::Result TlsSession::write(std::string_view /*bytes*/, std::size_t& count) {
  count = 0;
  return Result::ended;
}
bool TlsSession::ended() { return true; }
void TlsSession::say_end() {}

#endif

}  // namespace caldera::serve
