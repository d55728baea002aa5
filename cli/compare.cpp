// caldera compare: runs side by side.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "cli/arguments/command.h"
#include "cli/arguments/settings_file.h"
#include "cli/files/outputs.h"
#include "cli/training/run_settings.h"
#include "lm/base/atomic_file.h"
#include "training/checkpoints/run_folder.h"
#include "training/report/read_log.h"
#include "training/trainer/json_log.h"

namespace caldera::cli {
namespace {

namespace fs = std::filesystem;

/// What is left of a run in its folder.
struct FinishedRun {
  std::string name;
  TrainState state;  // without tensors
  std::map<std::string, std::string> settings;
  RunReport curves;
};

/// The log or the report of a run, where it wrote one and it is still there: at its path, or in its folder.
RunReport curves_of(const fs::path& folder, const std::map<std::string, std::string>& settings) {
  for (const char* flag : {"log", "report"}) {
    const auto written = settings.find(flag);
    if (written == settings.end()) continue;
    for (const fs::path& path : {fs::path(written->second), folder / fs::path(written->second).filename()})
      if (const auto curves = read_log(path)) return *curves;
  }
  return {};
}

FinishedRun read_run(const std::string& folder) {
  const std::optional<fs::path> state = find_train_state(folder);
  if (!state) throw FileError(fmt::format("{}: there is no checkpoint; name the --out of a run", folder));
  FinishedRun run{.name = fs::path(folder).lexically_normal().string(),
                  .state = read_train_numbers(*state),
                  .settings = {},
                  .curves = {}};
  std::error_code error;
  if (const fs::path file = fs::path(folder) / kSettingsFile; fs::is_regular_file(file, error))
    for (const Setting& setting : read_settings(file)) run.settings[setting.name] = setting.text();
  run.curves = curves_of(folder, run.settings);
  run.curves.title = run.name;
  return run;
}

/// The settings that are not the same in all runs, but for where they wrote to.
std::vector<std::string> differing(const std::vector<FinishedRun>& runs) {
  std::set<std::string> names;
  for (const FinishedRun& run : runs)
    for (const auto& [name, value] : run.settings) names.insert(name);
  for (const char* place : {"out", "log", "report", "tensorboard"}) names.erase(place);
  const auto value_in = [](const FinishedRun& run, const std::string& name) {
    const auto found = run.settings.find(name);
    return found == run.settings.end() ? std::string() : found->second;
  };
  std::vector<std::string> differ;
  for (const std::string& name : names)
    if (std::ranges::any_of(runs, [&](const FinishedRun& run) {
          return value_in(run, name) != value_in(runs.front(), name);
        }))
      differ.push_back(name);
  return differ;
}

std::string loss_text(const std::optional<double>& loss) { return loss ? fmt::format("{:.4f}", *loss) : "-"; }

class CompareCommand : public Command {
 public:
  CompareCommand() : Command("compare", "Show training runs side by side") {}

 protected:
  void add_options(Arguments& args) override {
    args.option("runs", folders_, "Folders of runs: what --out was").type_name("RUN").required();
    args.option("--html", html_, "Write a page with the curves of the runs that wrote a log or a report")
        .type_name("FILE.html");
  }

  void run() override {
    if (device_given()) open_device();
    if (!html_.empty()) check_output_file(html_, "--html");
    std::vector<FinishedRun> runs;
    for (const std::string& folder : folders_) runs.push_back(read_run(folder));
    const std::vector<std::vector<std::string>> rows = rows_of(runs);
    if (!html_.empty()) {
      RunComparison comparison{.runs = {}, .table = rows};
      for (const FinishedRun& run : runs) comparison.runs.push_back(run.curves);
      write_text_file(html_, to_html(comparison));
    }
    if (json()) return print_json(document_of(runs));
    print_rows(rows);
    if (!html_.empty()) fmt::print("page: {}\n", html_);
  }

 private:
  static std::vector<std::vector<std::string>> rows_of(const std::vector<FinishedRun>& runs) {
    const std::vector<std::string> settings = differing(runs);
    std::vector<std::vector<std::string>> rows{
        {"run", "steps", "tokens", "val. loss before", "last", "best", "at step"}};
    rows.front().insert(rows.front().end(), settings.begin(), settings.end());
    for (const FinishedRun& run : runs) {
      const TrainState& state = run.state;
      rows.push_back({run.name, fmt::format("{}", state.step), fmt::format("{}", state.tokens),
                      loss_text(state.initial_val_loss), loss_text(state.val_loss),
                      loss_text(state.best ? std::optional(state.best->loss) : std::nullopt),
                      state.best ? fmt::format("{}", state.best->step) : "-"});
      for (const std::string& name : settings)
        rows.back().push_back(run.settings.contains(name) ? run.settings.at(name) : "-");
    }
    return rows;
  }

  static void print_rows(const std::vector<std::vector<std::string>>& rows) {
    std::vector<std::size_t> widths(rows.front().size());
    for (const auto& row : rows)
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    for (const auto& row : rows) {
      std::string line;
      for (std::size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
      fmt::print("{}\n", line.substr(0, line.find_last_not_of(' ') + 1));
    }
  }

  static nlohmann::ordered_json document_of(const std::vector<FinishedRun>& runs) {
    const auto number = [](const std::optional<double>& value) {
      return value ? nlohmann::ordered_json(nine_digits(*value)) : nlohmann::ordered_json(nullptr);
    };
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const FinishedRun& run : runs) {
      const TrainState& state = run.state;
      nlohmann::ordered_json settings = nlohmann::ordered_json::object();
      for (const std::string& name : differing(runs))
        settings[name] =
            run.settings.contains(name) ? nlohmann::ordered_json(run.settings.at(name)) : nullptr;
      list.push_back({{"run", run.name},
                      {"step", state.step},
                      {"tokens", state.tokens},
                      {"initial_val_loss", number(state.initial_val_loss)},
                      {"val_loss", number(state.val_loss)},
                      {"best_val_loss", number(state.best ? std::optional(state.best->loss) : std::nullopt)},
                      {"best_step", state.best ? nlohmann::ordered_json(state.best->step) : nullptr},
                      {"settings", settings}});
    }
    return list;
  }

  std::vector<std::string> folders_;
  std::string html_;
};

}  // namespace

CommandPtr make_compare_command() { return std::make_unique<CompareCommand>(); }

}  // namespace caldera::cli
