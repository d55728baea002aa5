// Opens the tokenizer of a model folder, whichever kind it is.
#pragma once

#include <filesystem>
#include <memory>

#include "lm/tokenizers/tokenizer.h"

namespace caldera {

/// The tokenizer of a model folder, from the first of these that it holds: tokenizer.json; tekken.json
/// (Mistral's); vocab.json with merges.txt (byte-level BPE); tokenizer.model, sentencepiece.bpe.model or
/// spiece.model (SentencePiece, or tiktoken's text); a *.tiktoken file whose name is known; vocab.txt (BERT).
/// Without any, bytes, if config.json gives a vocab_size of 258 (256 bytes, bos, eos) or 256 (bytes only).
///
/// Special tokens are named by tokenizer_config.json, else by special_tokens_map.json, else by config.json.
/// Honoured as in the transformers library: added_tokens_decoder and added_tokens.json, additional special
/// tokens, add_prefix_space of byte-level tokenizers, do_lower_case and its like of BERT's, and, of Llama's
/// classes, add_bos_token and add_eos_token (which replace the file's post-processor) and legacy (without a
/// tokenizer.json). `clean_up_tokenization_spaces` is not: it would lose spaces of the text.
///
/// Of a GGUF file: the tokenizer.json that it holds whole, else what its own keys describe, else bytes.
///
/// Throws FileError for malformed files and features that are not supported.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& model_dir);

}  // namespace caldera
