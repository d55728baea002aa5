#include "benches/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"

namespace caldera::bench {
namespace {

constexpr const char* kBegin = "<!-- bench:begin -->\n";
constexpr const char* kEnd = "<!-- bench:end -->\n";

/// Figures beyond the fourth digit are noise.
double rounded(double value) {
  if (value == 0 || !std::isfinite(value)) return 0;
  const double scale = std::pow(10, 3 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

nlohmann::ordered_json number_or_null(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(rounded(*value)) : nlohmann::ordered_json(nullptr);
}

/// Three digits, without an exponent.
std::string short_number(double value) {
  const double size = std::abs(value);
  return fmt::format("{:.{}f}", value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3);
}

std::string short_number(const std::optional<double>& value) {
  return value ? short_number(*value) : std::string("-");
}

const Result::PeerFigure* find_peer(const Result& r, bool named) {
  for (const auto& [name, figure] : r.peers)
    if ((name == "named") == named) return &figure;
  return nullptr;
}

std::string ratio(const Result& r, const Result::PeerFigure* peer) {
  return peer != nullptr ? fmt::format("{:.2f}", r.total_us / peer->us) : "-";
}

struct Column {
  const char* title;
  std::function<std::string(const Result&)> text;
};

/// Of rows that count tokens.
const std::vector<Column>& token_columns() {
  static const std::vector<Column> kAll{
      {"tokens/s", [](const Result& r) { return short_number(r.tokens_per_s); }},
      {"spread", [](const Result& r) { return fmt::format("{:.0f} %", 100 * r.spread); }},
      {"share",
       [](const Result& r) {
         return r.share ? fmt::format("{:.0f} % of {}", 100 * *r.share, r.share_of) : std::string("-");
       }},
      {"total us", [](const Result& r) { return short_number(r.total_us); }},
      {"device us", [](const Result& r) { return short_number(r.device_us); }},
      {"GB/s", [](const Result& r) { return short_number(r.gb_per_s); }},
      {"GFLOP/s", [](const Result& r) { return short_number(r.gflop_per_s); }},
      {"peer tokens/s",
       [](const Result& r) {
         const auto* peer = find_peer(r, false);
         return peer != nullptr ? short_number(1e6 * r.tokens / peer->us) : std::string("-");
       }},
      {"of peer's",
       [](const Result& r) {
         const auto* peer = find_peer(r, false);
         return peer != nullptr ? fmt::format("{:.2f}", peer->us / r.total_us) : std::string("-");
       }},
  };
  return kAll;
}

const std::vector<Column>& columns(std::span<const Result> results) {
  if (std::ranges::all_of(results, [](const Result& r) { return r.tokens > 0; })) return token_columns();
  static const std::vector<Column> kAll{
      {"total us", [](const Result& r) { return short_number(r.total_us); }},
      {"spread", [](const Result& r) { return fmt::format("{:.0f} %", 100 * r.spread); }},
      {"submit us", [](const Result& r) { return short_number(r.submit_us); }},
      {"device us", [](const Result& r) { return short_number(r.device_us); }},
      {"limit us", [](const Result& r) { return short_number(r.limit_us); }},
      {"x limit",
       [](const Result& r) {
         return r.limit_us ? short_number(r.total_us / *r.limit_us) : std::string("-");
       }},
      {"bound by", [](const Result& r) { return r.bound_by.empty() ? std::string("-") : r.bound_by; }},
      {"GB/s", [](const Result& r) { return short_number(r.gb_per_s); }},
      {"GFLOP/s", [](const Result& r) { return short_number(r.gflop_per_s); }},
      {"peer us",
       [](const Result& r) {
         const auto* peer = find_peer(r, false);
         return peer != nullptr ? short_number(peer->us) : std::string("-");
       }},
      {"ratio", [](const Result& r) { return ratio(r, find_peer(r, false)); }},
      {"to named", [](const Result& r) { return ratio(r, find_peer(r, true)); }},
  };
  return kAll;
}

/// An aim, a bound or the time of one of many operations stands beside the name: few rows have them.
std::string remark(const Result& r) {
  std::string text;
  if (r.operations > 1)
    text += fmt::format(" ({} ns an operation)", short_number(1e3 * r.total_us / r.operations));
  if (r.aim_ratio) text += fmt::format(" (aim {})", short_number(*r.aim_ratio));
  if (r.bound_us) text += fmt::format(" (bound {} us)", short_number(*r.bound_us));
  return text;
}

std::string markdown_table(std::span<const Result> results, std::string_view suite) {
  std::string text = fmt::format("### {}\n\n| case |", suite);
  std::string rule = "|---|";
  const std::vector<Column>& shown = columns(results);
  for (const Column& column : shown) {
    text += fmt::format(" {} |", column.title);
    rule += "---:|";
  }
  text += "\n" + rule + "\n";
  for (const Result& r : results) {
    text += fmt::format("| {}{} |", r.name.substr(suite.size() + 1), remark(r));
    for (const Column& column : shown) text += fmt::format(" {} |", column.text(r));
    text += "\n";
  }
  return text + "\n";
}

std::string describe(const nlohmann::ordered_json& environment) {
  std::string bandwidth;
  for (const auto& b : environment["limits"]["bandwidth"]) {
    bandwidth += fmt::format("{}{:.0f} GB/s at {:.3g} MiB", bandwidth.empty() ? "" : ", ",
                             b["gb_per_s"].get<double>(), b["bytes"].get<double>() / 0x1p20);
  }
  const int cpus = environment["machine"]["cpus"].get<int>();
  const double load = environment["load_average"].get<double>();
  const std::string busy =
      load > 0.5 * cpus ? "**Other programs were running: these figures are disturbed.** " : std::string();
  return fmt::format(
      "{}Taken {} on {} ({} CPUs, load {:.1f} at the start), device {}, {} threads, {} repetitions of {} ms. "
      "Limits measured at the start: {}; {:.0f} GFLOP/s. Peer: {}.\n\n",
      busy, environment["date"].get<std::string>(), environment["cpu"].get<std::string>(), cpus, load,
      environment["device"].get<std::string>(), environment["threads"].get<int>(),
      environment["repetitions"].get<int>(), environment["repetition_ms"].get<double>(), bandwidth,
      environment["limits"]["gflop_per_s"].get<double>(),
      environment["peer"].is_null() ? "none" : environment["peer"].get<std::string>());
}

std::string suite_of(const Result& result) { return result.name.substr(0, result.name.find('/')); }

/// Bytes of a page between its marks.
struct Place {
  std::size_t begin, end;
};

Place place_in(const std::filesystem::path& file, std::string_view text) {
  const std::size_t begin = text.find(kBegin);
  const std::size_t end = begin == std::string_view::npos ? begin : text.find(kEnd, begin);
  if (end == std::string_view::npos)
    throw FileError(
        fmt::format("{}: it has no lines <!-- bench:begin --> and <!-- bench:end -->, between which "
                    "tables are written",
                    file.string()));
  return {begin + std::string_view(kBegin).size(), end};
}

}  // namespace

nlohmann::ordered_json to_json(const Result& r) {
  nlohmann::ordered_json peers = nlohmann::ordered_json::object();
  nlohmann::ordered_json ratios = nlohmann::ordered_json::object();
  nlohmann::ordered_json details = nlohmann::ordered_json::object();
  for (const auto& [name, figure] : r.peers) {
    peers[name] = rounded(figure.us);
    ratios[name] = rounded(r.total_us / figure.us);
    details[name] = {{"setting", figure.setting}, {"spread", rounded(figure.spread)}};
  }
  return {
      {"name", r.name},
      {"shape", r.shape},
      {"dtype", r.dtype},
      {"device", r.device},
      {"submit_us", number_or_null(r.submit_us)},
      {"device_us", number_or_null(r.device_us)},
      {"total_us", rounded(r.total_us)},
      {"spread", rounded(r.spread)},
      {"limit_us", number_or_null(r.limit_us)},
      {"bound_by", r.bound_by.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(r.bound_by)},
      {"gb_per_s", number_or_null(r.gb_per_s)},
      {"gflop_per_s", number_or_null(r.gflop_per_s)},
      {"tokens_per_s", number_or_null(r.tokens_per_s)},
      {"share", number_or_null(r.share)},
      {"share_of", r.share ? nlohmann::ordered_json(r.share_of) : nlohmann::ordered_json(nullptr)},
      {"threads", r.threads},
      {"peers", peers},
      {"ratio", ratios},
      {"peer_details", details},
      {"first_us", rounded(r.first_us)},
      {"bound_us", number_or_null(r.bound_us)},
      {"aim_ratio", number_or_null(r.aim_ratio)},
      {"operations", r.operations},
      {"iterations", r.iterations}};
}

std::string to_table(std::span<const Result> results) {
  std::size_t name_width = 4;
  std::vector<std::string> names;
  for (const Result& r : results) {
    names.push_back(r.name + remark(r));
    name_width = std::max(name_width, names.back().size());
  }
  std::vector<std::size_t> widths;
  const std::vector<Column>& shown = columns(results);
  for (const Column& column : shown) {
    std::size_t width = std::string_view(column.title).size();
    for (const Result& r : results) width = std::max(width, column.text(r).size());
    widths.push_back(width);
  }
  std::string text = fmt::format("{:<{}}", "name", name_width);
  for (std::size_t k = 0; k < widths.size(); ++k) text += fmt::format("  {:>{}}", shown[k].title, widths[k]);
  text += "\n";
  for (std::size_t i = 0; i < results.size(); ++i) {
    text += fmt::format("{:<{}}", names[i], name_width);
    for (std::size_t k = 0; k < widths.size(); ++k)
      text += fmt::format("  {:>{}}", shown[k].text(results[i]), widths[k]);
    text += "\n";
  }
  return text;
}

void check_markdown(const std::filesystem::path& file) { place_in(file, read_text_file(file)); }

void write_markdown(const std::filesystem::path& file, std::span<const Result> results,
                    const nlohmann::ordered_json& environment) {
  std::string text = read_text_file(file);
  const Place place = place_in(file, text);
  std::string tables = "\n" + describe(environment);
  std::vector<std::string> suites;  // in the order of their first rows
  for (const Result& r : results)
    if (std::string suite = suite_of(r); std::ranges::find(suites, suite) == suites.end())
      suites.push_back(std::move(suite));
  for (const std::string& suite : suites) {
    std::vector<Result> own;
    std::ranges::copy_if(results, std::back_inserter(own),
                         [&](const Result& r) { return suite_of(r) == suite; });
    tables += markdown_table(own, suite);
  }
  text.replace(place.begin, place.end - place.begin, tables);
  write_text_file(file, text);
}

}  // namespace caldera::bench
