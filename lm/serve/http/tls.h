// Tls: encryption of connections, by OpenSSL.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace caldera::serve {

/// A certificate and its key, for connections to come. May be used from any thread.
class TlsContext {
 public:
  /// Reads a chain of certificates and a key, both PEM. TLS 1.2 is the least. Throws FileError; where the
  /// program was built without OpenSSL, always.
  TlsContext(const std::filesystem::path& certificate, const std::filesystem::path& key);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

 private:
  friend class TlsSession;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// One connection, encrypted. Nothing waits. One thread at a time.
class TlsSession {
 public:
  enum class Result : unsigned char { done, waits_to_read, waits_to_write, ended };

  /// The socket does not block, and outlives this.
  TlsSession(const TlsContext& context, int socket);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  /// Reads up to so many bytes; `count` is how many. The handshake is a part of it.
  Result read(std::span<char> to, std::size_t& count);
  Result write(std::string_view bytes, std::size_t& count);
  /// Whether the client has said that it sends no more, or is gone.
  bool ended();
  /// Says that no more comes.
  void say_end();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caldera::serve
