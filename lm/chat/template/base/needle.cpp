#include "lm/chat/template/base/needle.h"

#include <algorithm>

namespace caldera::chat {
namespace {

constexpr std::size_t kShort = 32;

template <class At>
std::vector<std::size_t> borders_of(std::size_t size, At at) {
  std::vector<std::size_t> borders(size + 1, 0);
  for (std::size_t i = 1, border = 0; i < size; ++i) {
    while (border > 0 && at(i) != at(border)) border = borders[border];
    if (at(i) == at(border)) ++border;
    borders[i + 1] = border;
  }
  return borders;
}

/// End of the first occurrence (Knuth, Morris, Pratt); npos if there is none.
template <class Text, class Wanted>
std::size_t end_of_match(const std::vector<std::size_t>& borders, std::size_t size, Text text,
                         std::size_t text_size, Wanted wanted) {
  std::size_t matched = 0;
  for (std::size_t i = 0; i < text_size; ++i) {
    while (matched > 0 && text(i) != wanted(matched)) matched = borders[matched];
    if (text(i) == wanted(matched)) ++matched;
    if (matched == size) {
      step(i / 16);
      return i + 1;
    }
  }
  step(text_size / 16);
  return std::string_view::npos;
}

}  // namespace

Needle::Needle(std::string_view wanted) : wanted_(wanted) {
  if (wanted.size() <= kShort) return;
  charge_.resize(wanted.size() * (2 * sizeof(std::size_t) + 1));
  step(wanted.size() / 4);
  borders_ = borders_of(wanted.size(), [&](std::size_t i) { return wanted[i]; });
  reversed_borders_ = borders_of(wanted.size(), [&](std::size_t i) { return wanted[wanted.size() - 1 - i]; });
}

std::size_t Needle::find(std::string_view in) const {
  if (borders_.empty()) {
    const std::size_t at = in.find(wanted_);
    step((at == std::string_view::npos ? in.size() : at) / 64);
    return at;
  }
  const std::size_t end = end_of_match(
      borders_, wanted_.size(), [&](std::size_t i) { return in[i]; }, in.size(),
      [&](std::size_t i) { return wanted_[i]; });
  return end == std::string_view::npos ? end : end - wanted_.size();
}

std::size_t Needle::find_last(std::string_view in) const {
  if (borders_.empty()) {
    const std::size_t at = in.rfind(wanted_);
    step((in.size() - std::min(at, in.size())) / 64);
    return at;
  }
  const std::size_t end = end_of_match(
      reversed_borders_, wanted_.size(), [&](std::size_t i) { return in[in.size() - 1 - i]; }, in.size(),
      [&](std::size_t i) { return wanted_[wanted_.size() - 1 - i]; });
  return end == std::string_view::npos ? end : in.size() - end;
}

}  // namespace caldera::chat
