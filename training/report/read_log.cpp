#include "training/report/read_log.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"

namespace caldera {
namespace {

using LogRecord = nlohmann::json;

/// Splits a text at a character, without the last piece if it is empty.
std::vector<std::string_view> pieces(std::string_view text, char at) {
  std::vector<std::string_view> all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(at), text.size());
    all.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

/// A line of a log as an object, whatever the log's form; null for another line.
LogRecord record_of_json(std::string_view line) {
  return LogRecord::parse(line, nullptr, /*allow_exceptions=*/false);
}

LogRecord record_of_row(const std::vector<std::string_view>& names, std::string_view line) {
  const std::vector<std::string_view> cells = pieces(line, ',');
  LogRecord record = LogRecord::object();
  for (std::size_t i = 0; i < std::min(cells.size(), names.size()); ++i) {
    double value = 0;
    const char* end = cells[i].data() + cells[i].size();
    if (!cells[i].empty() && std::from_chars(cells[i].data(), end, value).ptr == end)
      record[std::string(names[i])] = value;
  }
  return record;
}

double number_in(const LogRecord& record, const char* name) {
  const auto found = record.find(name);
  return found != record.end() && found->is_number() ? found->get<double>() : 0;
}

class LogReader {
 public:
  void add(const LogRecord& record) {
    if (!record.is_object() || !record.contains("step") || !record["step"].is_number()) return;
    const auto step = static_cast<std::int64_t>(number_in(record, "step"));
    if (record.contains("val_loss")) report_.validations.push_back({step, number_in(record, "val_loss")});
    if (!record.contains("loss")) return;
    report_.total_steps = step;
    report_.tokens += static_cast<std::int64_t>(number_in(record, "tokens"));
    const double milliseconds = number_in(record, "host_ms") + number_in(record, "device_ms");
    report_.seconds += milliseconds / 1000;
    series_.add({.step = step,
                 .loss = number_in(record, "loss"),
                 .learning_rate = number_in(record, "learning_rate"),
                 .grad_norm = number_in(record, "grad_norm"),
                 .tokens_per_second = number_in(record, "tokens_per_second"),
                 .step_ms = milliseconds,
                 .peak_bytes = number_in(record, "peak_bytes")});
  }

  std::optional<RunReport> result() {
    report_.points = series_.points();
    return report_.points.empty() ? std::nullopt : std::optional(report_);
  }

 private:
  RunReport report_;
  ReportSeries series_;
};

}  // namespace

std::optional<RunReport> read_log(const std::filesystem::path& path) {
  std::string text;
  try {
    text = read_text_file(path);
  } catch (const FileError&) {
    return std::nullopt;
  }
  if (path.extension() == ".html") return report_of_page(text);
  const std::vector<std::string_view> lines = pieces(text, '\n');
  LogReader reader;
  if (path.extension() == ".csv") {
    const std::vector<std::string_view> names = lines.empty() ? lines : pieces(lines.front(), ',');
    for (std::size_t i = 1; i < lines.size(); ++i) reader.add(record_of_row(names, lines[i]));
  } else {
    for (const std::string_view line : lines) reader.add(record_of_json(line));
  }
  return reader.result();
}

}  // namespace caldera
