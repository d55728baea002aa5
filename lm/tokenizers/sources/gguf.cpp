#include <fmt/format.h>

#include <algorithm>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/base/unicode/utf8.h"
#include "lm/tokenizers/decoders/sentencepiece_decoders.h"
#include "lm/tokenizers/decoders/word_decoders.h"
#include "lm/tokenizers/models/bpe.h"
#include "lm/tokenizers/models/read_merges.h"
#include "lm/tokenizers/models/wordpiece.h"
#include "lm/tokenizers/normalizers/bert_normalizer.h"
#include "lm/tokenizers/normalizers/character_normalizers.h"
#include "lm/tokenizers/normalizers/text_normalizers.h"
#include "lm/tokenizers/pre_tokenizers/character_splits.h"
#include "lm/tokenizers/sources/expressions.h"
#include "lm/tokenizers/sources/gguf_vocabulary.h"
#include "lm/tokenizers/sources/sentencepiece.h"

namespace caldera {
namespace {

using namespace detail;  // NOLINT: all that this file puts together is there

constexpr const char* kSpaceMark = "\xE2\x96\x81";
/// Longest word that BERT's models cut.
constexpr std::size_t kMostWordCharacters = 100;
/// Ids of BERT's [UNK], [CLS] and [SEP], where a file does not say.
constexpr std::int32_t kBertUnknown = 100;
constexpr std::int32_t kBertCls = 101;
constexpr std::int32_t kBertSeparator = 102;

class GgufReader {
 public:
  GgufReader(const GgufVocabulary& vocabulary, const std::string& where) : v_(vocabulary), where_(where) {}

  TokenizerParts read() {
    check();
    if (v_.model == "gpt2") return byte_level_bpe();
    if (v_.model == "llama") return sentencepiece(SentencePieceVocabulary::Kind::bpe);
    if (v_.model == "t5") return sentencepiece(SentencePieceVocabulary::Kind::unigram);
    if (v_.model == "bert") return bert();
    if (v_.model == "gemma4") return merged_sentencepiece();
    fail(fmt::format("tokenizer model '{}' is not supported (supported: gpt2, llama, bert, t5, gemma4)",
                     printable(v_.model)));
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw FileError(fmt::format("{}: {}", where_, problem));
  }

  void check() const {
    const std::size_t count = v_.tokens.size();
    if (count == 0) fail("the tokenizer has no tokens");
    if (count > static_cast<std::size_t>(kMaxTokenId)) fail("the tokenizer has too many tokens");
    if (!v_.scores.empty() && v_.scores.size() != count) {
      fail(fmt::format("the tokenizer has {} tokens, but {} scores", count, v_.scores.size()));
    }
    if (!v_.token_types.empty() && v_.token_types.size() != count) {
      fail(fmt::format("the tokenizer has {} tokens, but {} token types", count, v_.token_types.size()));
    }
    for (const auto& token : v_.tokens) {
      if (token.size() > kMaxTokenBytes) {
        fail(fmt::format("a token has {} bytes; the limit is {}", token.size(), kMaxTokenBytes));
      }
    }
  }

  std::optional<std::int32_t> id(std::optional<std::int64_t> value) const {
    // Writers put 2^32 - 1 for none.
    if (!value || *value < 0 || *value >= static_cast<std::int64_t>(v_.tokens.size())) return std::nullopt;
    return static_cast<std::int32_t>(*value);
  }

  PieceType type(std::size_t token) const {
    if (v_.token_types.empty()) return PieceType::normal;
    const std::int32_t number = v_.token_types[token];
    return number < 1 || number > 6 ? PieceType::normal : static_cast<PieceType>(number);
  }

  TokenTable table() const {
    TokenTable tokens;
    tokens.reserve(v_.tokens.size());
    for (std::size_t i = 0; i < v_.tokens.size(); ++i) {
      tokens.add_or_rename(to_utf8(v_.tokens[i]), static_cast<std::int32_t>(i));
    }
    return tokens;
  }

  std::vector<AddedToken> added() const {
    std::vector<AddedToken> tokens;
    for (std::size_t i = 0; i < v_.tokens.size(); ++i) {
      const bool special = type(i) == PieceType::control || type(i) == PieceType::unknown;
      if ((!special && type(i) != PieceType::user_defined) || v_.tokens[i].empty()) continue;
      tokens.push_back(
          {.id = static_cast<std::int32_t>(i), .content = to_utf8(v_.tokens[i]), .special = special});
    }
    return tokens;
  }

  MergeTable merges(const TokenTable& tokens) const {
    if (v_.merges.empty()) fail("the tokenizer has no merges");
    MergeTable table;
    table.reserve(v_.merges.size());
    std::int32_t rank = 0;
    for (const auto& merge : v_.merges) {
      if (!add_merge(table, merge, tokens, 0, rank)) {
        fail(fmt::format("merge {} is '{}', which is not two tokens that join to a third", rank,
                         printable(merge)));
      }
      ++rank;
    }
    return table;
  }

  void set_ends(TokenizerParts& parts, bool add_bos, bool add_eos) const {
    parts.bos_id = id(v_.bos_id);
    parts.eos_id = id(v_.eos_id);
    parts.post_processor = around(v_.add_bos.value_or(add_bos) ? parts.bos_id : std::nullopt,
                                  v_.add_eos.value_or(add_eos) ? parts.eos_id : std::nullopt);
  }

  TokenizerParts byte_level_bpe() const {
    const PreTokenization* entry = find_pre_tokenization(v_.pre);
    if (entry == nullptr) {
      fail(fmt::format("pre-tokenizer '{}' is not known, and any other would give wrong ids",
                       printable(v_.pre)));
    }
    TokenizerParts parts;
    parts.added = added();
    if (v_.nfc.value_or(entry->nfc)) parts.normalizer = make_nfc();
    parts.pre_tokenizer = make_pre_tokenizer(*entry, where_);
    TokenTable tokens = table();
    MergeTable table = merges(tokens);
    BpeModel::Options options;
    options.ignore_merges = entry->ignore_merges;
    parts.model = std::make_unique<BpeModel>(std::move(tokens), std::move(table), std::move(options));
    parts.decoder = make_byte_level_decoder();
    set_ends(parts, entry->add_bos, false);
    if (entry->add_sep) {
      const auto separator = id(v_.separator_id);
      parts.post_processor = around(v_.add_bos.value_or(true) ? parts.bos_id : std::nullopt,
                                    separator ? separator : parts.eos_id);
    }
    return parts;
  }

  TokenizerParts sentencepiece(SentencePieceVocabulary::Kind kind) const {
    if (v_.scores.empty()) fail(fmt::format("the '{}' tokenizer has no scores", v_.model));
    const bool unigram = kind == SentencePieceVocabulary::Kind::unigram;
    using Prefix = SentencePieceVocabulary::Prefix;
    SentencePieceVocabulary pieces;
    pieces.kind = kind;
    for (std::size_t i = 0; i < v_.tokens.size(); ++i) {
      pieces.pieces.push_back(to_utf8(v_.tokens[i]));
      pieces.types.push_back(type(i));
    }
    pieces.scores = v_.scores;
    pieces.unknown_id = id(v_.unknown_id);
    if (!pieces.unknown_id) pieces.unknown_id = id(unigram ? 2 : 0);
    pieces.prefix = v_.add_space_prefix.value_or(true) ? Prefix::each_part : Prefix::none;
    pieces.remove_extra_whitespaces = unigram && v_.remove_extra_whitespaces.value_or(true);
    if (unigram) pieces.charsmap.assign(v_.precompiled_charsmap.begin(), v_.precompiled_charsmap.end());
    TokenizerParts parts = make_parts(std::move(pieces), where_);
    set_ends(parts, !unigram, unigram);
    return parts;
  }

  /// BPE by a list of merges over characters, spaces being U+2581.
  TokenizerParts merged_sentencepiece() const {
    TokenizerParts parts;
    parts.added = added();
    std::vector<std::unique_ptr<Normalizer>> steps;
    if (v_.add_space_prefix.value_or(false)) steps.push_back(make_prepend(kSpaceMark));
    steps.push_back(make_replace(TextPattern(std::string(" ")), kSpaceMark));
    parts.normalizer = make_sequence(std::move(steps));
    TokenTable tokens = table();
    MergeTable table = merges(tokens);
    BpeModel::Options options;
    options.unknown_id = id(v_.unknown_id);
    options.fuse_unknown = true;
    options.byte_fallback = tokens.find("<0x00>").has_value();
    parts.model = std::make_unique<BpeModel>(std::move(tokens), std::move(table), std::move(options));
    parts.decoder = make_sentencepiece_decoder(v_.add_space_prefix.value_or(false));
    set_ends(parts, true, false);
    return parts;
  }

  /// The text that BERT's own vocabulary has for a token: GGUF writes words with a space before them, and
  /// what continues a word without "##".
  std::string bert_text(const std::string& token) const {
    if (token.starts_with(kSpaceMark)) return token.substr(3);
    if (token.starts_with('[') && token.ends_with(']')) return token;
    return "##" + token;
  }

  TokenizerParts bert() const {
    TokenTable tokens;
    tokens.reserve(v_.tokens.size());
    bool cased = false;  // some word has a capital letter
    TokenizerParts parts;
    for (std::size_t i = 0; i < v_.tokens.size(); ++i) {
      const auto id = static_cast<std::int32_t>(i);
      const std::string text = bert_text(to_utf8(v_.tokens[i]));
      tokens.add_or_rename(text, id);
      const bool bracketed = text.starts_with('[');
      cased |= !bracketed && std::ranges::any_of(text, [](char c) { return c >= 'A' && c <= 'Z'; });
      if (type(i) == PieceType::control || type(i) == PieceType::unknown) {
        parts.added.push_back({.id = id, .content = text, .special = true});
      }
    }
    const bool lowercase = v_.lowercase.value_or(!cased);
    parts.normalizer =
        make_bert_normalizer({.strip_accents = v_.strip_accents.value_or(lowercase), .lowercase = lowercase});
    parts.pre_tokenizer = make_bert_pre_tokenizer();
    const auto either = [&](std::optional<std::int64_t> first, std::optional<std::int64_t> second,
                            std::int32_t otherwise) {
      const auto found = id(first) ? id(first) : id(second);
      return found ? found : id(otherwise);
    };
    parts.bos_id = either(v_.cls_id, v_.bos_id, kBertCls);
    parts.eos_id = either(v_.separator_id, v_.eos_id, kBertSeparator);
    parts.post_processor = around(v_.add_bos.value_or(true) ? parts.bos_id : std::nullopt,
                                  v_.add_eos.value_or(true) ? parts.eos_id : std::nullopt);
    const auto unknown = either(v_.unknown_id, std::nullopt, kBertUnknown);
    parts.model =
        std::make_unique<WordPieceModel>(std::move(tokens), unknown.value_or(0), "##", kMostWordCharacters);
    parts.decoder = make_wordpiece_decoder("##", true);
    return parts;
  }

  const GgufVocabulary& v_;
  const std::string& where_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_tokenizer(const GgufVocabulary& vocabulary, const std::string& where) {
  return std::make_unique<Pipeline>(GgufReader(vocabulary, where).read(), where);
}

}  // namespace caldera
