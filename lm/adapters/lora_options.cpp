#include "lm/adapters/lora_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "engine/base/error.h"
#include "lm/base/regex/regex.h"

namespace caldera {
namespace {

bool matches_all(const std::string& expression, const std::string& text) try {
  const detail::Regex regex("\\A(?:" + expression + ")\\z", detail::Regex::Syntax::pcre, expression);
  bool found = false;
  regex.for_each_match(text, [&](const detail::Regex::Match&) { found = true; });
  return found;
} catch (const FileError& error) {
  throw ValueError(fmt::format("LoRA: no regular expression: {}", error.what()));
}

/// PEFT's get_pattern_key.
bool matches_end(const std::string& expression, const std::string& path) {
  return matches_all("(?:.*\\.)?(?:" + expression + ")", path);
}

void check_size(double rank, double alpha, const std::string& of) {
  if (rank < 1) throw ValueError(fmt::format("LoRA rank {}{} is not positive", rank, of));
  if (!(alpha > 0) || !std::isfinite(alpha))
    throw ValueError(fmt::format("LoRA alpha {}{} is not positive", alpha, of));
}

}  // namespace

double LoRAOptions::scaling() const { return alpha / (use_rslora ? std::sqrt(rank) : rank); }

LoRAOptions LoRAOptions::for_module(const std::string& path) const {
  LoRAOptions own = *this;
  own.rank_pattern.clear();
  own.alpha_pattern.clear();
  for (const auto& [expression, value] : rank_pattern) {
    if (!matches_end(expression, path)) continue;
    own.rank = value;
    break;
  }
  for (const auto& [expression, value] : alpha_pattern) {
    if (!matches_end(expression, path)) continue;
    own.alpha = value;
    break;
  }
  return own;
}

void LoRAOptions::validate() const {
  check_size(rank, alpha, "");
  for (const auto& [expression, value] : rank_pattern) {
    matches_end(expression, "");
    check_size(value, 1, " of " + expression);
  }
  for (const auto& [expression, value] : alpha_pattern) {
    matches_end(expression, "");
    check_size(1, value, " of " + expression);
  }
  if (!(dropout >= 0 && dropout < 1))
    throw ValueError(fmt::format("LoRA dropout {} is not in [0, 1)", dropout));
  for (const std::int64_t layer : layers_to_transform)
    if (layer < 0) throw ValueError(fmt::format("LoRA layers_to_transform holds {}", layer));
}

bool is_lora_pattern(std::string_view target) {
  return target.find_first_of("\\*+?[](){}|^$") != target.npos;
}

bool is_lora_target(const std::string& target, const std::string& path) {
  if (is_lora_pattern(target)) return matches_all(target, path);
  return path == target || path.ends_with("." + target);
}

std::int64_t layer_of_path(std::string_view path, const std::vector<std::string>& lists) {
  bool counts = lists.empty();
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('.'));
    std::int64_t layer = -1;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), layer);
    if (counts && error == std::errc() && end == part.data() + part.size()) return layer;
    counts = lists.empty() || std::ranges::find(lists, part) != lists.end();
    path.remove_prefix(std::min(part.size() + 1, path.size()));
  }
  return -1;
}

}  // namespace caldera
