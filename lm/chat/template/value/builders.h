// Makes texts, sequences and dicts piece by piece, and counts what they take up while they grow.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lm/chat/template/value/value.h"

namespace caldera::chat {

Value make_tuple(std::vector<Value> items);

/// Collects the items of a sequence, and counts them while it does.
class ListBuilder {
 public:
  void add(Value item) {
    step();
    if (items_.size() == items_.capacity()) grow();
    items_.push_back(std::move(item));
  }
  std::size_t size() const { return items_.size(); }
  std::vector<Value>& items() { return items_; }
  /// The sequence; the builder is empty afterwards.
  Value finish(SequenceKind kind = SequenceKind::list);

 private:
  void grow();

  std::vector<Value> items_;
  Charge charge_;
};

/// Parts of a text that lives elsewhere.
class ViewList {
 public:
  void add(std::string_view part) {
    step(1 + part.size() / 64);
    if (views_.size() == views_.capacity()) grow();
    views_.push_back(part);
  }
  std::vector<std::string_view>& views() { return views_; }
  auto begin() const { return views_.begin(); }
  auto end() const { return views_.end(); }

 private:
  void grow();

  std::vector<std::string_view> views_;
  Charge charge_;
};

class DictBuilder {
 public:
  DictBuilder();
  /// Sets a key, in its place where it is there already. Throws a Fault for keys that cannot be hashed.
  void set(const Value& key, Value value);
  Value finish();

 private:
  std::shared_ptr<Dict> dict_;
};

/// Collects a text and counts its bytes while it does.
class TextBuilder {
 public:
  void add(std::string_view part);
  /// Adds a text with its spans.
  void add(const Text& part);
  void add(char c) { add(std::string_view(&c, 1)); }
  void repeat(std::string_view part, std::size_t count);
  /// Counts what has been added since it had `begin` bytes and `spans` spans as one span.
  void mark(std::size_t begin, std::size_t spans);
  std::size_t size() const { return bytes_.size(); }
  const std::string& bytes() const { return bytes_; }
  const std::vector<ByteSpan>& spans() const { return spans_; }
  std::string take() { return std::move(bytes_); }
  Value finish();

 private:
  void reserve(std::size_t more);

  std::string bytes_;
  std::vector<ByteSpan> spans_;
  Charge charge_;
};

}  // namespace caldera::chat
