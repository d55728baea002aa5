// GgufVocabulary: the tokenizer that a GGUF file's metadata holds, as plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lm/tokenizers/tokenizer.h"

namespace caldera {

/// The keys `tokenizer.ggml.*` of a GGUF file (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md),
/// each under its own name. What a file does not have stays as it is here.
struct GgufVocabulary {
  /// tokenizer.ggml.model: "gpt2" (byte-level BPE), "llama" (SentencePiece BPE), "bert" (WordPiece), "t5"
  /// (SentencePiece Unigram) or "gemma4" (BPE over UTF-8). Others are refused by name.
  std::string model;
  /// tokenizer.ggml.pre: which regular expressions cut the text before BPE, "llama-bpe" or "qwen2", say.
  /// Empty is "default". A name that is not known is refused, as guessing gives wrong ids.
  std::string pre;
  std::vector<std::string> tokens;               ///< .tokens, by id
  std::vector<float> scores;                     ///< .scores, by id; may be empty, but for "llama" and "t5"
  std::vector<std::int32_t> token_types;         ///< .token_type, by id: 1 normal, 2 unknown, 3 control,
                                                 ///< 4 user-defined, 5 unused, 6 byte; may be empty
  std::vector<std::string> merges;               ///< .merges, each "left right", for "gpt2" and "gemma4"
  std::optional<std::int64_t> bos_id;            ///< .bos_token_id
  std::optional<std::int64_t> eos_id;            ///< .eos_token_id
  std::optional<std::int64_t> unknown_id;        ///< .unknown_token_id
  std::optional<std::int64_t> pad_id;            ///< .padding_token_id
  std::optional<std::int64_t> separator_id;      ///< .seperator_token_id (spelt like that) of "bert"
  std::optional<std::int64_t> cls_id;            ///< .cls_token_id of "bert"
  std::optional<std::int64_t> mask_id;           ///< .mask_token_id
  std::optional<bool> add_bos;                   ///< .add_bos_token; else what llama.cpp takes for the model
  std::optional<bool> add_eos;                   ///< .add_eos_token
  std::optional<bool> add_space_prefix;          ///< .add_space_prefix
  std::optional<bool> remove_extra_whitespaces;  ///< .remove_extra_whitespaces of "t5"
  std::optional<bool> lowercase;                 ///< .normalizer.lowercase of "bert"
  std::optional<bool> strip_accents;             ///< .normalizer.strip_accents of "bert"
  std::optional<bool> nfc;                       ///< .normalizer.nfc; else what the model's authors do
  std::vector<std::uint8_t> precompiled_charsmap;  ///< .precompiled_charsmap of "t5"
};

/// The tokenizer that gives the ids that the models' authors' tokenizer gives, as far as this vocabulary says
/// what that is: llama.cpp gives the same but where it simplifies their regular expressions and normalizers.
/// Special tokens in the text become those tokens. `where` (the file's path, say) begins every error message.
/// Throws FileError for a model or a pre-tokenizer that is not known, and for lists that do not fit one
/// another.
std::unique_ptr<Tokenizer> make_tokenizer(const GgufVocabulary& vocabulary, const std::string& where);

}  // namespace caldera
