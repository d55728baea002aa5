#include "lm/tokenizers/sources/byte_level_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/base64.h"
#include "lm/base/json_file.h"
#include "lm/base/unicode/utf8.h"
#include "lm/tokenizers/decoders/word_decoders.h"
#include "lm/tokenizers/models/bpe.h"
#include "lm/tokenizers/models/read_merges.h"
#include "lm/tokenizers/models/read_model.h"
#include "lm/tokenizers/normalizers/character_normalizers.h"
#include "lm/tokenizers/pre_tokenizers/byte_level.h"
#include "lm/tokenizers/sources/expressions.h"
#include "lm/tokenizers/vocabulary/byte_alphabet.h"

namespace caldera::detail {
namespace {

/// Takes the next line off `text`, without its end.
std::string_view take_line(std::string_view& text) {
  const auto end = text.find('\n');
  auto line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

MergeTable read_merge_lines(std::string_view text, const TokenTable& tokens, const std::string& where) {
  if (!is_utf8(text)) throw FileError(fmt::format("{}: is not UTF-8", where));
  MergeTable merges;
  std::int32_t rank = 0;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const auto line = take_line(text);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    if (!add_merge(merges, line, tokens, 0, rank)) {
      throw FileError(
          fmt::format("{}: line {} is '{}', which is not two tokens of the vocabulary that join "
                      "to a third",
                      where, number, printable(line)));
    }
    ++rank;
  }
  return merges;
}

struct SpecialToken {
  std::string_view content;
  std::int32_t id;
};

constexpr SpecialToken kR50k[] = {{"<|endoftext|>", 50256}};
constexpr SpecialToken kP50k[] = {{"<|endoftext|>", 50256}};
constexpr SpecialToken kCl100k[] = {{"<|endoftext|>", 100257},
                                    {"<|fim_prefix|>", 100258},
                                    {"<|fim_middle|>", 100259},
                                    {"<|fim_suffix|>", 100260},
                                    {"<|endofprompt|>", 100276}};
constexpr SpecialToken kO200k[] = {{"<|endoftext|>", 199999}, {"<|endofprompt|>", 200018}};
constexpr SpecialToken kQwen[] = {
    {"<|endoftext|>", 151643}, {"<|im_start|>", 151644}, {"<|im_end|>", 151645}};
constexpr SpecialToken kLlama3Tokens[] = {{"<|begin_of_text|>", 128000},   {"<|end_of_text|>", 128001},
                                          {"<|start_header_id|>", 128006}, {"<|end_header_id|>", 128007},
                                          {"<|eom_id|>", 128008},          {"<|eot_id|>", 128009},
                                          {"<|python_tag|>", 128010}};

/// What is known of a tiktoken file by its name.
struct Encoding {
  std::string_view file;
  std::string_view pre;  ///< how texts are cut, as GGUF names it
  std::span<const SpecialToken> special;
  std::int32_t eos;
  std::optional<std::int32_t> bos;  ///< which stands before a text
};

constexpr Encoding kEncodings[] = {
    {"r50k_base.tiktoken", "gpt-2", kR50k, 50256, {}},
    {"gpt2.tiktoken", "gpt-2", kR50k, 50256, {}},
    {"p50k_base.tiktoken", "gpt-2", kP50k, 50256, {}},
    {"cl100k_base.tiktoken", "dbrx", kCl100k, 100257, {}},
    {"o200k_base.tiktoken", "gpt-4o", kO200k, 199999, {}},
    {"qwen.tiktoken", "qwen2", kQwen, 151643, {}},
    {"tokenizer.model", "llama-bpe", kLlama3Tokens, 128001, 128000},
};

/// Reads the tokens, written in the byte-level alphabet.
TokenTable read_ranks(std::string_view file, const std::string& where) {
  TokenTable tokens;
  for (std::int64_t number = 1; !file.empty(); ++number) {
    const auto line = take_line(file);
    if (line.empty()) continue;
    const auto space = line.find(' ');
    const auto bytes = decode_base64(line.substr(0, space));
    std::int64_t rank = -1;
    const char* end = line.data() + line.size();
    const bool parsed = space != std::string_view::npos && bytes && !bytes->empty() &&
                        bytes->size() <= kMaxTokenBytes / 2 &&
                        std::from_chars(line.data() + space + 1, end, rank).ptr == end;
    if (!parsed || rank < 0 || rank > kMaxTokenId ||
        tokens.add(bytes_to_characters(*bytes), static_cast<std::int32_t>(rank)) != TokenTable::Added::yes) {
      throw FileError(fmt::format("{}: line {} is '{}', which is no token in base64 with a rank of its own",
                                  where, number, printable(line)));
    }
  }
  if (tokens.count() == 0) throw FileError(fmt::format("{}: holds no tokens", where));
  return tokens;
}

}  // namespace

TokenizerParts read_vocabulary_and_merges(std::string_view vocabulary, const std::string& vocabulary_where,
                                          std::string_view merges, const std::string& merges_where,
                                          const std::string& tokenizer_class, bool add_prefix_space) {
  static constexpr std::array kGpt2Classes = {
      "", "GPT2Tokenizer", "CodeGenTokenizer", "GPTNeoXTokenizer", "WhisperTokenizer", "PreTrainedTokenizer"};
  static constexpr std::array kRobertaClasses = {"RobertaTokenizer", "LongformerTokenizer", "BartTokenizer",
                                                 "LEDTokenizer"};
  const bool roberta = std::ranges::find(kRobertaClasses, tokenizer_class) != kRobertaClasses.end();
  const bool qwen = tokenizer_class == "Qwen2Tokenizer";
  const bool gpt2 = std::ranges::find(kGpt2Classes, tokenizer_class) != kGpt2Classes.end();
  if (!roberta && !qwen && !gpt2) {
    throw FileError(fmt::format("{}: a vocabulary of the class {} can be read from a tokenizer.json only",
                                vocabulary_where, printable(tokenizer_class)));
  }
  const auto json = parse_json(vocabulary, vocabulary_where);
  if (!json.is_object() || json.empty()) {
    throw FileError(fmt::format("{}: must be an object that is not empty", vocabulary_where));
  }
  TokenizerParts parts;
  TokenTable tokens = read_vocabulary(json, vocabulary_where);
  MergeTable table = read_merge_lines(merges, tokens, merges_where);
  if (qwen) {
    parts.normalizer = make_nfc();
    parts.pre_tokenizer = make_pre_tokenizer(*find_pre_tokenization("qwen2"), vocabulary_where);
  } else {
    parts.pre_tokenizer = make_byte_level(add_prefix_space, true);
  }
  if (roberta) parts.post_processor = around(tokens.find("<s>"), tokens.find("</s>"));
  if (const auto end = tokens.find("<|endoftext|>")) {
    parts.added.push_back({.id = *end, .content = "<|endoftext|>", .special = true});
    parts.bos_id = parts.eos_id = end;
  }
  parts.model = std::make_unique<BpeModel>(std::move(tokens), std::move(table), BpeModel::Options{});
  parts.decoder = make_byte_level_decoder();
  return parts;
}

bool looks_like_tiktoken(std::string_view file) {
  const auto line = take_line(file);
  const auto space = line.find(' ');
  return space != std::string_view::npos && space > 0 && decode_base64(line.substr(0, space)).has_value();
}

TokenizerParts read_tiktoken(std::string_view file, const std::string& name, const std::string& where) {
  const auto* found = std::ranges::find(kEncodings, std::string_view(name), &Encoding::file);
  if (found == std::end(kEncodings)) {
    throw FileError(fmt::format(
        "{}: how this encoding cuts texts is not known by its file's name (known: r50k_base, p50k_base, "
        "cl100k_base, o200k_base, qwen, and tokenizer.model of Llama 3); give a tokenizer.json",
        where));
  }
  const PreTokenization& pre = *find_pre_tokenization(found->pre);
  TokenizerParts parts;
  TokenTable tokens = read_ranks(file, where);
  std::vector<std::int32_t> ranks(static_cast<std::size_t>(tokens.size()));
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<std::int32_t>(i);
  MergeTable merges = merges_by_rank(tokens, ranks);
  BpeModel::Options options;
  options.ignore_merges = true;
  for (const SpecialToken& token : found->special) {
    if (!tokens.has(token.id)) {
      parts.added.push_back({.id = token.id, .content = std::string(token.content), .special = true});
    }
  }
  if (pre.nfc) parts.normalizer = make_nfc();
  parts.pre_tokenizer = make_pre_tokenizer(pre, where);
  parts.model = std::make_unique<BpeModel>(std::move(tokens), std::move(merges), std::move(options));
  parts.decoder = make_byte_level_decoder();
  parts.bos_id = found->bos;
  parts.eos_id = found->eos;
  parts.post_processor = around(found->bos, std::nullopt);
  return parts;
}

}  // namespace caldera::detail
