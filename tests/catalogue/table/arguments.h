// Arguments: what a call of an operation takes besides tensors, by name.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/tensor/dtype.h"

namespace caldera::catalogue {

/// Named arguments of a call, in the order in which they are written. An argument that is absent has the
/// default of the function called. Every getter throws Error, naming the argument, when the value is of
/// another kind.
class Arguments {
 public:
  using Integers = std::vector<std::int64_t>;
  using Value = std::variant<bool, std::int64_t, double, std::string, Integers, DType>;

  Arguments() = default;
  Arguments(std::initializer_list<std::pair<std::string, Value>> values) : values_(values) {}

  void set(std::string name, Value value);
  bool has(std::string_view name) const { return find(name) != nullptr; }
  bool flag(std::string_view name, bool otherwise) const;
  std::int64_t integer(std::string_view name, std::int64_t otherwise) const;
  int axis(std::string_view name, int otherwise) const;
  double real(std::string_view name, double otherwise) const;
  std::string text(std::string_view name, std::string_view otherwise) const;
  Integers integers(std::string_view name, const Integers& otherwise = {}) const;
  std::vector<int> axes(std::string_view name) const;
  DType dtype(std::string_view name, DType otherwise) const;

  const std::vector<std::pair<std::string, Value>>& values() const { return values_; }
  /// As Python writes them: "axis=-1, keepdims=True". Empty for none.
  std::string to_string() const;

 private:
  const Value* find(std::string_view name) const;
  template <class T>
  const T* get(std::string_view name, std::string_view kind) const;

  std::vector<std::pair<std::string, Value>> values_;
};

}  // namespace caldera::catalogue
