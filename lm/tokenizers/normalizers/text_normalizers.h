// Normalizers that replace texts, and sequences of normalizers. Private to lm/tokenizers/.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lm/base/regex/text_pattern.h"
#include "lm/tokenizers/normalizers/normalizer.h"

namespace caldera::detail {

std::unique_ptr<Normalizer> make_sequence(std::vector<std::unique_ptr<Normalizer>> steps);
/// Puts `prefix` before a text that is not empty.
std::unique_ptr<Normalizer> make_prepend(std::string prefix);
/// Replaces every match, from left to right.
std::unique_ptr<Normalizer> make_replace(TextPattern what, std::string with);
/// Writes bytes as characters of the byte-level alphabet.
std::unique_ptr<Normalizer> make_byte_level_normalizer();

}  // namespace caldera::detail
