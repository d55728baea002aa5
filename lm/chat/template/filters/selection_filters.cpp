// Filters that give their items one at a time: map, select and their like, batch, slice, unique, items.
#include <algorithm>

#include "lm/chat/template/filters/filters.h"
#include "lm/chat/template/methods/attributes.h"
#include "lm/chat/template/value/builders.h"
#include "lm/chat/template/value/iteration.h"
#include "lm/chat/template/value/operators.h"

namespace caldera::chat {
namespace {

/// An iterator over what `next` gives, which is made when the first item is asked for: until then nothing of
/// the arguments is looked at, and what is wrong with them is no error.
template <class MakeNext>
Value lazily(const char* name, const Value& subject, const Arguments& arguments, MakeNext make_next) {
  std::size_t depth = subject.depth();
  for (const Value& argument : arguments.positional) depth = std::max(depth, argument.depth());
  for (const auto& [key, argument] : arguments.named) depth = std::max(depth, argument.depth());
  std::function<bool(Value&)> next;
  return Value(
      std::make_shared<Iterator>(name, depth, [subject, arguments, make_next, next](Value& item) mutable {
        if (!next) next = make_next(subject, arguments);
        return next(item);
      }));
}

std::function<bool(Value&)> nothing() {
  return [](Value& /*item*/) { return false; };
}

Value take_first(Arguments& arguments, const char* message) {
  if (arguments.positional.empty()) fail("{}", message);
  Value value = std::move(arguments.positional.front());
  arguments.positional.erase(arguments.positional.begin());
  return value;
}

std::function<bool(Value&)> mapping(const Value& subject, Arguments arguments) {
  if (!truth(subject)) return nothing();
  const bool by_attribute = arguments.positional.empty() && !arguments.named.empty() &&
                            std::any_of(arguments.named.begin(), arguments.named.end(),
                                        [](const auto& named) { return named.first == "attribute"; });
  if (by_attribute) {
    const Parameters given("map", arguments, {"attribute", "default"});
    return [items = Iteration(subject),
            getter = AttributeGetter(given[0], false, given.get(1, Value()))](Value& item) mutable {
      if (!items.next(item)) return false;
      item = getter(item);
      return true;
    };
  }
  const Value name = take_first(arguments, "map requires a filter argument");
  const Filter filter = find_filter(require_text(name, "filter name"));
  if (filter == nullptr) fail("No filter named '{}'.", name.bytes());
  return [items = Iteration(subject), filter, arguments](Value& item) mutable {
    if (!items.next(item)) return false;
    Arguments copy = arguments;
    item = filter(item, copy);
    return true;
  };
}

/// Of an item, whether it is taken.
std::function<bool(const Value&)> condition(Arguments arguments, bool by_attribute) {
  const Value attribute =
      by_attribute ? take_first(arguments, "Missing parameter for attribute name") : Value();
  const AttributeGetter getter(attribute, false);
  if (arguments.positional.empty()) return [getter](const Value& item) { return truth(getter(item)); };
  const Value name = take_first(arguments, "");
  const Test test = find_test(require_text(name, "test name"));
  if (test == nullptr) fail("No test named '{}'.", name.bytes());
  return [getter, test, arguments](const Value& item) {
    Arguments copy = arguments;
    return test(getter(item), copy);
  };
}

template <bool ByAttribute, bool Wanted>
Value selected(const Value& subject, Arguments& arguments) {
  return lazily("select_or_reject", subject, arguments,
                [](const Value& from, const Arguments& given) -> std::function<bool(Value&)> {
                  if (!truth(from)) return nothing();
                  return
                      [items = Iteration(from), takes = condition(given, ByAttribute)](Value& item) mutable {
                        while (items.next(item)) {
                          if (takes(item) == Wanted) return true;
                        }
                        return false;
                      };
                });
}

Value map(const Value& subject, Arguments& arguments) {
  return lazily("sync_do_map", subject, arguments, mapping);
}

Value unique(const Value& subject, Arguments& arguments) {
  return lazily(
      "sync_do_unique", subject, arguments,
      [](const Value& from, Arguments given_arguments) -> std::function<bool(Value&)> {
        const Parameters given("unique", given_arguments, {"case_sensitive", "attribute"});
        const AttributeGetter getter(given.get(1, Value()), !given.truth_of(0, false));
        struct Seen {
          std::unordered_multimap<std::size_t, Value> keys;
          Charge charge;
        };
        return [items = Iteration(from), getter, seen = std::make_shared<Seen>()](Value& item) mutable {
          while (items.next(item)) {
            Value key = getter(item);
            const std::size_t hash = hash_of(key);
            const auto [begin, end] = seen->keys.equal_range(hash);
            const bool known =
                std::any_of(begin, end, [&](const auto& entry) { return equal(entry.second, key); });
            if (known) continue;
            seen->charge.resize((seen->keys.size() + 1) * 96);
            seen->keys.emplace(hash, std::move(key));
            return true;
          }
          return false;
        };
      });
}

Value batch(const Value& subject, Arguments& arguments) {
  return lazily("do_batch", subject, arguments,
                [](const Value& from, Arguments given_arguments) -> std::function<bool(Value&)> {
                  const Parameters given("batch", given_arguments, {"linecount", "fill_with"}, 1);
                  const Value fill = given.get(1, Value());
                  return [items = Iteration(from), size = given[0], fill,
                          ahead = std::vector<Value>()](Value& out) mutable {
                    ListBuilder row;
                    Value item;
                    if (!ahead.empty()) row.add(ahead.front());
                    ahead.clear();
                    while (items.next(item)) {
                      // A row ends where the next item finds it full; one that is never full takes all.
                      if (equal(Value(static_cast<std::int64_t>(row.size())), size)) {
                        ahead = {item};
                        out = row.finish();
                        return true;
                      }
                      row.add(item);
                    }
                    if (row.size() == 0) return false;
                    const auto count = static_cast<std::int64_t>(row.size());
                    if (!fill.is_none() && ordered(count, Ordering::less, size)) {
                      const std::int64_t missing =
                          require_integer(arithmetic(size, Arithmetic::subtract, count), "linecount");
                      for (std::int64_t i = 0; i < missing; ++i) row.add(fill);
                    }
                    out = row.finish();
                    return true;
                  };
                });
}

Value slice(const Value& subject, Arguments& arguments) {
  return lazily("sync_do_slice", subject, arguments,
                [](const Value& from, Arguments given_arguments) -> std::function<bool(Value&)> {
                  const Parameters given("slice", given_arguments, {"slices", "fill_with"}, 1);
                  const std::int64_t slices = given.integer(0, 1);
                  if (slices == 0) fail("integer division or modulo by zero");
                  ListBuilder all;
                  Iteration items(from);
                  Value item;
                  while (items.next(item)) all.add(item);
                  const Value list = all.finish();
                  return [list, slices, fill = given.get(1, Value()), number = std::int64_t{0},
                          at = std::size_t{0}](Value& out) mutable {
                    if (number >= slices) return false;
                    const auto length = static_cast<std::int64_t>(list.items().size());
                    const bool extra = number < length % slices;
                    ListBuilder row;
                    for (std::int64_t i = 0; i < length / slices + static_cast<std::int64_t>(extra); ++i)
                      row.add(list.items()[at++]);
                    if (!fill.is_none() && !extra) row.add(fill);
                    ++number;
                    out = row.finish();
                    return true;
                  };
                });
}

Value items(const Value& subject, Arguments& arguments) {
  return lazily("do_items", subject, arguments,
                [](const Value& from, Arguments given_arguments) -> std::function<bool(Value&)> {
                  const Parameters none("items", given_arguments, {});
                  if (from.is_undefined()) return nothing();
                  if (!from.is_dict()) fail("Can only get item pairs from a mapping.");
                  return [from, at = std::size_t{0}](Value& item) mutable {
                    if (at >= from.dict().entries.size()) return false;
                    const auto& [key, value] = from.dict().entries[at++];
                    item = make_tuple({key, value});
                    return true;
                  };
                });
}

}  // namespace

const FilterTable& selection_filters() {
  static const FilterTable kTable = {
      {"map", map},
      {"select", selected<false, true>},
      {"reject", selected<false, false>},
      {"selectattr", selected<true, true>},
      {"rejectattr", selected<true, false>},
      {"unique", unique},
      {"batch", batch},
      {"slice", slice},
      {"items", items},
  };
  return kTable;
}

}  // namespace caldera::chat
