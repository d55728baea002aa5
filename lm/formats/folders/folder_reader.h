// Serves readers of quantised folders: tensors by name, each used once. Private to lm/formats/.
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "lm/base/json_file.h"
#include "lm/formats/weights/model_weights.h"
#include "lm/formats/weights/stored_weight.h"

namespace caldera::detail {

/// A tensor of a file.
struct StoredTensor {
  std::string name;
  TensorInfo info;
  std::span<const std::byte> bytes;
};

/// Hands out the tensors of a folder, and collects the weights that are made of them.
class FolderReader {
 public:
  explicit FolderReader(const ModelWeights& files) : files_(files) {}

  const std::vector<std::string>& names() const { return files_.names(); }
  bool has(const std::string& name) const { return files_.contains(name); }
  const TensorInfo& info(const std::string& name) const { return files_.info(name); }
  bool is_used(const std::string& name) const { return used_.contains(name); }

  /// The tensor, which from now on is part of a weight. Throws FileError where it is missing or
  /// has no elements.
  StoredTensor take(const std::string& name);
  /// Takes a tensor of this type and shape; throws FileError otherwise.
  StoredTensor take(const std::string& name, std::string_view type, const Shape& shape);
  /// A tensor that says nothing about values: it is passed over.
  void pass_over(const std::string& name) { used_.insert(name); }

  void add(std::string name, StoredWeightPtr weight) {
    weights_.emplace_back(std::move(name), std::move(weight));
  }
  std::vector<std::pair<std::string, StoredWeightPtr>> take_weights() { return std::move(weights_); }

  [[noreturn]] static void fail(const StoredTensor& tensor, const std::string& problem);
  [[noreturn]] static void fail(const std::string& name, const std::string& problem);

 private:
  const ModelWeights& files_;
  std::unordered_set<std::string> used_;
  std::vector<std::pair<std::string, StoredWeightPtr>> weights_;
};

/// Adds `weight()`; a FileError names the weight where its sizes make no sense.
template <class Make>
void add_checked(FolderReader& reader, const std::string& name, const Make& make) {
  try {
    reader.add(name, make());
  } catch (const ShapeError& error) {
    FolderReader::fail(name, error.what());
  }
}

/// The elements of a tensor of plain numbers.
template <class T>
std::vector<T> numbers(std::span<const std::byte> bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size() * sizeof(T));
  return out;
}

}  // namespace caldera::detail
