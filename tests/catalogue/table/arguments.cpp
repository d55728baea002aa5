#include "tests/catalogue/table/arguments.h"

#include <fmt/format.h>

#include <utility>

#include "engine/base/error.h"

namespace caldera::catalogue {
namespace {

std::string literal(const Arguments::Value& value) {
  struct Writer {
    std::string operator()(bool x) const { return x ? "True" : "False"; }
    std::string operator()(std::int64_t x) const { return fmt::format("{}", x); }
    std::string operator()(double x) const { return fmt::format("{}", x); }
    std::string operator()(const std::string& x) const { return fmt::format("'{}'", x); }
    std::string operator()(const Arguments::Integers& x) const {
      return fmt::format("({}{})", fmt::join(x, ", "), x.size() == 1 ? "," : "");
    }
    std::string operator()(DType x) const { return std::string(name(x)); }
  };
  return std::visit(Writer{}, value);
}

}  // namespace

void Arguments::set(std::string name, Value value) {
  values_.emplace_back(std::move(name), std::move(value));
}

const Arguments::Value* Arguments::find(std::string_view name) const {
  for (const auto& [key, value] : values_) {
    if (key == name) return &value;
  }
  return nullptr;
}

template <class T>
const T* Arguments::get(std::string_view name, std::string_view kind) const {
  const Value* value = find(name);
  if (value == nullptr) return nullptr;
  const T* found = std::get_if<T>(value);
  if (found == nullptr) throw Error(fmt::format("argument {}={} is no {}", name, literal(*value), kind));
  return found;
}

bool Arguments::flag(std::string_view name, bool otherwise) const {
  const bool* value = get<bool>(name, "truth value");
  return value != nullptr ? *value : otherwise;
}

std::int64_t Arguments::integer(std::string_view name, std::int64_t otherwise) const {
  const auto* value = get<std::int64_t>(name, "integer");
  return value != nullptr ? *value : otherwise;
}

int Arguments::axis(std::string_view name, int otherwise) const {
  return static_cast<int>(integer(name, otherwise));
}

double Arguments::real(std::string_view name, double otherwise) const {
  const auto* value = get<double>(name, "real number");
  return value != nullptr ? *value : otherwise;
}

std::string Arguments::text(std::string_view name, std::string_view otherwise) const {
  const auto* value = get<std::string>(name, "text");
  return value != nullptr ? *value : std::string(otherwise);
}

Arguments::Integers Arguments::integers(std::string_view name, const Integers& otherwise) const {
  const auto* value = get<Integers>(name, "list of integers");
  return value != nullptr ? *value : otherwise;
}

std::vector<int> Arguments::axes(std::string_view name) const {
  const Integers list = integers(name);
  return {list.begin(), list.end()};
}

DType Arguments::dtype(std::string_view name, DType otherwise) const {
  const auto* value = get<DType>(name, "dtype");
  return value != nullptr ? *value : otherwise;
}

std::string Arguments::to_string() const {
  std::string out;
  for (const auto& [key, value] : values_) {
    out += fmt::format("{}{}={}", out.empty() ? "" : ", ", key, literal(value));
  }
  return out;
}

}  // namespace caldera::catalogue
