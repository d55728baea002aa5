#include "lm/chat/template/value/builders.h"

#include <algorithm>
#include <limits>
#include <memory>

namespace caldera::chat {
namespace {

std::size_t deepest(const std::vector<Value>& items) {
  std::size_t depth = 0;
  for (const Value& item : items) depth = std::max(depth, item.depth());
  return depth;
}

}  // namespace

Value make_tuple(std::vector<Value> items) {
  ListBuilder builder;
  for (Value& item : items) builder.add(std::move(item));
  return builder.finish(SequenceKind::tuple);
}

void ListBuilder::grow() {
  const std::size_t room = std::max<std::size_t>(4, items_.capacity() * 2);
  charge_.resize(room * sizeof(Value) + sizeof(Sequence));
  items_.reserve(room);
}

Value ListBuilder::finish(SequenceKind kind) {
  auto sequence = std::make_shared<Sequence>();
  sequence->kind = kind;
  charge_.resize(items_.capacity() * sizeof(Value) + sizeof(Sequence));
  sequence->charge = std::exchange(charge_, Charge());
  sequence->items = std::exchange(items_, {});
  sequence->depth = deepest(sequence->items) + 1;
  check_depth(sequence->depth);
  return {std::shared_ptr<const Sequence>(std::move(sequence))};
}

void ViewList::grow() {
  const std::size_t room = std::max<std::size_t>(8, views_.capacity() * 2);
  charge_.resize(room * sizeof(std::string_view));
  views_.reserve(room);
}

DictBuilder::DictBuilder() : dict_(std::make_shared<Dict>()) {}

void DictBuilder::set(const Value& key, Value value) {
  step();
  const std::size_t hash = hash_of(key);
  dict_->depth = std::max({dict_->depth, key.depth() + 1, value.depth() + 1});
  const auto [first, last] = dict_->places.equal_range(hash);
  for (auto place = first; place != last; ++place) {
    auto& entry = dict_->entries[place->second];
    if (equal(entry.first, key)) {
      entry.second = std::move(value);
      return;
    }
  }
  constexpr std::size_t kEntry = sizeof(std::pair<Value, Value>) * 2 + 48;
  dict_->charge.resize((dict_->entries.size() + 1) * kEntry + sizeof(Dict));
  dict_->places.emplace(hash, dict_->entries.size());
  dict_->entries.emplace_back(key, std::move(value));
}

Value DictBuilder::finish() {
  check_depth(dict_->depth);
  return {std::shared_ptr<const Dict>(std::exchange(dict_, std::make_shared<Dict>()))};
}

void TextBuilder::reserve(std::size_t more) {
  if (more > std::numeric_limits<std::size_t>::max() / 4) fail("a text would be too long");
  step(more / 64);
  const std::size_t needed = bytes_.size() + more;
  if (needed <= bytes_.capacity()) return;
  const std::size_t room = std::max(needed, bytes_.capacity() * 2);
  charge_.resize(room + spans_.size() * sizeof(ByteSpan));
  bytes_.reserve(room);
}

void TextBuilder::add(std::string_view part) {
  reserve(part.size());
  bytes_.append(part);
}

void TextBuilder::add(const Text& part) {
  if (!part.spans.empty()) {
    charge_.resize(bytes_.capacity() + (spans_.size() + part.spans.size()) * 2 * sizeof(ByteSpan));
  }
  for (const ByteSpan& span : part.spans) {
    step();
    spans_.push_back({span.begin + bytes_.size(), span.end + bytes_.size()});
  }
  add(std::string_view(part.bytes));
}

void TextBuilder::repeat(std::string_view part, std::size_t count) {
  if (part.empty() || count == 0) return;
  if (count > std::numeric_limits<std::size_t>::max() / 8 / part.size()) fail("a text would be too long");
  reserve(part.size() * count);
  for (; count > 0; --count) bytes_.append(part);
}

void TextBuilder::mark(std::size_t begin, std::size_t spans) {
  charge_.resize(bytes_.capacity() + (spans_.size() + 1) * 2 * sizeof(ByteSpan));
  spans_.resize(spans);  // those inside are parts of this one
  spans_.push_back({begin, bytes_.size()});
}

Value TextBuilder::finish() {
  charge_.resize(0);
  return make_text(std::move(bytes_), std::move(spans_));
}

}  // namespace caldera::chat
