#include "cli/training/run_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <system_error>

#include "cli/arguments/version.h"

namespace caldera::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kHowItBegins{"help",   "json",      "config", "settings",
                                                       "resume", "overwrite", "version"};
// They change what is written or how fast it goes, not what is trained.
constexpr std::array<std::string_view, 15> kBeside{
    "checkpoint",   "serve-report", "sample-prompt", "sample-tokens", "out",
    "report",       "tensorboard",  "log",           "save-every",    "keep",
    "memory-limit", "val-batches",  "val-every",     "patience",      "best"};

// They say where a process finds and writes things, and what it computes with.
constexpr std::array<std::string_view, 17> kOfOneMachine{
    "model",         "data",         "reference-model", "teacher", "out",          "report",
    "tensorboard",   "log",          "device",          "threads", "memory-limit", "sample-prompt",
    "sample-tokens", "serve-report", "checkpoint",      "keep",    "timeout"};

bool is_in(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

/// The last value of a flag in a command line, empty where it stands alone; nothing where it is not given.
std::optional<std::string> value_of(const std::vector<std::string>& arguments, const std::string& flag) {
  std::optional<std::string> value;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].starts_with(flag + "=")) value = arguments[i].substr(flag.size() + 1);
    if (arguments[i] != flag) continue;
    const bool alone = i + 1 == arguments.size() || arguments[i + 1].starts_with("--");
    value = alone ? std::string() : arguments[i + 1];
  }
  return value;
}

}  // namespace

std::optional<fs::path> find_settings(const std::vector<std::string>& arguments, const char* config) {
  for (const char* flag : {"--settings", config})
    if (flag != nullptr)
      if (const auto path = value_of(arguments, flag)) return fs::path(*path);
  const std::optional<std::string> resume = value_of(arguments, "--resume");
  if (!resume) return std::nullopt;
  // Of a run's folder, or of a checkpoint in it.
  const fs::path run =
      resume->empty() ? fs::path(value_of(arguments, "--out").value_or("")) : fs::path(*resume);
  std::error_code error;
  for (const fs::path& folder : {run, fs::weakly_canonical(run, error).parent_path()})
    if (!run.empty() && fs::is_regular_file(folder / kSettingsFile, error)) return folder / kSettingsFile;
  return std::nullopt;
}

std::vector<Setting> settings_of(const Arguments& args) {
  std::vector<Setting> settings;
  for (const Option& option : args.all()) {
    std::string name = option.name();
    name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
    if (is_in(name, kHowItBegins) || option.is_hidden()) continue;
    std::vector<std::string> values = option.values();
    if (!values.empty() && values != std::vector<std::string>{""})
      settings.push_back({.name = std::move(name), .values = std::move(values)});
  }
  return settings;
}

std::vector<std::string> changed_settings(const fs::path& before, const std::vector<Setting>& now) {
  std::vector<std::string> changes;
  std::error_code error;
  if (!fs::is_regular_file(before, error)) return changes;
  const std::vector<Setting> old = read_settings(before);
  const auto text_in = [](const std::vector<Setting>& settings, const std::string& name) {
    const auto found = std::ranges::find(settings, name, &Setting::name);
    return found == settings.end() ? std::string("nothing") : found->text();
  };
  const auto compare = [&](const std::string& name) {
    const std::string was = text_in(old, name);
    const std::string is = text_in(now, name);
    if (was != is && !is_in(name, kBeside)) changes.push_back(fmt::format("--{} {} (was {})", name, is, was));
  };
  for (const Setting& setting : now) compare(setting.name);
  for (const Setting& setting : old)
    if (std::ranges::find(now, setting.name, &Setting::name) == now.end()) compare(setting.name);
  return changes;
}

std::vector<std::string> common_settings(const std::vector<Setting>& settings) {
  std::vector<std::string> lines{fmt::format("version={}", kVersion)};
  for (const Setting& setting : settings)
    if (!is_in(setting.name, kOfOneMachine))
      lines.push_back(fmt::format("{}={}", setting.name, setting.text()));
  return lines;
}

}  // namespace caldera::cli
