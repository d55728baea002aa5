// .jsonl: a JSON object a line.
#include <fmt/format.h>

#include <algorithm>

#include "lm/base/json_file.h"
#include "training/data/files/row_reader.h"

namespace caldera::detail {
namespace {

class JsonlRows final : public RowReader {
 public:
  JsonlRows(std::string_view text, const TextOrigin& origin)
      : left_(text), path_(origin.path), line_(origin.line - 1) {}

  bool next(DataRow& row) override {
    while (!left_.empty()) {
      ++line_;
      const std::size_t end = std::min(left_.find('\n'), left_.size());
      const std::string_view line = left_.substr(0, end);
      left_.remove_prefix(std::min(end + 1, left_.size()));
      if (line.find_first_not_of(" \t\r") == line.npos) continue;
      row.where = fmt::format("{}:{}", path_, line_);
      row.json = parse_ordered_json(line, row.where);
      return true;
    }
    return false;
  }

 private:
  std::string_view left_;
  std::string path_;
  std::int64_t line_;
};

}  // namespace

RowReaderKind jsonl_rows() {
  return {.extension = ".jsonl",
          .make =
              [](std::string_view text, const TextOrigin& origin) {
                return std::unique_ptr<RowReader>(new JsonlRows(text, origin));
              },
          .split = split_lines};
}

}  // namespace caldera::detail
