// The merges of a BPE model, as tokenizer.json and merges.txt list them. Private to lm/tokenizers/.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "lm/tokenizers/models/merge_table.h"

namespace caldera::detail {

/// Reads a list of merges, each "left right" or ["left", "right"], the earlier of the lower rank. What joins
/// to a token is `left` and `right` without its first `prefix_bytes` bytes (a prefix of tokens that continue
/// a word). Throws FileError for what is not two tokens that join to a third.
MergeTable read_merges(const nlohmann::json& list, const TokenTable& tokens, std::size_t prefix_bytes,
                       const std::string& where);

/// Adds one merge written as "left right": the space that leaves two tokens separates. Returns false, and
/// adds nothing, where none does.
bool add_merge(MergeTable& merges, std::string_view text, const TokenTable& tokens, std::size_t prefix_bytes,
               std::int32_t rank);

}  // namespace caldera::detail
