// Byte-level BPE vocabularies in files older than tokenizer.json. Private to lm/tokenizers/.
#pragma once

#include <string>
#include <string_view>

#include "lm/tokenizers/pipeline/pipeline.h"

namespace caldera::detail {

/// vocab.json (ids by token) and merges.txt ("left right" a line) of GPT-2's kind. `tokenizer_class` says
/// which kind: GPT2Tokenizer (and ""), RobertaTokenizer, Qwen2Tokenizer and their like; another is refused by
/// name.
TokenizerParts read_vocabulary_and_merges(std::string_view vocabulary, const std::string& vocabulary_where,
                                          std::string_view merges, const std::string& merges_where,
                                          const std::string& tokenizer_class, bool add_prefix_space);

/// A tiktoken file ("base64 rank" a line). Its name, without the folder, says how texts are cut and which
/// special tokens there are; "tokenizer.model" is Llama 3's. Throws FileError for a name that is not known.
TokenizerParts read_tiktoken(std::string_view file, const std::string& name, const std::string& where);

/// Whether a file's content looks like a tiktoken file.
bool looks_like_tiktoken(std::string_view file);

}  // namespace caldera::detail
