#include "lm/tokenizers/sources/sentencepiece.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/tokenizers/decoders/sentencepiece_decoders.h"
#include "lm/tokenizers/models/bpe.h"
#include "lm/tokenizers/models/unigram.h"
#include "lm/tokenizers/normalizers/precompiled.h"
#include "lm/tokenizers/normalizers/text_normalizers.h"
#include "lm/tokenizers/pre_tokenizers/metaspace.h"

namespace caldera::detail {
namespace {

constexpr const char* kMark = "\xE2\x96\x81";

/// Removes spaces at the ends, and all but one of a run.
class ExtraSpaceNormalizer final : public Normalizer {
 public:
  std::string normalize(std::string text) const override {
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
      if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
    }
    if (out.ends_with(' ')) out.pop_back();
    return out;
  }
};

/// Whether text may become a piece of this type other than through the piece's whole name.
bool is_hidden(PieceType type) { return type != PieceType::normal && type != PieceType::user_defined; }

std::unique_ptr<Model> make_bpe(TokenTable tokens, const SentencePieceVocabulary& vocabulary,
                                const std::string& where) {
  const auto& scores = vocabulary.scores;
  if (!std::ranges::all_of(scores, [](float s) { return std::isfinite(s); })) {
    throw FileError(fmt::format("{}: a piece has no finite score", where));
  }
  // The higher the score, the earlier the merge; equal scores are equal ranks.
  std::vector<std::int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  const auto score = [&](std::int32_t id) { return scores[static_cast<std::size_t>(id)]; };
  std::ranges::sort(order, [&](std::int32_t a, std::int32_t b) { return score(a) > score(b); });
  std::vector<std::int32_t> rank_of(scores.size());
  std::int32_t rank = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i > 0 && score(order[i]) != score(order[i - 1])) ++rank;
    const auto id = static_cast<std::size_t>(order[i]);
    rank_of[id] = is_hidden(vocabulary.types[id]) ? -1 : rank;
  }
  MergeTable merges = merges_by_rank(tokens, rank_of);
  BpeModel::Options options;
  options.unknown_id = vocabulary.unknown_id;
  options.fuse_unknown = true;
  options.byte_fallback = std::ranges::find(vocabulary.types, PieceType::byte) != vocabulary.types.end();
  return std::make_unique<BpeModel>(std::move(tokens), std::move(merges), std::move(options));
}

std::unique_ptr<Model> make_unigram(TokenTable tokens, const SentencePieceVocabulary& vocabulary,
                                    const std::string& where) {
  UnigramModel::Options options;
  options.unknown_id = vocabulary.unknown_id;
  options.byte_fallback = std::ranges::find(vocabulary.types, PieceType::byte) != vocabulary.types.end();
  for (const PieceType type : vocabulary.types) options.hidden.push_back(is_hidden(type));
  std::vector<double> scores(vocabulary.scores.begin(), vocabulary.scores.end());
  return std::make_unique<UnigramModel>(std::move(tokens), std::move(scores), std::move(options), where);
}

}  // namespace

TokenizerParts make_parts(SentencePieceVocabulary vocabulary, const std::string& where) {
  TokenizerParts parts;
  TokenTable tokens;
  tokens.reserve(vocabulary.pieces.size());
  for (std::size_t i = 0; i < vocabulary.pieces.size(); ++i) {
    const auto id = static_cast<std::int32_t>(i);
    const auto& piece = vocabulary.pieces[i];
    if (piece.size() > kMaxTokenBytes) {
      throw FileError(
          fmt::format("{}: piece {} has {} bytes; the limit is {}", where, id, piece.size(), kMaxTokenBytes));
    }
    tokens.add_or_rename(piece, id);
    const PieceType type = vocabulary.types[i];
    const bool special = type == PieceType::control || type == PieceType::unknown;
    if ((special || type == PieceType::user_defined) && !piece.empty()) {
      parts.added.push_back({.id = id, .content = piece, .special = special});
    }
  }
  std::vector<std::unique_ptr<Normalizer>> steps;
  if (auto map = make_precompiled(vocabulary.charsmap, CharsmapMatch::longest, where)) {
    steps.push_back(std::move(map));
  }
  if (vocabulary.remove_extra_whitespaces) steps.push_back(std::make_unique<ExtraSpaceNormalizer>());
  if (vocabulary.prefix == SentencePieceVocabulary::Prefix::first_part) {
    parts.pre_tokenizer = make_metaspace(kMark, PrependScheme::first, false);
  } else {
    if (vocabulary.prefix == SentencePieceVocabulary::Prefix::each_part) steps.push_back(make_prepend(kMark));
    steps.push_back(make_replace(TextPattern(std::string(" ")), kMark));
  }
  parts.normalizer = make_sequence(std::move(steps));
  parts.model = vocabulary.kind == SentencePieceVocabulary::Kind::bpe
                    ? make_bpe(std::move(tokens), vocabulary, where)
                    : make_unigram(std::move(tokens), vocabulary, where);
  parts.decoder = make_sentencepiece_decoder(vocabulary.prefix != SentencePieceVocabulary::Prefix::none);
  parts.bos_id = vocabulary.bos_id;
  parts.eos_id = vocabulary.eos_id;
  return parts;
}

}  // namespace caldera::detail
