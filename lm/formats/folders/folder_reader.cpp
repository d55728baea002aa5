#include "lm/formats/folders/folder_reader.h"

#include <fmt/format.h>

#include "engine/base/error.h"

namespace caldera::detail {

StoredTensor FolderReader::take(const std::string& name) {
  StoredTensor tensor{name, files_.info(name), files_.bytes(name)};
  if (tensor.bytes.empty()) fail(tensor, "is empty");
  used_.insert(name);
  return tensor;
}

StoredTensor FolderReader::take(const std::string& name, std::string_view type, const Shape& shape) {
  StoredTensor tensor = take(name);
  if (type_name(tensor.info) != type || tensor.info.shape != shape) {
    fail(tensor, fmt::format("is {} {}, expected {} {}", type_name(tensor.info),
                             tensor.info.shape.to_string(), type, shape.to_string()));
  }
  return tensor;
}

void FolderReader::fail(const StoredTensor& tensor, const std::string& problem) {
  fail(tensor.name, problem);
}

void FolderReader::fail(const std::string& name, const std::string& problem) {
  throw FileError(fmt::format("tensor {} {}", printable(name), problem));
}

}  // namespace caldera::detail
