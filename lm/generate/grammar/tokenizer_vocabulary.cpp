#include "lm/generate/grammar/tokenizer_vocabulary.h"

#include <optional>
#include <string>

#include "engine/base/error.h"

namespace caldera {

GrammarVocabulary tokenizer_vocabulary(const Tokenizer& tokenizer, const std::vector<std::int32_t>& end_ids,
                                       std::span<const std::string_view> marks) {
  if (end_ids.empty())
    throw ValueError("grammar: the model has no token that ends a text, so no text could be complete");
  std::vector<std::string> bytes(static_cast<std::size_t>(tokenizer.vocab_size()));
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = tokenizer.token_bytes(static_cast<std::int32_t>(i));
  for (const std::string_view mark : marks) {
    if (mark.empty()) continue;
    const std::optional<std::int32_t> id = tokenizer.token_to_id(mark);
    if (id && static_cast<std::size_t>(*id) < bytes.size()) bytes[static_cast<std::size_t>(*id)] = mark;
  }
  for (const std::int32_t id : end_ids)
    if (static_cast<std::size_t>(id) < bytes.size()) bytes[static_cast<std::size_t>(id)].clear();
  return {bytes, end_ids};
}

}  // namespace caldera
