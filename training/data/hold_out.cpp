#include "training/data/hold_out.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "training/data/shuffle.h"

namespace caldera {
namespace {

std::optional<ExampleSet> cut_document(ExampleSet& train, std::int64_t bytes) {
  ExampleSet valid{.plain_text = true, .examples = {}};
  std::string& text = train.examples.back().text;
  if (bytes <= 0 || bytes >= std::ssize(text)) return std::nullopt;
  std::size_t cut = text.size() - static_cast<std::size_t>(bytes);
  // Not within a character: continuation bytes of UTF-8 are 10xxxxxx.
  while (cut < text.size() && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) ++cut;
  if (cut == text.size()) return std::nullopt;
  valid.examples.push_back({"", text.substr(cut)});
  text.resize(cut);
  return valid;
}

}  // namespace

std::optional<ExampleSet> hold_out_end(ExampleSet& train, std::int64_t least, std::int64_t seq_len) {
  if (train.examples.empty()) return std::nullopt;
  const auto share = [](std::int64_t all, std::int64_t a_batch) {
    return std::min(std::max(all / 20, a_batch), all / 4);
  };
  if (train.plain_text)
    return cut_document(train, share(std::ssize(train.examples.back().text), least * seq_len));
  const std::int64_t held = share(std::ssize(train.examples), least);
  if (held == 0) return std::nullopt;
  ExampleSet valid;
  const auto first = train.examples.end() - held;
  valid.examples.assign(std::make_move_iterator(first), std::make_move_iterator(train.examples.end()));
  train.examples.erase(first, train.examples.end());
  return valid;
}

std::optional<ExampleSet> hold_out_drawn(ExampleSet& train, double fraction, std::uint64_t seed) {
  if (train.examples.empty()) return std::nullopt;
  const auto share = [&](std::int64_t all) {
    return std::max<std::int64_t>(1, std::llround(fraction * static_cast<double>(all)));
  };
  if (train.plain_text) return cut_document(train, share(std::ssize(train.examples.back().text)));
  const std::int64_t size = std::ssize(train.examples), held = share(size);
  if (held >= size) return std::nullopt;
  std::vector<bool> drawn(static_cast<std::size_t>(size), false);
  const std::vector<std::int64_t> order = shuffled(size, seed, 0);
  for (std::int64_t i = 0; i < held; ++i)
    drawn[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = true;
  ExampleSet valid;
  std::vector<Example> left;
  for (std::size_t i = 0; i < drawn.size(); ++i)
    (drawn[i] ? valid.examples : left).push_back(std::move(train.examples[i]));
  train.examples = std::move(left);
  return valid;
}

}  // namespace caldera
