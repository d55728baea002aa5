// HttpServer: the service over HTTP.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lm/serve/http/server_options.h"
#include "lm/serve/service/metrics.h"
#include "lm/serve/service/service_source.h"

namespace caldera::serve {

/// Listens, answers, and stops. Answers are of OpenAI's API (docs/guide/serving.md).
class HttpServer {
 public:
  /// Keeps a reference to the service, whose limits it obeys. Throws FileError for keys and certificates that
  /// cannot be read.
  HttpServer(Service& service, ServerOptions options);
  /// Keeps a reference to several, of which each request names one.
  HttpServer(ServiceSource& services, const ServeLimits& limits, ServerOptions options);
  /// Stops, if that has not been done.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Takes the address; connections wait from now on. Returns the port. Throws FileError where the address
  /// cannot be had.
  int bind();
  /// Answers on threads of its own.
  void start();
  /// Reads the file of keys and the certificate again, for requests and connections to come. Returns a
  /// sentence for each that changed, or could not be read and stays as it was.
  std::vector<std::string> reload();
  /// Refuses new requests and gives those under way the time of ServeLimits::drain_seconds; then ends them.
  void stop();
  /// Ends those under way at once: for a stop() that another thread is in.
  void hurry();

  const Metrics& metrics() const;

 private:
  class Impl;
  std::unique_ptr<ServiceSource> one_;  // where there is one service alone
  std::unique_ptr<Impl> impl_;
};

}  // namespace caldera::serve
