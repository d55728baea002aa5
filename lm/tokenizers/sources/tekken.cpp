#include "lm/tokenizers/sources/tekken.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/base64.h"
#include "lm/base/json_file.h"
#include "lm/tokenizers/decoders/word_decoders.h"
#include "lm/tokenizers/models/bpe.h"
#include "lm/tokenizers/sources/expressions.h"
#include "lm/tokenizers/vocabulary/byte_alphabet.h"

namespace caldera::detail {
namespace {

/// Most special tokens; files in use have 1,000.
constexpr std::int64_t kMaxSpecialTokens = 1 << 16;
/// The tokens of single bytes come first.
constexpr std::size_t kByteTokens = 256;

/// What files of the versions up to v7 need not list.
constexpr std::string_view kFirstSpecialTokens[] = {"<unk>",
                                                    "<s>",
                                                    "</s>",
                                                    "[INST]",
                                                    "[/INST]",
                                                    "[AVAILABLE_TOOLS]",
                                                    "[/AVAILABLE_TOOLS]",
                                                    "[TOOL_RESULTS]",
                                                    "[/TOOL_RESULTS]",
                                                    "[TOOL_CALLS]",
                                                    "[IMG]",
                                                    "<pad>",
                                                    "[IMG_BREAK]",
                                                    "[IMG_END]",
                                                    "[PREFIX]",
                                                    "[MIDDLE]",
                                                    "[SUFFIX]",
                                                    "[SYSTEM_PROMPT]",
                                                    "[/SYSTEM_PROMPT]",
                                                    "[TOOL_CONTENT]"};
constexpr std::string_view kVersionsWithout[] = {"v1", "v2", "v3", "v7"};

struct Sizes {
  std::size_t special;
  std::size_t inner;  ///< tokens that are not special
};

Sizes read_sizes(const JsonFields& config) {
  const auto special = config.require_integer("default_num_special_tokens");
  const auto all = config.require_integer("default_vocab_size");
  if (special < 0 || special > kMaxSpecialTokens) {
    config.fail("default_num_special_tokens",
                fmt::format("is {}, which is not in 0..{}", special, kMaxSpecialTokens));
  }
  const std::int64_t least = special + static_cast<std::int64_t>(kByteTokens);
  if (all < least || all > kMaxTokenId + 1) {
    config.fail("default_vocab_size",
                fmt::format("is {}, which is not in {}..{}", all, least, kMaxTokenId + 1));
  }
  return {static_cast<std::size_t>(special), static_cast<std::size_t>(all - special)};
}

/// The texts of the special tokens by id. Those that the file does not name are called by their numbers.
std::vector<std::string> read_special(const JsonFields& file, const JsonFields& config, std::size_t count) {
  std::vector<std::string> texts;
  if (file.has("special_tokens")) {
    const auto& list = file.require_array("special_tokens");
    texts.resize(std::min(list.size(), count + 1));
    for (const auto& entry : list) {
      const JsonFields fields(entry, file.where());
      const auto rank = fields.require_integer("rank");
      auto text = fields.require_string("token_str");
      const bool valid = rank >= 0 && rank < static_cast<std::int64_t>(texts.size()) &&
                         texts[static_cast<std::size_t>(rank)].empty();
      if (!valid || text.empty() || text.size() > kMaxTokenBytes) {
        file.fail("special_tokens",
                  fmt::format("holds '{}' of rank {}, which is no text with a rank of its own below {}",
                              printable(text), rank, texts.size()));
      }
      texts[static_cast<std::size_t>(rank)] = std::move(text);
    }
  } else {
    const auto version = config.string("version").value_or("");
    if (std::ranges::find(kVersionsWithout, version) == std::end(kVersionsWithout)) {
      file.fail("special_tokens",
                fmt::format("is missing, which only files up to version v7 may do (this one is "
                            "of version '{}')",
                            printable(version)));
    }
    texts.assign(std::begin(kFirstSpecialTokens), std::end(kFirstSpecialTokens));
  }
  if (texts.size() > count) {
    file.fail("special_tokens", fmt::format("has more than the {} of default_num_special_tokens", count));
  }
  while (texts.size() < count) texts.push_back(fmt::format("<SPECIAL_{}>", texts.size()));
  return texts;
}

std::vector<AddedToken> added_tokens(const std::vector<std::string>& texts, const JsonFields& file) {
  auto sorted = texts;
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end()) {
    file.fail("special_tokens", fmt::format("has '{}' twice", printable(*twice)));
  }
  std::vector<AddedToken> added;
  added.reserve(texts.size());
  for (const auto& text : texts) {
    added.push_back({.id = static_cast<std::int32_t>(added.size()), .content = text, .special = true});
  }
  return added;
}

/// The tokens that are not special, written in the byte-level alphabet.
TokenTable read_tokens(const JsonFields& file, const Sizes& sizes) {
  const auto& list = file.require_array("vocab");
  if (list.size() < sizes.inner) {
    file.fail("vocab",
              fmt::format("has {} tokens, fewer than the {} of default_vocab_size without the special ones",
                          list.size(), sizes.inner));
  }
  TokenTable tokens;
  tokens.reserve(sizes.inner);
  for (std::size_t i = 0; i < sizes.inner; ++i) {  // what comes after is left out, as in the reference
    const JsonFields fields(list[i], file.where());
    const auto rank = fields.require_integer("rank");
    const auto text = fields.require_string("token_bytes");
    const auto bytes = decode_base64(text);
    const bool valid = rank == static_cast<std::int64_t>(i) && bytes && !bytes->empty() &&
                       bytes->size() <= kMaxTokenBytes / 2 &&
                       (i >= kByteTokens || *bytes == std::string(1, static_cast<char>(i)));
    const auto id = static_cast<std::int32_t>(i + sizes.special);
    if (!valid || tokens.add(bytes_to_characters(*bytes), id) != TokenTable::Added::yes) {
      file.fail(
          "vocab",
          fmt::format("holds '{}' of rank {} (number {}), which is no token in base64 whose rank is "
                      "its place; the first {} must be the single bytes, and none may stand there twice",
                      printable(text), rank, i, kByteTokens));
    }
  }
  return tokens;
}

}  // namespace

TokenizerParts read_tekken(std::string_view file, const std::string& where) {
  const auto root = parse_json(file, where);
  if (!root.is_object()) throw FileError(fmt::format("{}: the JSON root is not an object", where));
  const JsonFields fields(root, where);
  const auto* config_json = fields.find("config");
  if (config_json == nullptr || !config_json->is_object()) fields.fail("config", "must be an object");
  const std::string config_where = where + ": config";
  const JsonFields config(*config_json, config_where);
  const auto pattern = config.require_string("pattern");
  const Sizes sizes = read_sizes(config);

  TokenizerParts parts;
  parts.added = added_tokens(read_special(fields, config, sizes.special), fields);
  TokenTable tokens = read_tokens(fields, sizes);
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(tokens.size()));
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<std::int32_t>(i);
  MergeTable merges = merges_by_rank(tokens, ranks);
  BpeModel::Options options;
  options.ignore_merges = true;
  const std::string_view expressions[] = {pattern};
  parts.pre_tokenizer = make_pre_tokenizer({.name = "tekken", .expressions = expressions}, config_where);
  parts.model = std::make_unique<BpeModel>(std::move(tokens), std::move(merges), std::move(options));
  parts.decoder = make_byte_level_decoder();
  parts.bos_id = parts.id_of("<s>");
  parts.eos_id = parts.id_of("</s>");
  parts.post_processor = around(parts.bos_id, std::nullopt);
  return parts;
}

}  // namespace caldera::detail
