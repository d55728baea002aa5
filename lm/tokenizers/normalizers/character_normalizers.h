// Normalizers that look at characters. Private to lm/tokenizers/.
#pragma once

#include <memory>

#include "lm/base/unicode/characters.h"
#include "lm/tokenizers/normalizers/normalizer.h"

namespace caldera::detail {

std::unique_ptr<Normalizer> make_lowercase();
std::unique_ptr<Normalizer> make_normal_form(NormalForm form);
inline std::unique_ptr<Normalizer> make_nfc() { return make_normal_form(NormalForm::nfc); }
/// Removes marks (general category M).
std::unique_ptr<Normalizer> make_strip_accents();
/// Removes white space at the ends.
std::unique_ptr<Normalizer> make_strip(bool left, bool right);
/// Removes control characters and makes other kinds of space spaces, as SentencePiece's rule `nmt` does.
std::unique_ptr<Normalizer> make_nmt();

}  // namespace caldera::detail
