#include "cli/training/memory_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <vector>

#include "engine/base/byte_size.h"

namespace caldera::cli {
namespace {

const char* reason_of(Fate fate) {
  switch (fate) {
    case Fate::kept:
      return "dearer to compute again, a byte, than what goes";
    case Fate::recomputed:
      return "cheaper to compute again, a byte, than what is kept";
    case Fate::forced:
      break;
  }
  return "never stored by itself: a view, or the inside of an attention";
}

std::string bytes_text(std::uint64_t bytes) { return format_bytes(static_cast<std::int64_t>(bytes)); }

}  // namespace

nlohmann::ordered_json describe_memory(const MemoryChoice& choice) {
  nlohmann::ordered_json document{{"peak_bytes", choice.predicted_peak_bytes},
                                  {"limit_bytes", choice.limit_bytes}};
  for (const char* list : {"kept", "recomputed", "offloaded", "forced"})
    document[list] = nlohmann::ordered_json::array();
  for (const LayerValue& value : choice.values) {
    document[std::string(to_string(value.fate))].push_back({{"layer", value.layer},
                                                            {"value", value.value},
                                                            {"bytes", value.bytes},
                                                            {"reason", reason_of(value.fate)}});
  }
  document["added_time"] = choice.recomputed;
  return document;
}

std::string memory_text(const MemoryChoice& choice) {
  std::string text = to_text(choice) + "\n";
  if (choice.values.empty())
    return text + (choice.checkpointed_layers > 0
                       ? "of each layer its input is kept, and all else is computed again\n"
                       : "nothing is computed again: all that the backward pass reads is kept\n");
  // Layers are mostly alike.
  std::map<std::tuple<Fate, std::string>, std::pair<std::int64_t, std::int64_t>>
      groups;  // layers, bytes of one
  for (const LayerValue& value : choice.values) {
    auto& [count, bytes] = groups[{value.fate, value.value}];
    ++count;
    bytes = value.bytes;
  }
  for (const auto& [key, group] : groups) {
    text += fmt::format("  {:10} {:4} x {:>10}  {}: {}\n", to_string(std::get<0>(key)), group.first,
                        format_bytes(group.second), std::get<1>(key), reason_of(std::get<0>(key)));
  }
  return text;
}

std::string curve_text(std::span<const MemoryRow> rows) {
  std::string text = fmt::format("{:>12} {:>12} {:>10}  {}\n", "limit", "peak", "again", "layers");
  for (const MemoryRow& row : rows) {
    const std::string limit = row.limit_bytes == 0 ? "none" : bytes_text(row.limit_bytes);
    if (!row.choice) {
      text += fmt::format("{:>12} {:>12} {:>10}  at least {} is needed\n", limit, "-", "-",
                          format_bytes_up(static_cast<std::int64_t>(row.least_bytes)));
      continue;
    }
    text += fmt::format("{:>12} {:>12} {:>8.0f} %  {} of {} checkpointed\n", limit,
                        bytes_text(row.choice->predicted_peak_bytes), 100 * row.choice->recomputed,
                        row.choice->checkpointed_layers, row.choice->layers);
  }
  return text + "again: the share of the layers' forward pass that runs a second time\n";
}

nlohmann::ordered_json describe_curve(std::span<const MemoryRow> rows) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const MemoryRow& row : rows) {
    nlohmann::ordered_json item{
        {"limit_bytes", row.limit_bytes}, {"peak_bytes", nullptr}, {"added_time", nullptr}};
    if (row.choice) {
      item["peak_bytes"] = row.choice->predicted_peak_bytes;
      item["added_time"] = row.choice->recomputed;
      item["checkpointed_layers"] = row.choice->checkpointed_layers;
    } else {
      item["least_bytes"] = row.least_bytes;
    }
    list.push_back(std::move(item));
  }
  return list;
}

std::string curve_svg(std::span<const MemoryRow> rows) {
  constexpr double kLeft = 60, kTop = 56, kWidth = 760, kHeight = 260;
  std::uint64_t most = 1;
  std::vector<const MemoryRow*> by_limit;
  for (const MemoryRow& row : rows) {
    most = std::max(most, row.limit_bytes);
    if (row.choice) most = std::max(most, row.choice->predicted_peak_bytes);
    if (row.limit_bytes > 0) by_limit.push_back(&row);
  }
  const MemoryRow* const own = rows.empty() ? nullptr : &rows.back();
  std::ranges::sort(by_limit, {}, [](const MemoryRow* row) { return row->limit_bytes; });
  const auto x = [&](std::uint64_t bytes) {
    return kLeft + kWidth * static_cast<double>(bytes) / static_cast<double>(most);
  };
  const auto y = [&](double share) { return kTop + kHeight * (1 - share); };
  const auto label = [&](std::uint64_t bytes, double below, const std::string& text) {
    return fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>", x(bytes),
                       kTop + kHeight + below, text);
  };
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"cal-curve\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-label=\"memory against time\"><style>.cal-curve{{font:11px "
      "system-ui,sans-serif;--ink:#1c2530;--faint:"
      "#d9dfe7;--peak:#4f86e8;--again:#e58a2e}}@media(prefers-color-scheme:dark){{.cal-curve{{--ink:#dde4ec;"
      "--faint:#323c48}}}}.cal-curve text{{fill:var(--ink)}}.cal-curve .t{{font-size:12px;font-weight:600}}"
      ".cal-curve .g{{stroke:var(--faint);fill:none}}.cal-curve "
      ".l{{stroke:var(--again);fill:none;stroke-width:2}}"
      ".cal-curve .b{{stroke:var(--peak);stroke-width:8}}.cal-curve .o{{stroke:var(--again)}}</style>"
      "<text class=\"t\" x=\"{}\" y=\"16\">a training step under limits of memory</text>"
      "<path class=\"b\" d=\"M{} 28v10\"/><text x=\"{}\" y=\"37\">predicted peak</text>"
      "<path class=\"l\" d=\"M{} 33h24\"/><text x=\"{}\" y=\"37\">share of the layers' forward pass that "
      "runs "
      "again</text>",
      kLeft + kWidth + 40, kTop + kHeight + 60, kLeft, kLeft + 4, kLeft + 14, kLeft + 120, kLeft + 150);
  for (int tenth = 0; tenth <= 10; tenth += 2) {
    text += fmt::format(
        "<path class=\"g\" d=\"M{0} {1:.1f}h{2}\"/><text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5} "
        "%</text>",
        kLeft, y(tenth / 10.0), kWidth, kLeft - 8, y(tenth / 10.0) + 4, tenth * 10);
  }
  std::string line;
  for (const MemoryRow* row : by_limit) {
    const bool is_own = row == own;
    text += label(row->limit_bytes, is_own ? 48 : 18,
                  bytes_text(row->limit_bytes) + (is_own ? ", the limit given" : ""));
    if (!row->choice) {
      text += label(row->limit_bytes, is_own ? 34 : 32, "too low");
      continue;
    }
    const std::uint64_t peak = row->choice->predicted_peak_bytes;
    text += fmt::format("<path class=\"b{}\" d=\"M{:.1f} {:.1f}V{:.1f}\"><title>peak {}</title></path>",
                        is_own ? " o" : "", x(row->limit_bytes), kTop + kHeight,
                        y(static_cast<double>(peak) / static_cast<double>(most)), bytes_text(peak));
    line += fmt::format("{}{:.1f} {:.1f}", line.empty() ? "M" : "L", x(row->limit_bytes),
                        y(row->choice->recomputed));
  }
  return text + fmt::format("<path class=\"l\" d=\"{}\"/></svg>\n", line);
}

}  // namespace caldera::cli
