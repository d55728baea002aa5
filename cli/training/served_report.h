// Shows the page of a run to a browser on this machine: --serve-report.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

namespace caldera::cli {

/// Shows a page while it lives.
class ServedReport {
 public:
  ServedReport() = default;
  virtual ~ServedReport() = default;
  ServedReport(const ServedReport&) = delete;
  ServedReport& operator=(const ServedReport&) = delete;

  virtual std::string url() const = 0;
};

/// Whether the program was built with what serves pages.
bool can_serve_pages();
/// Shows the file at a port, 0 for a free one. Throws FileError where the port cannot be had, and ValueError
/// where pages cannot be served.
std::unique_ptr<ServedReport> serve_report(const std::filesystem::path& page, int port);

}  // namespace caldera::cli
