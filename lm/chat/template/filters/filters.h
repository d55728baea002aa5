// The filters and tests of templates, by name.
#pragma once

#include <string_view>
#include <unordered_map>

#include "lm/chat/template/value/function.h"

namespace caldera::chat {

using Filter = Value (*)(const Value& subject, Arguments& arguments);
using Test = bool (*)(const Value& subject, Arguments& arguments);
using FilterTable = std::unordered_map<std::string_view, Filter>;

/// nullptr where there is none of that name.
Filter find_filter(std::string_view name);
Test find_test(std::string_view name);

/// Return the filters of texts; of numbers and of whatever can be made text; of sequences; and those that
/// apply others.
const FilterTable& text_filters();
const FilterTable& layout_filters();
const FilterTable& value_filters();
const FilterTable& sequence_filters();
const FilterTable& selection_filters();

/// Items by an attribute such as "a.b.0", which may be none for the items themselves.
class AttributeGetter {
 public:
  AttributeGetter(const Value& attribute, bool ignore_case, Value otherwise = Value());
  Value operator()(const Value& item) const;
  /// nesting of the values it holds
  std::size_t depth() const { return otherwise_.depth(); }

 private:
  std::vector<Value> parts_;
  bool ignore_case_;
  Value otherwise_;  ///< for what is undefined, if it is not none
};

}  // namespace caldera::chat
