#include "lm/tokenizers/models/model.h"

#include "lm/tokenizers/vocabulary/byte_alphabet.h"

namespace caldera::detail {

void Model::encode_bytes(std::string_view word, std::vector<std::int32_t>& ids) const {
  encode(bytes_to_characters(word), ids);
}

}  // namespace caldera::detail
