#include "training/text/added_tokens.h"

#include <algorithm>

#include "training/text/utf8.h"

namespace caldera::detail {
namespace {

/// Characters with the Unicode property White_Space, as UTF-8.
constexpr std::string_view kSpaces[] = {" ",
                                        "\t",
                                        "\n",
                                        "\v",
                                        "\f",
                                        "\r",
                                        "\xC2\x85",
                                        "\xC2\xA0",
                                        "\xE1\x9A\x80",
                                        "\xE2\x80\x80",
                                        "\xE2\x80\x81",
                                        "\xE2\x80\x82",
                                        "\xE2\x80\x83",
                                        "\xE2\x80\x84",
                                        "\xE2\x80\x85",
                                        "\xE2\x80\x86",
                                        "\xE2\x80\x87",
                                        "\xE2\x80\x88",
                                        "\xE2\x80\x89",
                                        "\xE2\x80\x8A",
                                        "\xE2\x80\xA8",
                                        "\xE2\x80\xA9",
                                        "\xE2\x80\xAF",
                                        "\xE2\x81\x9F",
                                        "\xE3\x80\x80"};

std::size_t space_at_start(std::string_view text) {
  for (const auto space : kSpaces) {
    if (text.starts_with(space)) return space.size();
  }
  return 0;
}

std::size_t space_at_end(std::string_view text) {
  for (const auto space : kSpaces) {
    if (text.ends_with(space)) return space.size();
  }
  return 0;
}

}  // namespace

TokenFinder::TokenFinder(std::vector<Pattern> patterns) : patterns_(std::move(patterns)) {
  std::erase_if(patterns_, [](const Pattern& p) { return p.text.empty(); });
  for (const auto& pattern : patterns_) {
    by_first_byte_[static_cast<unsigned char>(pattern.text.front())].push_back(&pattern);
  }
  for (auto& list : by_first_byte_) {
    std::stable_sort(list.begin(), list.end(),
                     [](const auto* a, const auto* b) { return a->text.size() > b->text.size(); });
  }
}

const TokenFinder::Pattern* TokenFinder::match(std::string_view rest) const {
  for (const auto* pattern : by_first_byte_[static_cast<unsigned char>(rest.front())]) {
    if (rest.starts_with(pattern->text)) return pattern;
  }
  return nullptr;
}

void TokenFinder::split(std::string_view text, const std::function<void(std::string_view)>& on_text,
                        const std::function<void(const AddedToken&)>& on_token) const {
  std::size_t done = 0;  // everything before is handed out
  std::size_t at = 0;
  const auto hand_out_text = [&](std::size_t end) {
    if (end > done) on_text(text.substr(done, end - done));
  };
  while (!patterns_.empty() && at < text.size()) {
    const Pattern* pattern = match(text.substr(at));
    if (pattern == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    std::size_t end = at + pattern->text.size();
    if (pattern->token->lstrip) {
      while (const auto n = space_at_end(text.substr(done, begin - done))) begin -= n;
    }
    if (pattern->token->rstrip) {
      while (const auto n = space_at_start(text.substr(end))) end += n;
    }
    hand_out_text(begin);
    on_token(*pattern->token);
    done = at = end;
  }
  hand_out_text(text.size());
}

}  // namespace caldera::detail
