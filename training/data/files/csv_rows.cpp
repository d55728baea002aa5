// .csv and .tsv: RFC 4180. A field may be quoted, and then hold separators, line ends and doubled quotes.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/error.h"
#include "lm/base/unicode/utf8.h"
#include "training/data/files/row_reader.h"

namespace caldera::detail {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

class CsvRows final : public RowReader {
 public:
  CsvRows(std::string_view text, const TextOrigin& origin, char separator)
      : left_(text), path_(origin.path), separator_(separator), line_(origin.line - 1) {
    if (left_.starts_with(kByteOrderMark)) left_.remove_prefix(kByteOrderMark.size());
    if (!read_record(columns_))
      throw FileError(fmt::format("{}: there is no line that names the columns", path_));
    std::set<std::string> seen;
    for (const std::string& column : columns_) {
      if (!is_utf8(column)) throw FileError(fmt::format("{}:1: the name of a column is not UTF-8", path_));
      if (!seen.insert(column).second)
        throw FileError(fmt::format("{}:1: two columns have the name '{}'", path_, column));
    }
  }

  bool next(DataRow& row) override {
    std::vector<std::string> fields;
    do {
      row.where = fmt::format("{}:{}", path_, line_ + 1);
      if (!read_record(fields)) return false;
    } while (fields.size() == 1 && fields[0].empty());
    if (fields.size() != columns_.size())
      throw FileError(
          fmt::format("{}: {} fields, and the first line names {} columns; a field that holds '{}' or a "
                      "line end must be in double quotes",
                      row.where, fields.size(), columns_.size(), separator_ == '\t' ? "\\t" : ","));
    nlohmann::ordered_json object = nlohmann::ordered_json::object();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (!is_utf8(fields[i]))
        throw FileError(fmt::format("{}: column '{}' is not UTF-8; convert the file with iconv -t utf-8",
                                    row.where, columns_[i]));
      object[columns_[i]] = std::move(fields[i]);
    }
    row.json = std::move(object);
    return true;
  }

 private:
  bool read_record(std::vector<std::string>& fields) {
    fields.clear();
    if (left_.empty()) return false;
    ++line_;
    for (;;) {
      fields.emplace_back();
      const bool more = read_field(fields.back());
      if (!more) return true;
    }
  }

  // False where the field is the last of its record.
  bool read_field(std::string& field) {
    if (left_.starts_with('"')) {
      read_quoted(field);
    } else {
      const std::size_t end =
          std::min(left_.find_first_of(separator_ == '\t' ? "\t\r\n" : ",\r\n"), left_.size());
      field = left_.substr(0, end);
      left_.remove_prefix(end);
    }
    if (left_.empty()) return false;
    if (left_.front() == separator_) {
      left_.remove_prefix(1);
      return true;
    }
    if (left_.starts_with("\r\n"))
      left_.remove_prefix(2);
    else if (left_.front() == '\n' || left_.front() == '\r')
      left_.remove_prefix(1);
    else
      fail("something follows a closing quote; a quote within a quoted field is written twice");
    return false;
  }

  void read_quoted(std::string& field) {
    const std::int64_t begin = line_;
    left_.remove_prefix(1);
    for (;;) {
      const std::size_t quote = left_.find('"');
      if (quote == left_.npos) {
        left_ = {};
        throw FileError(fmt::format("{}:{}: a quote opens there and never closes", path_, begin));
      }
      field += left_.substr(0, quote);
      line_ += std::ranges::count(left_.substr(0, quote), '\n');
      left_.remove_prefix(quote + 1);
      if (!left_.starts_with('"')) return;
      field += '"';
      left_.remove_prefix(1);
    }
  }

  // Goes on with the next line.
  [[noreturn]] void fail(const char* problem) {
    const std::size_t end = left_.find('\n');
    left_.remove_prefix(end == left_.npos ? left_.size() : end + 1);
    throw FileError(fmt::format("{}:{}: {}", path_, line_, problem));
  }

  std::string_view left_;
  std::string path_;
  char separator_;
  std::vector<std::string> columns_;
  std::int64_t line_;
};

template <char separator>
RowReaderKind kind_of(std::string_view extension) {
  return {.extension = extension,
          .make = [](std::string_view text, const TextOrigin& origin) -> std::unique_ptr<RowReader> {
            return std::make_unique<CsvRows>(text, origin, separator);
          },
          .split = [] { return split_records(separator); },
          .has_header = true};
}

}  // namespace

RowReaderKind csv_rows() { return kind_of<','>(".csv"); }
RowReaderKind tsv_rows() { return kind_of<'\t'>(".tsv"); }

}  // namespace caldera::detail
