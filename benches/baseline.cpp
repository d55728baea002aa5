#include "benches/baseline.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"

namespace caldera::bench {
namespace {

constexpr const char* kLimit = "limit";
/// Of this engine's own, and so no yardstick.
constexpr const char* kNamed = "named";

/// Three digits: the rest is noise, and would differ in every line from one baseline to the next.
double short_ratio(double value) { return std::stod(fmt::format("{:.3g}", value)); }

}  // namespace

Baseline::Baseline(std::span<const Result> results, nlohmann::ordered_json environment)
    : environment_(std::move(environment)) {
  for (const Result& result : results)
    if (Ratios ratios = ratios_of(result); !ratios.empty()) rows_[result.name] = std::move(ratios);
}

Baseline::Ratios Baseline::ratios_of(const Result& result) {
  Ratios ratios;
  for (const auto& [name, figure] : result.peers)
    if (name != kNamed && figure.us > 0) ratios[name] = result.total_us / figure.us;
  if (result.limit_us && *result.limit_us > 0) ratios[kLimit] = result.total_us / *result.limit_us;
  return ratios;
}

Baseline Baseline::read(const std::filesystem::path& file) {
  const auto refuse = [&](const std::string& what) {
    throw FileError(fmt::format("{}: {}; `caldera bench --save-baseline {}` writes one", file.string(), what,
                                file.string()));
  };
  nlohmann::json document;
  try {
    document = nlohmann::json::parse(read_text_file(file));
  } catch (const nlohmann::json::exception& error) {  // says where
    refuse(fmt::format("it is no JSON: {}", error.what()));
  }
  const auto rows = document.is_object() ? document.find("rows") : document.end();
  if (rows == document.end() || !rows->is_object())
    refuse("it is no baseline: it is no JSON object with an object \"rows\"");
  Baseline baseline;
  for (const auto& [name, ratios] : rows->items()) {
    if (!ratios.is_object()) refuse(fmt::format("the row '{}' is no object of ratios", name));
    for (const auto& [of, ratio] : ratios.items()) {
      if (!ratio.is_number() || !(ratio.get<double>() > 0))
        refuse(fmt::format("the ratio to '{}' of the row '{}' is no number above 0", of, name));
      baseline.rows_[name][of] = ratio.get<double>();
    }
  }
  return baseline;
}

void Baseline::write(const std::filesystem::path& file) const {
  nlohmann::ordered_json rows = nlohmann::ordered_json::object();
  for (const auto& [name, ratios] : rows_)
    for (const auto& [of, ratio] : ratios) rows[name][of] = short_ratio(ratio);
  write_text_file(file, nlohmann::ordered_json{{"environment", environment_}, {"rows", rows}}.dump(1) + "\n");
}

std::optional<Loss> Baseline::loss(const Result& result) const {
  const auto row = rows_.find(result.name);
  if (row == rows_.end()) return std::nullopt;
  std::optional<Loss> by_limit;
  for (const auto& [of, now] : ratios_of(result)) {
    const auto before = row->second.find(of);
    if (before == row->second.end()) continue;
    const bool is_loss = now > before->second * (1 + kTolerance);
    Loss loss{result.name, before->second, now, of};
    // Both engines see the same neighbours, so that a peer tells more than a limit that was measured before.
    if (of != kLimit) return is_loss ? std::optional(std::move(loss)) : std::nullopt;
    if (is_loss) by_limit = std::move(loss);
  }
  return by_limit;
}

}  // namespace caldera::bench
