#include "lm/chat/template/globals.h"

#include <limits>

#include "lm/chat/template/base/strftime.h"
#include "lm/chat/template/value/builders.h"
#include "lm/chat/template/value/iteration.h"
#include "lm/chat/template/value/repr.h"

namespace caldera::chat {
namespace {

constexpr std::int64_t kLongestRange = 100'000;  // as the sandbox of the original has it

Value range(Arguments& arguments) {
  const Parameters given("range", arguments, {"start", "stop", "step"}, 1);
  const bool only_stop = !given.has(1);
  auto made = std::make_shared<Sequence>();
  made->kind = SequenceKind::range;
  made->start = only_stop ? 0 : given.integer(0, 0);
  made->stop = given.integer(only_stop ? 0 : 1, 0);
  made->stride = given.integer(2, 1);
  if (made->stride == 0) fail("range() arg 3 must not be zero");
  __extension__ using Wide = __int128;  // of a distance that 64 bits may not hold
  const Wide distance = Wide{made->stop} - made->start;
  const Wide stride = made->stride;
  const Wide count = stride > 0 ? (distance + stride - 1) / stride : (-distance - stride - 1) / -stride;
  if (count > kLongestRange) fail("Range too big. The sandbox blocks ranges larger than {}.", kLongestRange);
  ListBuilder items;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(count); ++i)
    items.add(made->start + i * made->stride);
  made->items = std::move(items.items());
  made->charge.resize(made->items.size() * sizeof(Value) + sizeof(Sequence));
  return {std::shared_ptr<const Sequence>(std::move(made))};
}

/// The entries that dict() is called with, one after the other.
template <class Add>
void each_entry(Arguments& arguments, const char* function, Add add) {
  if (arguments.positional.size() > 1) {
    fail("{} expected at most 1 argument, got {}", function, arguments.positional.size());
  }
  if (!arguments.positional.empty()) {
    const Value& from = arguments.positional[0];
    Iteration items(from);
    Value item;
    while (items.next(item)) {
      if (from.is_dict()) {
        add(item, *find_key(from.dict(), item));
        continue;
      }
      Iteration pair(item);
      Value key;
      Value value;
      Value more;
      if (!pair.next(key) || !pair.next(value) || pair.next(more)) {
        fail("{}: an element of the sequence has a length other than 2", function);
      }
      add(key, value);
    }
  }
  for (const auto& [name, value] : arguments.named) add(Value(name), value);
}

Value dict(Arguments& arguments) {
  DictBuilder made;
  each_entry(arguments, "dict", [&](const Value& key, const Value& value) { made.set(key, value); });
  return made.finish();
}

Value name_space(Arguments& arguments, Keep& keep) {
  const auto made = std::make_shared<Namespace>();
  each_entry(arguments, "namespace", [&](const Value& key, const Value& value) {
    if (key.is_text()) made->set(key.bytes(), value);
  });
  keep.add(made);
  return {std::shared_ptr<Object>(made)};
}

Value cycler(Arguments& arguments) {
  if (arguments.positional.empty()) fail("at least one item has to be provided");
  return {std::shared_ptr<Object>(std::make_shared<Cycler>(make_tuple(std::move(arguments.positional))))};
}

Value joiner(Arguments& arguments) {
  const Parameters given("joiner", arguments, {"sep"});
  const Value separator = given.get(0, Value(", "));
  return Value(std::make_shared<Function>(
      "joiner",
      [separator, used = false](Arguments& none) mutable {
        const Parameters no_parameters("joiner", none, {});
        return std::exchange(used, true) ? separator : Value("");
      },
      separator.depth()));
}

Value raise_exception(Arguments& arguments) {
  const Parameters given("raise_exception", arguments, {"message"}, 1);
  throw Refusal{bytes_of(given[0])};
}

}  // namespace

bool find_global(std::string_view name, LocalTime now, Keep& keep, Value& out) {
  Function::Body body;
  if (name == "range") {
    body = range;
  } else if (name == "dict") {
    body = dict;
  } else if (name == "namespace") {
    body = [&keep](Arguments& arguments) { return name_space(arguments, keep); };
  } else if (name == "cycler") {
    body = cycler;
  } else if (name == "joiner") {
    body = joiner;
  } else if (name == "raise_exception") {
    body = raise_exception;
  } else if (name == "strftime_now") {
    body = [now](Arguments& arguments) {
      const Parameters given("strftime_now", arguments, {"format"}, 1);
      step(given.text(0, "").size());
      return Value(format_time(now, given.text(0, "")));
    };
  } else if (name == "lipsum") {
    body = [](Arguments& /*arguments*/) -> Value {
      fail("lipsum() gives random text, which a chat template may not");
    };
  } else {
    return false;
  }
  out = Value(std::make_shared<Function>(std::string(name), std::move(body)));
  return true;
}

}  // namespace caldera::chat
