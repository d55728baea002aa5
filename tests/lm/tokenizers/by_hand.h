// Texts cut as GPT-2's and Qwen2's expressions cut them, written out without expressions.
#pragma once

#include <unicode/uchar.h>

#include <cctype>
#include <string>
#include <vector>

namespace caldera::testing {

using Strings = std::vector<std::string>;

/// The characters of a text, each as UTF-8.
inline Strings characters_of(const std::string& text) {
  Strings parts;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) == 0x80) {
      parts.back() += c;
    } else {
      parts.emplace_back(1, c);
    }
  }
  return parts;
}

inline UChar32 code_point(const std::string& character) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(character[i]); };
  switch (character.size()) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F);
    case 3:
      return (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
    default:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
  }
}

/// What the expressions of GPT-2 and Qwen2 tell apart, written out by hand.
class ByHand {
 public:
  explicit ByHand(const std::string& text) : parts_(characters_of(text)) {}

  Strings gpt2() {
    return cut([&](std::size_t at) {
      if (const auto n = contraction(at, false)) return n;
      const std::size_t skip = is(at, " ") ? 1 : 0;
      if (const auto n = run(at + skip, &ByHand::letter)) return skip + n;
      if (const auto n = run(at + skip, &ByHand::number)) return skip + n;
      if (const auto n = run(at + skip, &ByHand::other)) return skip + n;
      return spaces(at);
    });
  }

  Strings qwen2() {
    return cut([&](std::size_t at) {
      if (const auto n = contraction(at, true)) return n;
      const bool line_end = is(at, "\r") || is(at, "\n");
      const std::size_t lead = !line_end && !letter(at) && !number(at) ? 1 : 0;
      if (const auto n = run(at + lead, &ByHand::letter)) return lead + n;
      if (number(at)) return std::size_t{1};
      const std::size_t skip = is(at, " ") ? 1 : 0;
      if (const auto n = run(at + skip, &ByHand::other)) {
        std::size_t end = at + skip + n;
        while (is(end, "\r") || is(end, "\n")) ++end;
        return end - at;
      }
      // White space up to the last line end within it.
      const std::size_t blank = run(at, &ByHand::space);
      for (std::size_t n = blank; n > 0; --n) {
        if (is(at + n - 1, "\r") || is(at + n - 1, "\n")) return n;
      }
      return spaces(at);
    });
  }

 private:
  bool is(std::size_t i, const char* what) const { return i < parts_.size() && parts_[i] == what; }
  bool category(std::size_t i, std::uint32_t mask) const {
    return i < parts_.size() && (U_GET_GC_MASK(code_point(parts_[i])) & mask) != 0;
  }
  bool letter(std::size_t i) const { return category(i, U_GC_L_MASK); }
  bool number(std::size_t i) const { return category(i, U_GC_N_MASK); }
  bool space(std::size_t i) const { return i < parts_.size() && u_isUWhiteSpace(code_point(parts_[i])); }
  bool other(std::size_t i) const { return i < parts_.size() && !letter(i) && !number(i) && !space(i); }

  std::size_t run(std::size_t at, bool (ByHand::*kind)(std::size_t) const) const {
    std::size_t n = 0;
    while ((this->*kind)(at + n)) ++n;
    return n;
  }
  /// White space but for its last character where something follows, unless it is that one alone.
  std::size_t spaces(std::size_t at) const {
    const std::size_t n = run(at, &ByHand::space);
    return n > 1 && at + n < parts_.size() ? n - 1 : n;
  }
  std::size_t contraction(std::size_t at, bool any_case) const {
    if (!is(at, "'")) return 0;
    const auto lower = [&](std::size_t i) -> std::string {
      if (i >= parts_.size()) return "";
      if (!any_case) return parts_[i];
      if (parts_[i] == "ſ") return "s";  // folds to s
      return parts_[i].size() == 1 ? std::string(1, static_cast<char>(std::tolower(parts_[i][0])))
                                   : parts_[i];
    };
    for (const char* one : {"s", "t", "m", "d"}) {
      if (lower(at + 1) == one) return 2;
    }
    for (const char* two : {"re", "ve", "ll"}) {
      if (lower(at + 1) + lower(at + 2) == two) return 3;
    }
    return 0;
  }
  template <typename Next>
  Strings cut(Next&& next) {
    Strings words;
    for (std::size_t at = 0; at < parts_.size();) {
      const std::size_t n = next(at);
      words.emplace_back();
      for (std::size_t i = 0; i < n; ++i) words.back() += parts_[at + i];
      at += n;
    }
    return words;
  }

  Strings parts_;
};

}  // namespace caldera::testing
