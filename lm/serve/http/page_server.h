// PageServer: one page, which may change, for a browser on this machine.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace caldera::serve {

/// Answers http://127.0.0.1:PORT/ with the content of a file, read again each time, on threads of its own.
/// Only programs of this machine reach it, and no page of another site (see Guard).
class PageServer {
 public:
  /// Takes the port (0: a free one) and begins. `page` need not be there yet: the answer is 404 until it is.
  /// Throws FileError where the port cannot be had.
  PageServer(std::filesystem::path page, int port);
  /// Ends at once.
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  int port() const;
  /// "http://127.0.0.1:8090/".
  std::string url() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caldera::serve
