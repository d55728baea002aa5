#include "lm/tokenizers/normalizers/character_normalizers.h"

#include "lm/base/unicode/characters.h"

namespace caldera::detail {
namespace {

/// Calls `write(out, c)` for each character; `out` becomes the text.
template <typename Write>
std::string rewrite(std::string_view text, Write&& write) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character c = first_character(text);
    write(out, c.value);
    text.remove_prefix(c.bytes);
  }
  return out;
}

class LowercaseNormalizer final : public Normalizer {
 public:
  std::string normalize(std::string text) const override { return rewrite(text, append_lower_case); }
};

class NormalFormNormalizer final : public Normalizer {
 public:
  explicit NormalFormNormalizer(NormalForm form) : form_(form) {}
  std::string normalize(std::string text) const override { return normal_form(std::move(text), form_); }

 private:
  NormalForm form_;
};

class StripAccentsNormalizer final : public Normalizer {
 public:
  std::string normalize(std::string text) const override {
    return rewrite(text, [](std::string& out, char32_t c) {
      if (!is_mark(c)) append_character(out, c);
    });
  }
};

class StripNormalizer final : public Normalizer {
 public:
  StripNormalizer(bool left, bool right) : left_(left), right_(right) {}
  std::string normalize(std::string text) const override {
    std::string_view rest = text;
    while (left_ && !rest.empty() && is_white_space(first_character(rest).value)) {
      rest.remove_prefix(first_character(rest).bytes);
    }
    while (right_ && !rest.empty() && is_white_space(last_character(rest).value)) {
      rest.remove_suffix(last_character(rest).bytes);
    }
    return std::string(rest);
  }

 private:
  bool left_;
  bool right_;
};

bool nmt_removes(char32_t c) {
  return (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F ||
         c == 0x9F;
}

bool nmt_takes_for_space(char32_t c) {
  return c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
         c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
}

class NmtNormalizer final : public Normalizer {
 public:
  std::string normalize(std::string text) const override {
    return rewrite(text, [](std::string& out, char32_t c) {
      if (!nmt_removes(c)) append_character(out, nmt_takes_for_space(c) ? U' ' : c);
    });
  }
};

}  // namespace

std::unique_ptr<Normalizer> make_lowercase() { return std::make_unique<LowercaseNormalizer>(); }
std::unique_ptr<Normalizer> make_normal_form(NormalForm form) {
  return std::make_unique<NormalFormNormalizer>(form);
}
std::unique_ptr<Normalizer> make_strip_accents() { return std::make_unique<StripAccentsNormalizer>(); }
std::unique_ptr<Normalizer> make_strip(bool left, bool right) {
  return std::make_unique<StripNormalizer>(left, right);
}
std::unique_ptr<Normalizer> make_nmt() { return std::make_unique<NmtNormalizer>(); }

}  // namespace caldera::detail
