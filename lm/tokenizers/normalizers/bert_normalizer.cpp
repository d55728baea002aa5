#include "lm/tokenizers/normalizers/bert_normalizer.h"

#include <algorithm>

#include "lm/base/unicode/characters.h"

namespace caldera::detail {
namespace {

/// The blocks that BERT takes for Chinese; 2B920 for 2B820 is how the reference has it.
bool is_ideograph(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

class BertNormalizer final : public Normalizer {
 public:
  explicit BertNormalizer(BertNormalization settings) : settings_(settings) {}

  std::string normalize(std::string text) const override {
    std::string clean;
    clean.reserve(text.size());
    for (std::string_view rest = text; !rest.empty();) {
      const Character c = first_character(rest);
      rest.remove_prefix(c.bytes);
      if (settings_.clean_text) {
        const bool blank = c.value == '\t' || c.value == '\n' || c.value == '\r';
        if (c.value == 0 || c.value == 0xFFFD || (!blank && is_other(c.value))) continue;
        if (blank || is_white_space(c.value)) {
          clean += ' ';
          continue;
        }
      }
      const bool spaced = settings_.space_ideographs && is_ideograph(c.value);
      if (spaced) clean += ' ';
      append_character(clean, c.value);
      if (spaced) clean += ' ';
    }
    if (settings_.strip_accents) clean = normal_form(std::move(clean), NormalForm::nfd);
    if (!settings_.strip_accents && !settings_.lowercase) return clean;
    std::string out;
    out.reserve(clean.size());
    for (std::string_view rest = clean; !rest.empty();) {
      const Character c = first_character(rest);
      rest.remove_prefix(c.bytes);
      if (settings_.strip_accents && is_nonspacing_mark(c.value)) continue;
      if (settings_.lowercase) {
        append_lower_case(out, c.value);
      } else {
        append_character(out, c.value);
      }
    }
    return out;
  }

 private:
  BertNormalization settings_;
};

}  // namespace

std::unique_ptr<Normalizer> make_bert_normalizer(BertNormalization settings) {
  return std::make_unique<BertNormalizer>(settings);
}

}  // namespace caldera::detail
