#include "lm/tokenizers/models/read_merges.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/json_file.h"

namespace caldera::detail {
namespace {

/// Longest entry of a merge list: far above any real one, and short enough to try every space in it.
constexpr std::size_t kMaxMergeBytes = 4096;

bool add_pair(MergeTable& merges, std::string_view left, std::string_view right, const TokenTable& tokens,
              std::size_t prefix_bytes, std::int32_t rank, std::string& joined) {
  if (right.size() < prefix_bytes) return false;
  const auto left_id = tokens.find(left);
  const auto right_id = left_id ? tokens.find(right) : std::nullopt;
  if (!right_id) return false;
  joined.assign(left).append(right.substr(prefix_bytes));
  const auto id = tokens.find(joined);
  if (!id) return false;
  merges.set(*left_id, *right_id, {rank, *id});
  return true;
}

}  // namespace

bool add_merge(MergeTable& merges, std::string_view text, const TokenTable& tokens, std::size_t prefix_bytes,
               std::int32_t rank) {
  if (text.size() > kMaxMergeBytes) return false;
  std::string joined;
  for (auto space = text.find(' '); space != std::string_view::npos; space = text.find(' ', space + 1)) {
    if (add_pair(merges, text.substr(0, space), text.substr(space + 1), tokens, prefix_bytes, rank, joined)) {
      return true;
    }
  }
  return false;
}

MergeTable read_merges(const nlohmann::json& list, const TokenTable& tokens, std::size_t prefix_bytes,
                       const std::string& where) {
  MergeTable merges;
  merges.reserve(list.size());
  std::int32_t rank = 0;
  std::string joined;
  for (const auto& entry : list) {
    bool added = false;
    if (entry.is_string()) {
      added = add_merge(merges, entry.get_ref<const std::string&>(), tokens, prefix_bytes, rank);
    } else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string()) {
      added = add_pair(merges, entry[0].get_ref<const std::string&>(), entry[1].get_ref<const std::string&>(),
                       tokens, prefix_bytes, rank, joined);
    }
    if (!added) {
      throw FileError(
          fmt::format("{}: field 'merges' holds {} (number {}), which is not two tokens of the vocabulary "
                      "that join to a third",
                      where, printable(entry.dump()), rank));
    }
    ++rank;
  }
  return merges;
}

}  // namespace caldera::detail
