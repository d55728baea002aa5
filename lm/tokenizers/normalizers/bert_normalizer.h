// BERT's normalizer. Private to lm/tokenizers/.
#pragma once

#include <memory>

#include "lm/tokenizers/normalizers/normalizer.h"

namespace caldera::detail {

struct BertNormalization {
  bool clean_text = true;        ///< removes control characters and makes white space spaces
  bool space_ideographs = true;  ///< puts spaces around Chinese characters
  bool strip_accents = true;     ///< decomposes (NFD) and removes nonspacing marks
  bool lowercase = true;
};

std::unique_ptr<Normalizer> make_bert_normalizer(BertNormalization settings);

}  // namespace caldera::detail
