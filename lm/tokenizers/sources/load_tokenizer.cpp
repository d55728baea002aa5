#include "lm/tokenizers/sources/load_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/base/json_file.h"
#include "lm/base/unicode/utf8.h"
#include "lm/formats/model_files.h"
#include "lm/tokenizers/byte_tokenizer.h"
#include "lm/tokenizers/decoders/word_decoders.h"
#include "lm/tokenizers/models/wordpiece.h"
#include "lm/tokenizers/normalizers/bert_normalizer.h"
#include "lm/tokenizers/pipeline/read_tokenizer.h"
#include "lm/tokenizers/pre_tokenizers/character_splits.h"
#include "lm/tokenizers/sources/byte_level_files.h"
#include "lm/tokenizers/sources/gguf_file.h"
#include "lm/tokenizers/sources/model_folder.h"
#include "lm/tokenizers/sources/sentencepiece.h"
#include "lm/tokenizers/sources/tekken.h"

namespace caldera {
namespace {

using namespace detail;  // NOLINT: all that this file puts together is there

/// Longest word that BERT's models cut.
constexpr std::size_t kMaxWordCharacters = 100;
/// Extra tokens of T5's models.
constexpr std::int64_t kT5ExtraIds = 100;
constexpr std::int64_t kMaxExtraIds = 10'000;

/// What classes of the transformers library change in the stages that the file describes.
void override_stages(nlohmann::json& root, const ModelFolder& folder) {
  if (!root.is_object()) return;
  const auto stage = [&](const char* name, const char* type) -> nlohmann::json* {
    const auto it = root.find(name);
    if (it == root.end() || !it->is_object()) return nullptr;
    const auto found = it->find("type");
    return found != it->end() && *found == type ? &*it : nullptr;
  };
  if (auto* bytes = stage("pre_tokenizer", "ByteLevel")) {
    if (const auto prefix = folder.flag("add_prefix_space")) (*bytes)["add_prefix_space"] = *prefix;
  }
  const auto class_name = folder.tokenizer_class();
  const bool bert = class_name == "BertTokenizer" || class_name == "DistilBertTokenizer" ||
                    class_name == "ElectraTokenizer" || class_name == "MPNetTokenizer";
  if (auto* normalizer = bert ? stage("normalizer", "BertNormalizer") : nullptr) {
    if (const auto lower = folder.flag("do_lower_case")) (*normalizer)["lowercase"] = *lower;
    if (const auto strip = folder.flag("strip_accents")) (*normalizer)["strip_accents"] = *strip;
    if (const auto space = folder.flag("tokenize_chinese_chars")) {
      (*normalizer)["handle_chinese_chars"] = *space;
    }
  }
}

TokenizerParts from_tokenizer_json(const ModelFolder& folder) {
  const auto path = folder.path("tokenizer.json");
  auto root = parse_json(read_text_file(path), path.string());
  override_stages(root, folder);
  return read_tokenizer(root, path.string());
}

TokenizerParts from_vocabulary_and_merges(const ModelFolder& folder) {
  const auto vocabulary = folder.path("vocab.json");
  const auto merges = folder.path("merges.txt");
  return read_vocabulary_and_merges(read_text_file(vocabulary), vocabulary.string(), read_text_file(merges),
                                    merges.string(), folder.tokenizer_class(),
                                    folder.flag("add_prefix_space").value_or(false));
}

/// XLM-R's ids: its own first four tokens, then the file's pieces but its first three, then "<mask>".
void renumber_for_xlm_roberta(SentencePieceVocabulary& v, const std::string& where) {
  if (v.pieces.size() < 3) throw FileError(fmt::format("{}: has too few pieces", where));
  const auto replace_head = [](auto& list, auto head, auto tail) {
    list.erase(list.begin(), list.begin() + 3);
    list.insert(list.begin(), head.begin(), head.end());
    list.push_back(tail);
  };
  replace_head(v.pieces, std::vector<std::string>{"<s>", "<pad>", "</s>", "<unk>"}, std::string("<mask>"));
  replace_head(v.scores, std::vector<float>(4, 0.0F), 0.0F);
  replace_head(v.types,
               std::vector{PieceType::control, PieceType::control, PieceType::control, PieceType::unknown},
               PieceType::control);
  v.bos_id = 0;
  v.eos_id = 2;
  v.unknown_id = 3;
}

void append_extra_ids(SentencePieceVocabulary& v, std::int64_t count) {
  for (std::int64_t i = std::clamp<std::int64_t>(count, 0, kMaxExtraIds); i-- > 0;) {
    v.pieces.push_back(fmt::format("<extra_id_{}>", i));
    v.scores.push_back(0.0F);
    v.types.push_back(PieceType::control);
  }
}

TokenizerParts from_sentencepiece(std::string_view file, const ModelFolder& folder,
                                  const std::string& where) {
  static constexpr std::array kRenumbered = {"XLMRobertaTokenizer"};
  static constexpr std::array kRefused = {"CamembertTokenizer", "MBartTokenizer",    "MBart50Tokenizer",
                                          "AlbertTokenizer",    "XLNetTokenizer",    "NllbTokenizer",
                                          "M2M100Tokenizer",    "DebertaV2Tokenizer"};
  const auto name = folder.tokenizer_class();
  if (std::ranges::find(kRefused, name) != kRefused.end()) {
    throw FileError(fmt::format("{}: a vocabulary of the class {} can be read from a tokenizer.json only",
                                where, printable(name)));
  }
  auto vocabulary = read_sentencepiece(file, where);
  const bool xlm_roberta = std::ranges::find(kRenumbered, name) != kRenumbered.end();
  const bool t5 = name == "T5Tokenizer" || name == "MT5Tokenizer";
  if (xlm_roberta) renumber_for_xlm_roberta(vocabulary, where);
  if (t5) append_extra_ids(vocabulary, folder.integer("extra_ids").value_or(kT5ExtraIds));
  const bool llama = is_llama_class(name);
  using Prefix = SentencePieceVocabulary::Prefix;
  if (vocabulary.prefix == Prefix::each_part && llama && !folder.flag("legacy").value_or(true)) {
    vocabulary.prefix = Prefix::first_part;
  }
  if (const auto prefix = folder.flag("add_prefix_space"); prefix && !*prefix)
    vocabulary.prefix = Prefix::none;
  const bool unigram = vocabulary.kind == SentencePieceVocabulary::Kind::unigram;
  TokenizerParts parts = make_parts(std::move(vocabulary), where);
  if (xlm_roberta) {
    parts.post_processor = around(parts.bos_id, parts.eos_id);
  } else if (t5) {
    parts.post_processor = around(std::nullopt, parts.eos_id);
  } else if (!unigram) {  // as Llama's, which are of this kind
    parts.post_processor = around(folder.flag("add_bos_token").value_or(true) ? parts.bos_id : std::nullopt,
                                  folder.flag("add_eos_token").value_or(false) ? parts.eos_id : std::nullopt);
  }
  return parts;
}

TokenizerParts from_tokenizer_model(const ModelFolder& folder, const char* name) {
  const auto path = folder.path(name);
  const auto file = read_text_file(path);
  if (looks_like_tiktoken(file)) return read_tiktoken(file, name, path.string());
  return from_sentencepiece(file, folder, path.string());
}

/// BERT's vocab.txt: a token a line, whose number is its id.
TokenizerParts from_bert_vocabulary(const ModelFolder& folder) {
  const auto path = folder.path("vocab.txt");
  const std::string where = path.string();
  const auto file = read_text_file(path);
  if (!is_utf8(file)) throw FileError(fmt::format("{}: is not UTF-8", where));
  TokenizerParts parts;
  TokenTable tokens;
  std::int32_t id = 0;
  for (std::string_view rest = file; !rest.empty(); ++id) {
    const auto end = rest.find('\n');
    auto line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (id > kMaxTokenId || line.size() > kMaxTokenBytes) {
      throw FileError(fmt::format("{}: line {} is too long or one too many", where, id + 1));
    }
    tokens.add_or_rename(line, id);
  }
  const auto named = [&](const char* field, const char* otherwise) {
    return tokens.find(folder.special_token(field).value_or(otherwise));
  };
  const auto unknown = named("unk_token", "[UNK]");
  if (!unknown) throw FileError(fmt::format("{}: holds no token for unknown words ('[UNK]')", where));
  const auto cls = named("cls_token", "[CLS]");
  const auto separator = named("sep_token", "[SEP]");
  for (const auto& special :
       {unknown, cls, separator, named("pad_token", "[PAD]"), named("mask_token", "[MASK]")}) {
    const bool known =
        special && std::ranges::find(parts.added, *special, &AddedToken::id) != parts.added.end();
    if (special && !known) {
      parts.added.push_back(
          {.id = *special, .content = std::string(*tokens.text_of(*special)), .special = true});
    }
  }
  const bool lowercase = folder.flag("do_lower_case").value_or(true);
  parts.normalizer =
      make_bert_normalizer({.space_ideographs = folder.flag("tokenize_chinese_chars").value_or(true),
                            .strip_accents = folder.flag("strip_accents").value_or(lowercase),
                            .lowercase = lowercase});
  parts.pre_tokenizer = make_bert_pre_tokenizer();
  parts.model = std::make_unique<WordPieceModel>(std::move(tokens), *unknown, "##", kMaxWordCharacters);
  parts.post_processor = around(cls, separator);
  parts.decoder = make_wordpiece_decoder("##", true);
  return parts;
}

/// The name of a file of the folder that ends with ".tiktoken", or "".
std::string tiktoken_name(const std::filesystem::path& dir) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
    if (entry.path().extension() == ".tiktoken") names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names.empty() ? "" : names.front();
}

std::unique_ptr<Tokenizer> open_files(const ModelFolder& folder, const std::string& tiktoken) {
  TokenizerParts parts;
  std::string file;
  if (folder.has("tokenizer.json")) {
    file = "tokenizer.json";
    parts = from_tokenizer_json(folder);
  } else if (folder.has("tekken.json")) {
    file = "tekken.json";
    const auto path = folder.path(file.c_str());
    parts = read_tekken(read_text_file(path), path.string());
  } else if (folder.has("vocab.json") && folder.has("merges.txt")) {
    file = "vocab.json";
    parts = from_vocabulary_and_merges(folder);
  } else if (folder.has("tokenizer.model")) {
    file = "tokenizer.model";
    parts = from_tokenizer_model(folder, file.c_str());
  } else if (folder.has("sentencepiece.bpe.model")) {
    file = "sentencepiece.bpe.model";
    parts = from_tokenizer_model(folder, file.c_str());
  } else if (folder.has("spiece.model")) {
    file = "spiece.model";
    parts = from_tokenizer_model(folder, file.c_str());
  } else if (!tiktoken.empty()) {
    file = tiktoken;
    const auto path = folder.path(file.c_str());
    parts = read_tiktoken(read_text_file(path), file, path.string());
  } else if (folder.has("vocab.txt")) {
    file = "vocab.txt";
    parts = from_bert_vocabulary(folder);
  } else {
    return nullptr;
  }
  folder.complete(parts);
  return std::make_unique<Pipeline>(std::move(parts), folder.path(file.c_str()).string());
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& model_dir) {
  if (is_gguf_path(model_dir)) return load_gguf_tokenizer(model_dir);
  std::error_code ignored;
  if (!std::filesystem::is_directory(model_dir, ignored)) {
    throw FileError(fmt::format("{}: there is no such model folder", model_dir.string()));
  }
  const ModelFolder folder(model_dir);
  if (auto opened = open_files(folder, tiktoken_name(model_dir))) return opened;

  const auto vocab_size = folder.model_vocab_size();
  if (vocab_size == 258) return std::make_unique<ByteTokenizer>(true);
  if (vocab_size == 256) return std::make_unique<ByteTokenizer>(false);
  throw FileError(fmt::format(
      "{}: the folder holds no tokenizer.json (nor tekken.json, vocab.json with merges.txt, tokenizer.model, "
      "a "
      "tiktoken file or vocab.txt), and its config.json has not the vocab_size of the byte tokenizer "
      "(258, or 256 without special tokens)",
      model_dir.string()));
}

}  // namespace caldera
