#include "tests/golden/golden.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace caldera::testing {
namespace {

using nlohmann::json;
using Records = std::map<std::string, GoldenRecord>;

std::string key_of(std::string_view op, std::size_t sample, std::string_view type) {
  return fmt::format("{}/{}/{}", op, sample, type);
}

/// The file: a line of magic, a line of JSON that says what follows, and little-endian f64.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), file_(path, std::ios::binary) {}

  bool exists() const { return file_.is_open(); }

  Records read() {
    std::string line;
    std::getline(file_, line);
    if (line != "caldera golden 1") throw std::runtime_error(path_ + ": no golden file");
    std::getline(file_, line);
    Records out;
    for (const json& row : json::parse(line)) {
      GoldenRecord record{part(row.at("results")), part(row.at("first")), part(row.at("second"))};
      digests_[row.at("key")] = row.at("digest");
      out.emplace(row.at("key"), std::move(record));
    }
    return out;
  }

  std::map<std::string, std::string> digests_;

 private:
  std::vector<std::vector<double>> part(const json& counts) {
    std::vector<std::vector<double>> out;
    for (const json& count : counts) {
      std::vector<double> values(count.get<std::size_t>());
      for (double& value : values) {
        std::uint64_t bits = 0;
        unsigned char bytes[8];
        file_.read(reinterpret_cast<char*>(bytes), 8);
        for (int i = 7; i >= 0; --i) bits = bits << 8 | bytes[i];
        value = std::bit_cast<double>(bits);
      }
      if (!file_) throw std::runtime_error(path_ + ": cut short");
      out.push_back(std::move(values));
    }
    return out;
  }

  std::string path_;
  std::ifstream file_;
};

struct Family {
  Records records;
  std::map<std::string, std::string> digests;
};

/// The file of a family, in the folder of golden files or one inside it; what no file is, where there is
/// none.
std::string path_of(std::string_view name) {
  const std::filesystem::path folder("tests/golden/values");
  const std::string file = std::string(name) + ".golden";
  for (const auto& inside : std::filesystem::directory_iterator(folder)) {
    if (inside.is_directory() && exists(inside.path() / file)) return (inside.path() / file).string();
  }
  return (folder / file).string();
}

const Family& family(std::string_view name) {
  static std::map<std::string, Family, std::less<>> loaded;
  const auto found = loaded.find(name);
  if (found != loaded.end()) return found->second;
  Family read;
  Reader reader(path_of(name));
  if (reader.exists()) {
    read.records = reader.read();
    read.digests = reader.digests_;
  }
  return loaded.emplace(name, std::move(read)).first->second;
}

}  // namespace

std::vector<GoldenCall> golden_calls(const catalogue::Operation& operation) {
  std::vector<GoldenCall> out;
  const std::vector<catalogue::Sample> samples = operation.samples(operation);
  bool any = false;
  for (const DType type :
       {DType::boolean, DType::u8, DType::u32, DType::i8, DType::i16, DType::i32, DType::i64, DType::f64}) {
    if (!operation.types.contains(type)) continue;
    any = true;
    for (std::size_t i = 0; i < samples.size(); ++i) out.push_back({i, samples[i], type});
  }
  if (!any) {
    for (std::size_t i = 0; i < samples.size(); ++i) out.push_back({i, samples[i], DType::f64});
  }
  return out;
}

std::string digest_of(const GoldenCall& call) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a over the words
  const auto add = [&](std::uint64_t word) { hash = (hash ^ word) * 0x100000001b3u; };
  for (const Host& operand : operand_values(call.sample, call.type)) {
    for (const std::int64_t extent : operand.shape) add(static_cast<std::uint64_t>(extent));
    for (const double value : operand.values) add(std::bit_cast<std::uint64_t>(value));
  }
  for (const char c : call.sample.arguments.to_string()) add(static_cast<unsigned char>(c));
  return fmt::format("{:016x}", hash);
}

const GoldenRecord* golden_record(const catalogue::Operation& operation, const GoldenCall& call) {
  const Family& all = family(operation.family);
  const std::string key = key_of(operation.name, call.index, name(call.type));
  const auto found = all.records.find(key);
  if (found == all.records.end()) return nullptr;
  if (all.digests.at(key) != digest_of(call)) {
    throw std::runtime_error(
        fmt::format("{} was made of other operands: run tests/golden/generate.py again", key));
  }
  return &found->second;
}

std::vector<double> golden_weights(std::int64_t count, std::size_t position) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < count; ++i) {
    out.push_back(static_cast<double>((static_cast<std::size_t>(i) * 37 + position * 11) % 64) / 32 - 1 +
                  1.0 / 64);
  }
  return out;
}

}  // namespace caldera::testing
