#include "lm/tokenizers/models/read_model.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/tokenizers/models/bpe.h"
#include "lm/tokenizers/models/read_merges.h"
#include "lm/tokenizers/models/unigram.h"
#include "lm/tokenizers/models/wordpiece.h"

namespace caldera::detail {
namespace {

/// Longest word that WordPiece cuts, by default.
constexpr std::int64_t kMaxWordCharacters = 100;

/// The id of the token that `field` names; nothing where the field is missing.
std::optional<std::int32_t> token_of(const JsonFields& fields, const char* field, const TokenTable& tokens) {
  const auto text = fields.string(field);
  if (!text) return std::nullopt;
  const auto id = tokens.find(*text);
  if (!id) fields.fail(field, fmt::format("'{}' is not in the vocabulary", printable(*text)));
  return id;
}

void check_length(const std::string& token, const std::string& where) {
  if (token.size() <= kMaxTokenBytes) return;
  throw FileError(fmt::format("{}: field 'vocab' holds '{}' of {} bytes; the limit is {}", where,
                              printable(token), token.size(), kMaxTokenBytes));
}

TokenTable vocabulary_of(const JsonFields& fields) {
  const auto* vocabulary = fields.find("vocab");
  if (vocabulary == nullptr || !vocabulary->is_object() || vocabulary->empty()) {
    fields.fail("vocab", "must be an object that is not empty");
  }
  return read_vocabulary(*vocabulary, fields.where());
}

std::unique_ptr<Model> read_bpe(const JsonFields& fields) {
  if (fields.number("dropout").value_or(0.0) != 0.0) {
    fields.fail("dropout", "is not supported: one text would have other ids each time");
  }
  BpeModel::Options options;
  options.byte_fallback = fields.boolean("byte_fallback").value_or(false);
  options.fuse_unknown = fields.boolean("fuse_unk").value_or(false);
  options.ignore_merges = fields.boolean("ignore_merges").value_or(false);
  options.continuing_prefix = fields.string("continuing_subword_prefix").value_or("");
  options.word_suffix = fields.string("end_of_word_suffix").value_or("");
  TokenTable tokens = vocabulary_of(fields);
  MergeTable merges =
      read_merges(fields.require_array("merges"), tokens, options.continuing_prefix.size(), fields.where());
  options.unknown_id = token_of(fields, "unk_token", tokens);
  return std::make_unique<BpeModel>(std::move(tokens), std::move(merges), std::move(options));
}

std::unique_ptr<Model> read_unigram(const JsonFields& fields) {
  const auto& list = fields.require_array("vocab");
  if (list.empty()) fields.fail("vocab", "must not be empty");
  if (list.size() > static_cast<std::size_t>(kMaxTokenId)) fields.fail("vocab", "has too many tokens");
  TokenTable tokens;
  tokens.reserve(list.size());
  std::vector<double> scores;
  scores.reserve(list.size());
  for (const auto& entry : list) {
    const bool valid = entry.is_array() && entry.size() == 2 && entry[0].is_string() && entry[1].is_number();
    if (!valid) {
      fields.fail("vocab", fmt::format("holds {} (number {}), which is not a token and its score",
                                       printable(entry.dump()), scores.size()));
    }
    const auto& text = entry[0].get_ref<const std::string&>();
    check_length(text, fields.where());
    // A text that stands there twice is, as in the reference, the later token.
    tokens.add_or_rename(text, static_cast<std::int32_t>(scores.size()));
    scores.push_back(entry[1].get<double>());
  }
  UnigramModel::Options options;
  options.byte_fallback = fields.boolean("byte_fallback").value_or(false);
  if (const auto unknown = fields.integer("unk_id")) {
    if (*unknown < 0 || *unknown >= tokens.size()) {
      fields.fail("unk_id", fmt::format("is {}, which no token has", *unknown));
    }
    options.unknown_id = static_cast<std::int32_t>(*unknown);
  }
  return std::make_unique<UnigramModel>(std::move(tokens), std::move(scores), std::move(options),
                                        fields.where());
}

std::unique_ptr<Model> read_wordpiece(const JsonFields& fields) {
  TokenTable tokens = vocabulary_of(fields);
  const auto unknown = fields.string("unk_token").value_or("[UNK]");
  const auto unknown_id = tokens.find(unknown);
  if (!unknown_id) {
    fields.fail("unk_token", fmt::format("'{}' is not in the vocabulary", printable(unknown)));
  }
  const auto longest = fields.integer("max_input_chars_per_word").value_or(kMaxWordCharacters);
  if (longest < 0) fields.fail("max_input_chars_per_word", "must not be negative");
  return std::make_unique<WordPieceModel>(std::move(tokens), *unknown_id,
                                          fields.string("continuing_subword_prefix").value_or("##"),
                                          static_cast<std::size_t>(longest));
}

std::unique_ptr<Model> read_word_level(const JsonFields& fields) {
  TokenTable tokens = vocabulary_of(fields);
  // A vocabulary without its unknown token is one that drops what it does not know.
  const auto unknown = tokens.find(fields.string("unk_token").value_or("<unk>"));
  return std::make_unique<WordLevelModel>(std::move(tokens), unknown);
}

/// The type of a model whose file does not say it, by what else it says.
std::string guess_type(const JsonFields& fields) {
  if (fields.has("merges")) return "BPE";
  if (fields.kind("vocab") == JsonKind::list) return "Unigram";
  if (fields.has("max_input_chars_per_word") || fields.has("continuing_subword_prefix")) return "WordPiece";
  return fields.has("vocab") ? "WordLevel" : "";
}

}  // namespace

TokenTable read_vocabulary(const nlohmann::json& vocabulary, const std::string& where) {
  TokenTable tokens;
  tokens.reserve(vocabulary.size());
  const auto fail = [&](const std::string& problem) {
    throw FileError(fmt::format("{}: field 'vocab' {}", where, problem));
  };
  for (auto it = vocabulary.begin(); it != vocabulary.end(); ++it) {
    const auto& id = it.value();
    if (!id.is_number_unsigned() || id.get<std::uint64_t>() > kMaxTokenId) {
      fail(fmt::format("gives '{}' an id that is not in 0..{}", printable(it.key()), kMaxTokenId));
    }
    const auto value = id.get<std::int32_t>();
    check_length(it.key(), where);
    if (tokens.add(it.key(), value) == TokenTable::Added::id_taken) {
      fail(fmt::format("gives '{}' and '{}' the same id {}", printable(*tokens.text_of(value)),
                       printable(it.key()), value));
    }
  }
  return tokens;
}

std::unique_ptr<Model> read_model(const nlohmann::json& config, const std::string& where) {
  const JsonFields fields(config, where);
  const auto type = fields.string("type").value_or(guess_type(fields));
  if (type == "BPE") return read_bpe(fields);
  if (type == "Unigram") return read_unigram(fields);
  if (type == "WordPiece") return read_wordpiece(fields);
  if (type == "WordLevel") return read_word_level(fields);
  throw FileError(
      fmt::format("{}: model '{}' is not supported (supported: BPE, Unigram, WordPiece, WordLevel)", where,
                  printable(type)));
}

}  // namespace caldera::detail
