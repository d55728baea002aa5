#include "training/text/bpe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <queue>

#include "engine/tensor/error.h"
#include "training/io/json_file.h"
#include "training/text/utf8.h"

namespace caldera::detail {
namespace {

constexpr std::int32_t kNone = -1;

/// Longest entry of a merge list: far above any real one, and short enough to try every space in it.
constexpr std::size_t kMaxMergeBytes = 4096;

std::uint64_t pair_key(std::int32_t left, std::int32_t right) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) |
         static_cast<std::uint32_t>(right);
}

/// A token in the word that is being merged: an element of a doubly linked list in one vector.
struct Symbol {
  std::int32_t id;
  std::int32_t previous;
  std::int32_t next;
};

/// A merge that was possible when it was queued. It is stale if either symbol has changed since.
struct Candidate {
  std::int32_t rank;
  std::int32_t position;  ///< of the left symbol
  std::int32_t left;
  std::int32_t right;
  std::int32_t merged;

  /// For a priority queue, whose top is its largest element: lowest rank first, then leftmost.
  bool operator<(const Candidate& other) const {
    return rank != other.rank ? rank > other.rank : position > other.position;
  }
};

}  // namespace

BpeModel::BpeModel(const nlohmann::json& config, const std::string& where) {
  const JsonFields fields(config, where);
  // Old files do not say "BPE"; that they hold merges tells.
  const auto type = fields.string("type").value_or(fields.has("merges") ? "BPE" : "");
  if (type != "BPE") {
    throw FileError(fmt::format("{}: model '{}' is not supported (supported: BPE)", where, printable(type)));
  }
  if (fields.number("dropout").value_or(0.0) != 0.0) fields.fail("dropout", "is not supported");
  for (const char* field : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    if (!fields.string(field).value_or("").empty()) fields.fail(field, "is not supported");
  }
  byte_fallback_ = fields.boolean("byte_fallback").value_or(false);
  fuse_unknown_ = fields.boolean("fuse_unk").value_or(false);
  ignore_merges_ = fields.boolean("ignore_merges").value_or(false);
  read_vocabulary(config, where);
  read_merges(config, where);
  if (const auto unknown = fields.string("unk_token")) {
    unknown_id_ = id_of(*unknown);
    if (!unknown_id_)
      fields.fail("unk_token", fmt::format("'{}' is not in the vocabulary", printable(*unknown)));
  }
  for (int byte = 0; byte < 256; ++byte) {
    byte_ids_[static_cast<std::size_t>(byte)] = id_of(fmt::format("<0x{:02X}>", byte)).value_or(kNone);
  }
}

void BpeModel::read_vocabulary(const nlohmann::json& config, const std::string& where) {
  const JsonFields fields(config, where);
  const auto* vocabulary = fields.find("vocab");
  if (vocabulary == nullptr || !vocabulary->is_object() || vocabulary->empty()) {
    fields.fail("vocab", "must be an object that is not empty");
  }
  ids_.reserve(vocabulary->size());
  for (const auto& [token, id] : vocabulary->items()) {
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > kMaxTokenId) {
      fields.fail("vocab",
                  fmt::format("gives '{}' an id that is not in 0..{}", printable(token), kMaxTokenId));
    }
    const auto value = id.get<std::int32_t>();
    const auto index = static_cast<std::size_t>(value);
    if (index >= tokens_.size()) tokens_.resize(index + 1, nullptr);
    if (tokens_[index] != nullptr) {
      fields.fail("vocab", fmt::format("gives '{}' and '{}' the same id {}", printable(*tokens_[index]),
                                       printable(token), value));
    }
    tokens_[index] = &ids_.emplace(token, value).first->first;
  }
}

void BpeModel::read_merges(const nlohmann::json& config, const std::string& where) {
  const JsonFields fields(config, where);
  const auto& merges = fields.require_array("merges");
  merges_.reserve(merges.size());
  std::int32_t rank = 0;
  for (const auto& entry : merges) {
    std::optional<Pair> pair;
    if (entry.is_string()) {
      pair = split_merge(entry.get_ref<const std::string&>());
    } else if (entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_string()) {
      pair = merge_of(entry[0].get_ref<const std::string&>(), entry[1].get_ref<const std::string&>());
    }
    if (!pair) {
      fields.fail(
          "merges",
          fmt::format("holds {} (number {}), which is not two tokens of the vocabulary that join to a "
                      "third",
                      printable(entry.dump()), rank));
    }
    merges_.insert_or_assign(pair_key(pair->left, pair->right), Merge{rank++, pair->merged});
  }
}

std::optional<BpeModel::Pair> BpeModel::merge_of(std::string_view left, std::string_view right) const {
  const auto left_id = id_of(left);
  const auto right_id = id_of(right);
  const auto merged = id_of(std::string(left).append(right));
  if (!left_id || !right_id || !merged) return std::nullopt;
  return Pair{*left_id, *right_id, *merged};
}

std::optional<BpeModel::Pair> BpeModel::split_merge(std::string_view text) const {
  if (text.size() > kMaxMergeBytes) return std::nullopt;
  // "a b", with one space between. Some files have tokens that hold spaces themselves; then that space
  // separates which leaves two tokens.
  for (std::size_t space = text.find(' '); space != text.npos; space = text.find(' ', space + 1)) {
    if (auto pair = merge_of(text.substr(0, space), text.substr(space + 1))) return pair;
  }
  return std::nullopt;
}

std::optional<std::int32_t> BpeModel::id_of(std::string_view token) const {
  const auto it = ids_.find(token);
  return it == ids_.end() ? std::nullopt : std::optional(it->second);
}

const std::string* BpeModel::token_of(std::int32_t id) const {
  return id >= 0 && id < size() ? tokens_[static_cast<std::size_t>(id)] : nullptr;
}

const BpeModel::Merge* BpeModel::find_merge(std::int32_t left, std::int32_t right) const {
  const auto it = merges_.find(pair_key(left, right));
  return it == merges_.end() ? nullptr : &it->second;
}

std::vector<std::int32_t> BpeModel::characters(std::string_view word) const {
  std::vector<std::int32_t> ids;
  ids.reserve(word.size());
  bool after_unknown = false;
  while (!word.empty()) {
    const auto character = word.substr(0, std::max<std::size_t>(1, utf8_character(word)));
    word.remove_prefix(character.size());
    if (const auto id = id_of(character)) {
      ids.push_back(*id);
      after_unknown = false;
      continue;
    }
    const auto byte_id = [&](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
    if (byte_fallback_ && std::ranges::all_of(character, [&](char c) { return byte_id(c) != kNone; })) {
      for (const char c : character) ids.push_back(byte_id(c));
      after_unknown = false;
    } else if (unknown_id_) {
      if (!(fuse_unknown_ && after_unknown)) ids.push_back(*unknown_id_);
      after_unknown = true;
    }  // else: the model has no token for it and none to say so; it is dropped, as in the reference
  }
  return ids;
}

void BpeModel::encode(std::string_view word, std::vector<std::int32_t>& ids) const {
  if (word.empty()) return;
  if (ignore_merges_) {
    if (const auto id = id_of(word)) {
      ids.push_back(*id);
      return;
    }
  }
  const auto initial = characters(word);
  if (initial.size() > INT32_MAX) throw ValueError("encode: a text of more than 2^31 characters; split it");
  const auto count = static_cast<std::int32_t>(initial.size());
  std::vector<Symbol> symbols(initial.size());
  for (std::int32_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::size_t>(i);
    symbols[index] = {initial[index], i - 1, i + 1 < count ? i + 1 : kNone};
  }

  const auto at = [&](std::int32_t i) -> Symbol& { return symbols[static_cast<std::size_t>(i)]; };
  std::vector<Candidate> candidates;
  const auto candidate = [&](std::int32_t left, std::int32_t right) -> std::optional<Candidate> {
    const Merge* merge = find_merge(at(left).id, at(right).id);
    if (merge == nullptr) return std::nullopt;
    return Candidate{merge->rank, left, at(left).id, at(right).id, merge->id};
  };
  for (std::int32_t i = 0; i + 1 < count; ++i) {
    if (const auto c = candidate(i, i + 1)) candidates.push_back(*c);
  }
  std::priority_queue<Candidate> queue(std::less<Candidate>{}, std::move(candidates));

  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = at(best.position);
    // A symbol that was merged away has id kNone, so this also skips candidates that began at one.
    if (left.id != best.left || left.next == kNone || at(left.next).id != best.right) continue;
    Symbol& right = at(left.next);
    left.id = best.merged;
    left.next = right.next;
    right.id = kNone;
    if (left.next != kNone) {
      at(left.next).previous = best.position;
      if (const auto c = candidate(best.position, left.next)) queue.push(*c);
    }
    if (left.previous != kNone) {
      if (const auto c = candidate(left.previous, best.position)) queue.push(*c);
    }
  }
  for (std::int32_t i = count > 0 ? 0 : kNone; i != kNone; i = at(i).next) ids.push_back(at(i).id);
}

}  // namespace caldera::detail
