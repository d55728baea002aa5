#include "lm/base/unicode/characters.h"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/uscript.h>

#include <algorithm>
#include <vector>

#include "engine/base/error.h"

namespace caldera::detail {
namespace {

UChar32 icu(char32_t c) { return static_cast<UChar32>(c); }

bool in_category(char32_t c, std::uint32_t mask) { return (U_GET_GC_MASK(icu(c)) & mask) != 0; }

const icu::Normalizer2& normalizer(NormalForm form) {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* found = nullptr;
  switch (form) {
    case NormalForm::nfc:
      found = icu::Normalizer2::getNFCInstance(status);
      break;
    case NormalForm::nfd:
      found = icu::Normalizer2::getNFDInstance(status);
      break;
    case NormalForm::nfkc:
      found = icu::Normalizer2::getNFKCInstance(status);
      break;
    case NormalForm::nfkd:
      found = icu::Normalizer2::getNFKDInstance(status);
      break;
  }
  if (found == nullptr || U_FAILURE(status)) throw Error("ICU has no data for Unicode normal forms");
  return *found;
}

/// Marks in a row that ICU may put in order by itself, which it does by inserting each among those before it.
constexpr std::size_t kLongRun = 64;

/// Appends the characters of `run` decomposed and in canonical order: marks between two starters by their
/// combining class, those of one class as they stood.
void append_ordered(std::string_view run, const icu::Normalizer2& forms, std::string& out) {
  struct Mark {
    char32_t value;
    std::uint8_t order;
  };
  std::vector<Mark> marks;
  const auto add = [&](UChar32 c) {
    marks.push_back({static_cast<char32_t>(c), forms.getCombiningClass(c)});
  };
  for (icu::UnicodeString parts; !run.empty();) {
    const Character c = first_character(run);
    run.remove_prefix(c.bytes);
    if (!forms.getDecomposition(icu(c.value), parts)) {
      add(icu(c.value));
      continue;
    }
    for (std::int32_t i = 0; i < parts.length(); i = parts.moveIndex32(i, 1)) add(parts.char32At(i));
  }
  for (auto begin = marks.begin(); begin != marks.end();) {
    const auto end = std::find_if(begin, marks.end(), [](const Mark& mark) { return mark.order == 0; });
    std::stable_sort(begin, end, [](const Mark& a, const Mark& b) { return a.order < b.order; });
    begin = end == marks.end() ? end : end + 1;
  }
  for (const Mark& mark : marks) append_character(out, mark.value);
}

/// `text`, whose normal form stays the same, with long runs of marks in order: those would take ICU quadratic
/// time, and a text of a megabyte of them hours.
std::string with_ordered_runs(std::string text, const icu::Normalizer2& forms) {
  std::string out;
  std::size_t done = 0;  // what is before is in `out`
  std::size_t begin = 0;
  std::size_t count = 0;  // of characters in the run that began there
  const auto end_run = [&](std::size_t end) {
    if (count > kLongRun) {
      out.append(text, done, begin - done);
      append_ordered(std::string_view(text).substr(begin, end - begin), forms, out);
      done = end;
    }
    count = 0;
  };
  for (std::size_t at = 0; at < text.size();) {
    const Character c = first_character(std::string_view(text).substr(at));
    if (c.value < 0x300 || forms.hasBoundaryBefore(icu(c.value)) != 0) {
      if (count > 0) end_run(at);
    } else if (count++ == 0) {
      begin = at;
    }
    at += c.bytes;
  }
  end_run(text.size());
  if (done == 0) return text;
  return out.append(text, done);
}

}  // namespace

bool is_white_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return u_isUWhiteSpace(icu(c)) != 0;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) {
    return (c > ' ' && c < '0') || (c > '9' && c < 'A') || (c > 'Z' && c < 'a') || (c > 'z' && c < 0x7F);
  }
  return in_category(c, U_GC_P_MASK);
}

bool is_numeric(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return in_category(c, U_GC_N_MASK);
}

bool is_mark(char32_t c) { return c >= 0x80 && in_category(c, U_GC_M_MASK); }

bool is_nonspacing_mark(char32_t c) { return c >= 0x80 && in_category(c, U_GC_MN_MASK); }

bool is_other(char32_t c) { return c < 0x80 ? c < ' ' || c == 0x7F : in_category(c, U_GC_C_MASK); }

bool is_word(char32_t c) {
  return in_category(c, U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK) || u_isUAlphabetic(icu(c)) != 0;
}

int script_of(char32_t c) {
  UErrorCode status = U_ZERO_ERROR;
  return static_cast<int>(uscript_getScript(icu(c), &status));
}

int han_script() { return USCRIPT_HAN; }

bool is_kana(char32_t c) {
  const int script = script_of(c);
  return script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA;
}

void append_lower_case(std::string& text, char32_t c) {
  if (c < 0x80) {
    text += static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  } else if (c == 0x130) {
    text += "i\xCC\x87";  // the one character whose lower case is two, in any language
  } else {
    append_character(text, static_cast<char32_t>(u_tolower(icu(c))));
  }
}

std::string normal_form(std::string text, NormalForm form) {
  if (std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; })) return text;
  const icu::Normalizer2& forms = normalizer(form);
  text = with_ordered_runs(std::move(text), forms);
  UErrorCode status = U_ZERO_ERROR;
  const icu::StringPiece piece(text.data(), static_cast<std::int32_t>(text.size()));
  if (forms.isNormalizedUTF8(piece, status) != 0 && U_SUCCESS(status)) return text;
  status = U_ZERO_ERROR;
  std::string out;
  out.reserve(text.size());
  icu::StringByteSink<std::string> sink(&out);
  forms.normalizeUTF8(0, piece, sink, nullptr, status);
  if (U_FAILURE(status)) throw Error(std::string("ICU cannot normalise a text: ") + u_errorName(status));
  return out;
}

}  // namespace caldera::detail
