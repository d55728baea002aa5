// caldera pull: gets a model of Hugging Face's hub.
#include "cli/arguments/command.h"

#if CALDERA_HAS_SERVE
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "lm/formats/hub_cache.h"
#include "lm/serve/hub/hub_pull.h"
#endif

namespace caldera::cli {
namespace {

#if CALDERA_HAS_SERVE

class PullCommand : public Command {
 public:
  PullCommand() : Command("pull", "Get a model of Hugging Face's hub") {}

 protected:
  void add_options(Arguments& args) override {
    args.option("model", model_,
                "ORG/NAME, or ORG/NAME:QUANT for one of its GGUF files, such as ORG/NAME:Q4_K_M")
        .type_name("REPO[:QUANT]");
    args.flag("--list", list_, "List the models of the cache that are on this machine");
    args.option("--out", out_, "Folder for the files (default: the cache that Hugging Face's programs share)")
        .type_name("DIR");
    args.option("--revision", options_.revision, "Branch, tag or commit").type_name("NAME").show_default();
  }

  void run() override {
    if (list_ && !model_.empty()) throw UsageError("--list: gets nothing; leave the model out");
    if (list_) return list_models();
    if (model_.empty()) throw UsageError("no model: name one, as ORG/NAME or ORG/NAME:QUANT (or say --list)");
    const auto name = parse_hub_name(model_);
    if (!name)
      throw UsageError(fmt::format("'{}' is no model of a hub: write ORG/NAME or ORG/NAME:QUANT", model_));
    if (options_.revision.find('/') != std::string::npos || options_.revision.starts_with('.'))
      throw UsageError("--revision: a name without slashes");
    options_.name = *name;
    options_.out = out_;
    // On a terminal a line grows; elsewhere there is one for each file that is there.
    const bool terminal = isatty(STDERR_FILENO) != 0;
    if (terminal)
      options_.progress = [this](const std::string& file, std::uint64_t bytes, std::uint64_t of) {
        tell(file, bytes, of);
      };
    options_.loaded = [this, terminal](const std::string& file, std::uint64_t bytes) {
      if (terminal) fmt::print(stderr, "\r\x1b[K");
      note(fmt::format("{}: {} bytes", file, bytes));
    };
    const serve::PulledModel pulled = serve::pull_model(options_);
    if (json())
      print_json({{"path", pulled.path.string()}, {"files", pulled.files}, {"bytes", pulled.bytes}});
    else
      fmt::print("{}\n", pulled.path.string());
  }

 private:
  void list_models() const {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const CachedModel& model : list_hub_cache()) {
      if (!json()) fmt::print("{}\t{} MB\t{}\n", model.name, model.bytes / 1000000, model.path.string());
      all.push_back({{"model", model.name}, {"bytes", model.bytes}, {"path", model.path.string()}});
    }
    if (json()) print_json(all);
    if (all.empty() && !json()) note(fmt::format("no models in {}", hub_cache_folder().string()));
  }

  void tell(const std::string& file, std::uint64_t bytes, std::uint64_t of) {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    constexpr std::uint64_t kWidth = 30;
    const std::uint64_t full = of == 0 ? 0 : kWidth * std::min(bytes, of) / of;
    fmt::print(stderr, "\r\x1b[K{} [{}{}] {} of {} MB", file, std::string(full, '#'),
               std::string(kWidth - full, ' '), bytes / 1000000, of / 1000000);
    std::fflush(stderr);
  }

  std::string model_;
  std::string out_;
  bool list_ = false;
  std::chrono::steady_clock::time_point next_;
  serve::PullOptions options_;
};

#else

class PullCommand : public Command {
 public:
  PullCommand() : Command("pull", "Get a model of Hugging Face's hub (not in this build)") {}

 protected:
  void add_options(Arguments& /*args*/) override {}
  void run() override {
    throw UsageError("this build cannot load: cpp-httplib was not found (libcpp-httplib-dev and pkg-config)");
  }
};

#endif

}  // namespace

CommandPtr make_pull_command() { return std::make_unique<PullCommand>(); }

}  // namespace caldera::cli
