// .json: a list of objects.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "training/data/files/row_reader.h"

namespace caldera::detail {
namespace {

class JsonRows final : public RowReader {
 public:
  JsonRows(std::string_view text, const std::string& path) : path_(path) {
    nlohmann::ordered_json root = parse_ordered_json(text, path);
    // {"data": [...]}: as several tools write a set.
    if (root.is_object() && root.size() == 1 && root.begin()->is_array()) {
      nlohmann::ordered_json list = std::move(*root.begin());
      root = std::move(list);
    }
    if (!root.is_array())
      throw FileError(
          fmt::format("{}: a list of objects was expected; give one object a line the name .jsonl", path));
    rows_ = std::move(root);
  }

  bool next(DataRow& row) override {
    if (at_ == rows_.size()) return false;
    row.json = std::move(rows_[at_]);
    row.where = fmt::format("{}: row {}", path_, ++at_);
    return true;
  }

 private:
  std::string path_;
  nlohmann::ordered_json rows_;
  std::size_t at_ = 0;
};

}  // namespace

RowReaderKind json_rows() {
  return {.extension = ".json", .make = [](std::string_view text, const TextOrigin& origin) {
            return std::unique_ptr<RowReader>(new JsonRows(text, origin.path));
          }};
}

}  // namespace caldera::detail
