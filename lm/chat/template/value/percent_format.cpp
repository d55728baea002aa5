#include "lm/chat/template/value/percent_format.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "lm/chat/template/base/number_text.h"
#include "lm/chat/template/base/unicode.h"
#include "lm/chat/template/value/builders.h"
#include "lm/chat/template/value/format_spec.h"
#include "lm/chat/template/value/repr.h"

namespace caldera::chat {
namespace {

class PercentFormat {
 public:
  PercentFormat(std::string_view format, const Value& values) : rest_(format), values_(values) {}

  Value run() {
    while (!rest_.empty()) {
      const std::size_t percent = std::min(rest_.find('%'), rest_.size());
      out_.add(rest_.substr(0, percent));
      rest_.remove_prefix(percent);
      if (!rest_.empty()) {
        rest_.remove_prefix(1);
        directive();
      }
    }
    // As in Python, whatever has items by key may have more than are asked for.
    const bool by_key = values_.is_dict() || values_.is_list() || values_.is_undefined();
    const std::size_t count = values_.is_tuple() ? values_.items().size() : 1;
    if (!by_key && next_ < count) fail("not all arguments converted during string formatting");
    return out_.finish();
  }

 private:
  char take() {
    if (rest_.empty()) fail("incomplete format");
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }

  Value next_value() {
    if (named_ != nullptr) return *named_;
    const std::size_t count = values_.is_tuple() ? values_.items().size() : 1;
    if (next_ >= count) fail("not enough arguments for format string");
    return values_.is_tuple() ? values_.items()[next_++] : (++next_, values_);
  }

  void read_name() {
    named_ = nullptr;
    if (rest_.empty() || rest_[0] != '(') return;
    std::size_t depth = 0;
    std::size_t end = 0;
    for (; end < rest_.size(); ++end) {
      depth += static_cast<std::size_t>(rest_[end] == '(');
      if (rest_[end] == ')' && --depth == 0) break;
    }
    if (end == rest_.size()) fail("incomplete format key");
    if (!values_.is_dict()) fail("format requires a mapping");
    const Value key(rest_.substr(1, end - 1));
    named_ = find_key(values_.dict(), key);
    if (named_ == nullptr) fail("key {} is not in the mapping", repr_of(key));
    rest_.remove_prefix(end + 1);
  }

  std::int64_t count_or_star() {
    if (!rest_.empty() && rest_[0] == '*') {
      take();
      const Value value = next_value();
      if (!value.is_integral()) fail("* wants int");
      return value.integral();
    }
    std::int64_t count = 0;
    while (!rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9') {
      count = count * 10 + (take() - '0');
      if (count > (std::int64_t{1} << 31)) fail("width too big");
    }
    return count;
  }

  void directive() {
    read_name();
    FormatSpec spec;
    spec.align = '>';
    for (bool flags = true; flags && !rest_.empty();) {
      switch (rest_[0]) {
        case '-':
          spec.align = '<';
          break;
        case '+':
          spec.sign = '+';
          break;
        case ' ':
          spec.sign = spec.sign == '+' ? '+' : ' ';
          break;
        case '#':
          spec.alternate = true;
          break;
        case '0':
          spec.zero_padded = true;
          break;
        default:
          flags = false;
          break;
      }
      if (flags) take();
    }
    spec.width = count_or_star();
    if (spec.width < 0) {
      spec.align = '<';
      spec.width = spec.width < -(std::int64_t{1} << 31) ? std::int64_t{1} << 31 : -spec.width;
    }
    if (!rest_.empty() && rest_[0] == '.') {
      take();
      spec.precision = std::max<std::int64_t>(0, count_or_star());
    }
    while (!rest_.empty() && (rest_[0] == 'h' || rest_[0] == 'l' || rest_[0] == 'L')) take();
    spec.type = take();
    if (spec.type == '%') return out_.add('%');
    convert(next_value(), spec);
  }

  void convert(const Value& value, FormatSpec spec) {
    switch (spec.type) {
      case 's':
        return pad_text(bytes_of(value), spec);
      case 'r':
        return pad_text(repr_of(value), spec);
      case 'a': {
        TextBuilder text;
        const std::string repr = repr_of(value);
        if (value.is_text()) {
          add_text_repr(text, value.bytes(), true);
        } else {
          text.add(repr);
        }
        return pad_text(text.take(), spec);
      }
      case 'c':
        return character(value, spec);
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return integer(value, spec);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        require_defined(value);
        if (!value.is_number()) fail("must be real number, not {}", type_name(value));
        adjust_zeros(spec);
        return out_.add(format_float(value.real(), spec));
      default:
        fail("unsupported format character '{}' (0x{:x})", spec.type, static_cast<unsigned char>(spec.type));
    }
  }

  static void adjust_zeros(FormatSpec& spec) {
    if (spec.zero_padded && spec.align == '>') {
      spec.align = '=';
      spec.fill = "0";
    }
    spec.zero_padded = false;
  }

  void pad_text(const std::string& text, FormatSpec spec) {
    spec.zero_padded = false;
    out_.add(format_text(text, spec));
  }

  void character(const Value& value, FormatSpec spec) {
    spec.precision = -1;
    if (value.is_integral()) {
      FormatSpec alone;
      alone.type = 'c';
      return pad_text(format_integer(value.integral(), alone), spec);
    }
    if (!value.is_text() || value.text().length != 1) fail("%c requires int or char");
    pad_text(value.bytes(), spec);
  }

  void integer(const Value& value, FormatSpec spec) {
    require_defined(value);
    const bool from_float =
        value.kind() == Value::Kind::real && (spec.type == 'd' || spec.type == 'i' || spec.type == 'u');
    if (!value.is_integral() && !from_float) {
      const bool real = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
      fail("%{} format: {} is required, not {}", spec.type, real ? "a real number" : "an integer",
           type_name(value));
    }
    if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
    const std::int64_t number = from_float ? truncate_float(value.real()) : value.integral();
    adjust_zeros(spec);
    if (spec.precision < 0) return out_.add(format_integer(number, spec));
    // A precision is the least number of digits.
    FormatSpec digits = spec;
    const auto prefix = static_cast<std::int64_t>(number < 0 || spec.sign != '-') +
                        (spec.alternate && spec.type != 'd' ? 2 : 0);
    digits.width = spec.precision + prefix;
    digits.align = '=';
    digits.fill = "0";
    spec.precision = -1;
    spec.fill = " ";
    if (spec.align == '=') spec.align = '>';
    out_.add(format_text(format_integer(number, digits), spec));
  }

  std::string_view rest_;
  const Value& values_;
  const Value* named_ = nullptr;
  std::size_t next_ = 0;
  TextBuilder out_;
};

}  // namespace

Value percent_format(const Value& format, const Value& values) {
  return PercentFormat(format.bytes(), values).run();
}

}  // namespace caldera::chat
