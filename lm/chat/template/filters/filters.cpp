#include "lm/chat/template/filters/filters.h"

#include "lm/chat/template/base/number_text.h"
#include "lm/chat/template/base/unicode.h"
#include "lm/chat/template/methods/attributes.h"

namespace caldera::chat {

Filter find_filter(std::string_view name) {
  for (const FilterTable* table :
       {&text_filters(), &layout_filters(), &value_filters(), &sequence_filters(), &selection_filters()}) {
    const auto found = table->find(name);
    if (found != table->end()) return found->second;
  }
  return nullptr;
}

AttributeGetter::AttributeGetter(const Value& attribute, bool ignore_case, Value otherwise)
    : ignore_case_(ignore_case), otherwise_(std::move(otherwise)) {
  if (attribute.is_none()) return;
  if (!attribute.is_text()) {
    parts_.push_back(attribute);
    return;
  }
  std::string_view rest = attribute.bytes();
  while (true) {
    step();
    const std::size_t dot = rest.find('.');
    const std::string_view part = rest.substr(0, dot);
    const bool number = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    parts_.push_back(number ? Value(parse_integer(part, 10).value_or(0)) : Value(part));
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
}

Value AttributeGetter::operator()(const Value& item) const {
  Value value = item;
  for (const Value& part : parts_) {
    value = get_item(value, part);
    if (value.is_undefined() && !otherwise_.is_none()) value = otherwise_;
  }
  return ignore_case_ && value.is_text() ? Value(to_lower(value.bytes())) : value;
}

}  // namespace caldera::chat
