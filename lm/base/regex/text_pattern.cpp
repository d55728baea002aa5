#include "lm/base/regex/text_pattern.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"

namespace caldera::detail {
namespace {

/// How much longer replacing may make a text: a file that asks for more would take all memory.
constexpr std::size_t kMaxGrowth = 64;
constexpr std::size_t kMaxGrowthBytes = 16 << 20;

}  // namespace

std::string TextPattern::replace_all(std::string_view text, std::string_view content) const {
  std::string out;
  std::size_t done = 0;
  for_each_match(text, [&](const Regex::Match& match) {
    if (out.size() > text.size() * kMaxGrowth + kMaxGrowthBytes) {
      throw ValueError(
          fmt::format("the tokenizer's Replace makes a text of {} bytes more than {} times as long",
                      text.size(), kMaxGrowth));
    }
    out.append(text.substr(done, match.begin - done)).append(content);
    done = match.end;
  });
  return out.append(text.substr(done));
}

TextPattern read_pattern(const JsonFields& fields) {
  const auto* pattern = fields.find("pattern");
  if (pattern == nullptr || !pattern->is_object()) {
    fields.fail("pattern", R"(must be {"String": ...} or {"Regex": ...})");
  }
  const JsonFields inner(*pattern, fields.where());
  if (const auto expression = inner.string("Regex")) {
    return TextPattern(std::make_unique<Regex>(*expression, Regex::Syntax::oniguruma, fields.where()));
  }
  auto text = inner.require_string("String");
  if (text.empty()) fields.fail("pattern", "must not be an empty string");
  return TextPattern(std::move(text));
}

}  // namespace caldera::detail
