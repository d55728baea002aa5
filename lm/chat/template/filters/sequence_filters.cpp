// Filters that measure, order and cut sequences.
#include <algorithm>

#include "lm/chat/template/base/unicode.h"
#include "lm/chat/template/filters/filters.h"
#include "lm/chat/template/value/builders.h"
#include "lm/chat/template/value/iteration.h"
#include "lm/chat/template/value/operators.h"
#include "lm/chat/template/value/repr.h"

namespace caldera::chat {
namespace {

ListBuilder items_of(const Value& value) {
  ListBuilder list;
  Iteration items(value);
  Value item;
  while (items.next(item)) list.add(item);
  return list;
}

/// A copy of `items` in the order of their keys, which is stable.
Value sorted(ListBuilder items, ListBuilder keys, bool reverse) {
  std::vector<std::size_t> order(items.size());
  const Charge charge(order.size() * sizeof(std::size_t));
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (reverse) std::swap(a, b);
    return ordered(keys.items()[a], Ordering::less, keys.items()[b]);
  });
  ListBuilder out;
  for (const std::size_t i : order) out.add(items.items()[i]);
  return out.finish();
}

Value length(const Value& subject, Arguments& arguments) {
  const Parameters none("length", arguments, {});
  return length_of(subject);
}

Value to_list(const Value& subject, Arguments& arguments) {
  const Parameters none("list", arguments, {});
  return items_of(subject).finish();
}

Value first(const Value& subject, Arguments& arguments) {
  const Parameters none("first", arguments, {});
  Iteration items(subject);
  Value item;
  return items.next(item) ? item : Value::undefined("No first item, sequence was empty.");
}

void require_reversible(const Value& value) {
  const bool reversible = value.is_text() || value.is_sequence() || value.is_dict() || value.is_undefined();
  if (!reversible) fail("'{}' object is not reversible", type_name(value));
}

Value last(const Value& subject, Arguments& arguments) {
  const Parameters none("last", arguments, {});
  require_reversible(subject);
  if (subject.is_text() && !subject.bytes().empty())
    return slice_of(subject, std::int64_t{-1}, Value(), Value());
  if (subject.is_sequence() && !subject.items().empty()) return subject.items().back();
  if (subject.is_dict() && !subject.dict().entries.empty()) return subject.dict().entries.back().first;
  return Value::undefined("No last item, sequence was empty.");
}

Value reverse(const Value& subject, Arguments& arguments) {
  const Parameters none("reverse", arguments, {});
  if (subject.is_text()) return slice_of(subject, Value(), Value(), std::int64_t{-1});
  ListBuilder list = items_of(subject);
  std::reverse(list.items().begin(), list.items().end());
  Value reversed = list.finish();
  if (subject.is_object()) return reversed;
  return Value(std::make_shared<Iterator>(
      "reversed", reversed.depth(),
      [items = Iteration(reversed)](Value& item) mutable { return items.next(item); }));
}

Value join_filter(const Value& subject, Arguments& arguments) {
  const Parameters given("join", arguments, {"d", "attribute"});
  const Value between = text_of(given.get(0, Value("")));
  const AttributeGetter getter(given.get(1, Value()), false);
  Iteration items(subject);
  TextBuilder out;
  Value item;
  for (bool is_first = true; items.next(item); is_first = false) {
    if (!is_first) out.add(between.text());
    add_text(out, getter(item));
  }
  return out.finish();
}

Value sum(const Value& subject, Arguments& arguments) {
  const Parameters given("sum", arguments, {"attribute", "start"});
  const AttributeGetter getter(given.get(0, Value()), false);
  Value total = given.get(1, std::int64_t{0});
  if (total.is_text()) fail("sum() can't sum strings [use ''.join(seq) instead]");
  Iteration items(subject);
  Value item;
  while (items.next(item)) total = arithmetic(total, Arithmetic::add, getter(item));
  return total;
}

Value extreme(const Value& subject, Arguments& arguments, bool most) {
  const Parameters given(most ? "max" : "min", arguments, {"case_sensitive", "attribute"});
  const AttributeGetter getter(given.get(1, Value()), !given.truth_of(0, false));
  Iteration items(subject);
  Value best;
  if (!items.next(best)) return Value::undefined("No aggregated item, sequence was empty.");
  Value best_key = getter(best);
  Value item;
  while (items.next(item)) {
    Value key = getter(item);
    if (ordered(key, most ? Ordering::greater : Ordering::less, best_key)) {
      best = item;
      best_key = std::move(key);
    }
  }
  return best;
}

Value minimum(const Value& subject, Arguments& arguments) { return extreme(subject, arguments, false); }
Value maximum(const Value& subject, Arguments& arguments) { return extreme(subject, arguments, true); }

Value sort(const Value& subject, Arguments& arguments) {
  const Parameters given("sort", arguments, {"reverse", "case_sensitive", "attribute"});
  const bool ignore_case = !given.truth_of(1, false);
  std::vector<AttributeGetter> getters;
  const Value attribute = given.get(2, Value());
  if (attribute.is_text()) {
    for (std::string_view rest = attribute.bytes(); true;) {
      const std::size_t comma = rest.find(',');
      step();
      getters.emplace_back(Value(rest.substr(0, comma)), ignore_case);
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  } else {
    getters.emplace_back(attribute, ignore_case);
  }
  ListBuilder items = items_of(subject);
  ListBuilder keys;
  for (const Value& item : items.items()) {
    ListBuilder key;
    for (const AttributeGetter& getter : getters) key.add(getter(item));
    keys.add(key.finish());
  }
  return sorted(std::move(items), std::move(keys), given.truth_of(0, false));
}

Value dict_sort(const Value& subject, Arguments& arguments) {
  const Parameters given("dictsort", arguments, {"case_sensitive", "by", "reverse"});
  const std::string by = given.text(1, "key");
  if (by != "key" && by != "value") fail("You can only sort by either \"key\" or \"value\"");
  require_defined(subject);
  if (!subject.is_dict()) fail("dictsort needs a dict, not {}", type_name(subject));
  ListBuilder items;
  ListBuilder keys;
  for (const auto& [key, value] : subject.dict().entries) {
    items.add(make_tuple({key, value}));
    const Value& sorted_by = by == "key" ? key : value;
    keys.add(sorted_by.is_text() && !given.truth_of(0, false) ? Value(to_lower(sorted_by.bytes()))
                                                              : sorted_by);
  }
  return sorted(std::move(items), std::move(keys), given.truth_of(2, false));
}

Value group_by(const Value& subject, Arguments& arguments) {
  const Parameters given("groupby", arguments, {"attribute", "default", "case_sensitive"}, 1);
  const bool ignore_case = !given.truth_of(2, false);
  const AttributeGetter key_of(given[0], ignore_case, given.get(1, Value()));
  const AttributeGetter name_of(given[0], false, given.get(1, Value()));
  ListBuilder items = items_of(subject);
  ListBuilder keys;
  for (const Value& item : items.items()) keys.add(key_of(item));
  const Value in_order = sorted(std::move(items), std::move(keys), false);
  ListBuilder groups;
  ListBuilder group;
  Value group_key;
  Value group_name;
  const auto finish_group = [&] {
    if (group.size() == 0) return;
    ListBuilder pair;
    pair.add(group_name);
    pair.add(group.finish());
    groups.add(pair.finish(SequenceKind::group));
  };
  for (const Value& item : in_order.items()) {
    const Value key = key_of(item);
    if (group.size() == 0 || !equal(key, group_key)) {
      finish_group();
      group_key = key;
      group_name = name_of(item);
    }
    group.add(item);
  }
  finish_group();
  return groups.finish();
}

}  // namespace

const FilterTable& sequence_filters() {
  static const FilterTable kTable = {
      {"length", length},    {"count", length},    {"list", to_list},     {"first", first},
      {"last", last},        {"reverse", reverse}, {"join", join_filter}, {"sum", sum},
      {"min", minimum},      {"max", maximum},     {"sort", sort},        {"dictsort", dict_sort},
      {"groupby", group_by},
  };
  return kTable;
}

}  // namespace caldera::chat
