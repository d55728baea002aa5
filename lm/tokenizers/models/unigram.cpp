#include "lm/tokenizers/models/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/error.h"
#include "lm/base/unicode/characters.h"

namespace caldera::detail {
namespace {

/// What an unknown character costs beyond the worst token: kUnkPenalty of SentencePiece.
constexpr double kUnknownPenalty = 10.0;

constexpr std::int32_t kUnknown = -1;

/// The best way to reach a place in the word.
struct Node {
  double score = -std::numeric_limits<double>::infinity();
  std::uint32_t begin = 0;     ///< where its last token begins
  std::int32_t id = kUnknown;  ///< of that token
  bool reached = false;
};

constexpr std::size_t kMaxKeptNodes = 1 << 16;

}  // namespace

UnigramModel::UnigramModel(TokenTable tokens, std::vector<double> scores, Options options,
                           const std::string& where)
    : tokens_(std::move(tokens)),
      scores_(std::move(scores)),
      options_(std::move(options)),
      byte_tokens_(tokens_) {
  double worst = std::numeric_limits<double>::infinity();
  std::vector<ByteTrie::Entry> entries;
  entries.reserve(tokens_.count());
  tokens_.for_each([&](std::string_view text, std::int32_t id) {
    const double score = scores_[static_cast<std::size_t>(id)];
    if (!std::isfinite(score)) throw FileError(fmt::format("{}: token id {} has no finite score", where, id));
    const auto index = static_cast<std::size_t>(id);
    if (index < options_.hidden.size() && options_.hidden[index]) return;
    worst = std::min(worst, score);
    entries.emplace_back(text, id);
  });
  trie_ = ByteTrie(std::move(entries));
  unknown_score_ = (std::isfinite(worst) ? worst : 0.0) - kUnknownPenalty;
}

void UnigramModel::append_unknown(std::string_view text, std::vector<std::int32_t>& ids) const {
  if (options_.byte_fallback && byte_tokens_.append(text, ids)) return;
  if (options_.unknown_id) ids.push_back(*options_.unknown_id);
}

void UnigramModel::encode(std::string_view word, std::vector<std::int32_t>& ids) const {
  if (word.size() >= UINT32_MAX) throw ValueError("encode: a text of more than 4 GiB; split it");
  thread_local std::vector<Node> nodes;
  nodes.assign(word.size() + 1, Node{});
  nodes[0] = {0.0, 0, kUnknown, true};
  const auto reach = [&](std::size_t end, double score, std::size_t begin, std::int32_t id) {
    Node& node = nodes[end];
    if (!node.reached || score > node.score) node = {score, static_cast<std::uint32_t>(begin), id, true};
  };
  for (std::size_t at = 0, bytes = 0; at < word.size(); at += bytes) {
    bytes = first_character(word.substr(at)).bytes;
    const double here = nodes[at].score;
    bool single = false;  // some token is just this character
    trie_.for_each_prefix(word.substr(at), [&](std::size_t length, std::int32_t id) {
      reach(at + length, here + scores_[static_cast<std::size_t>(id)], at, id);
      single |= length == bytes;
    });
    if (!single) reach(at + bytes, here + unknown_score_, at, kUnknown);
  }
  const std::size_t first = ids.size();
  for (std::size_t end = word.size(); end > 0;) {
    const Node& node = nodes[end];
    std::size_t begin = node.begin;
    if (node.id != kUnknown) {
      ids.push_back(node.id);
    } else {
      while (begin > 0 && nodes[begin].id == kUnknown) begin = nodes[begin].begin;  // a run is one token
      const std::size_t before = ids.size();
      append_unknown(word.substr(begin, end - begin), ids);
      std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end());
    }
    end = begin;
  }
  std::reverse(ids.begin() + static_cast<std::ptrdiff_t>(first), ids.end());
  if (nodes.size() > kMaxKeptNodes) nodes = {};
}

}  // namespace caldera::detail
