#include "cli/training/served_report.h"

#include "engine/base/error.h"

#if CALDERA_HAS_SERVE
#include "lm/serve/http/page_server.h"
#endif

namespace caldera::cli {

#if CALDERA_HAS_SERVE

namespace {

class Served final : public ServedReport {
 public:
  Served(const std::filesystem::path& page, int port) : server_(page, port) {}
  std::string url() const override { return server_.url(); }

 private:
  serve::PageServer server_;
};

}  // namespace

bool can_serve_pages() { return true; }

std::unique_ptr<ServedReport> serve_report(const std::filesystem::path& page, int port) {
  return std::make_unique<Served>(page, port);
}

#else

bool can_serve_pages() { return false; }

std::unique_ptr<ServedReport> serve_report(const std::filesystem::path&, int) {
  throw ValueError("this program was built without cpp-httplib, which serves pages");
}

#endif

}  // namespace caldera::cli
