#include "lm/tokenizers/normalizers/precompiled.h"

#include <fmt/format.h>
#include <unicode/brkiter.h>
#include <unicode/locid.h>
#include <unicode/utext.h>

#include <optional>
#include <vector>

#include "engine/base/error.h"
#include "lm/base/unicode/characters.h"
#include "lm/base/unicode/utf8.h"

namespace caldera::detail {
namespace {

/// Clusters of so many bytes are replaced a character at a time.
constexpr std::size_t kLongCluster = 6;

/// A unit of a double-array trie, as the library Darts-clone packs them.
class Unit {
 public:
  explicit Unit(std::uint32_t bits) : bits_(bits) {}
  bool has_leaf() const { return (bits_ >> 8 & 1) != 0; }
  std::uint32_t value() const { return bits_ & 0x7FFFFFFF; }
  std::uint32_t label() const { return bits_ & 0x800000FF; }
  std::uint32_t offset() const { return bits_ >> 10 << ((bits_ & 0x200) >> 6); }

 private:
  std::uint32_t bits_;
};

struct Replacement {
  std::size_t bytes = 0;  ///< that it replaces
  std::string_view text;
};

class Charsmap {
 public:
  Charsmap(std::string_view bytes, const std::string& where) {
    const auto word = [&](std::size_t at) {
      std::uint32_t value = 0;
      for (std::size_t i = 4; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
      return value;
    };
    const std::uint32_t size = bytes.size() < 4 ? 0 : word(0);
    if (bytes.size() < 4 || size % 4 != 0 || size > bytes.size() - 4 || size == 0) {
      throw FileError(fmt::format("{}: precompiled_charsmap is cut short or malformed", where));
    }
    units_.reserve(size / 4);
    for (std::size_t at = 4; at < 4 + std::size_t{size}; at += 4) units_.push_back(word(at));
    replacements_ = std::string(bytes.substr(4 + std::size_t{size}));
    if (!is_utf8(replacements_)) {
      throw FileError(fmt::format("{}: precompiled_charsmap holds replacements that are not UTF-8", where));
    }
  }

  /// The shortest or the longest entry that `text` begins with.
  std::optional<Replacement> find(std::string_view text, bool longest) const {
    std::optional<Replacement> found;
    std::size_t node = Unit(units_[0]).offset();
    for (std::size_t i = 0; i < text.size() && text[i] != '\0'; ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      node ^= c;
      if (node >= units_.size() || Unit(units_[node]).label() != c) break;
      const Unit unit(units_[node]);
      node ^= unit.offset();
      if (!unit.has_leaf()) continue;
      if (node >= units_.size()) break;
      const std::size_t at = Unit(units_[node]).value();
      if (at >= replacements_.size()) break;
      const auto end = replacements_.find('\0', at);
      const auto bytes = (end == std::string::npos ? replacements_.size() : end) - at;
      // A place within a character is no replacement's.
      if (is_continuation(replacements_[at])) break;
      found = {i + 1, std::string_view(replacements_).substr(at, bytes)};
      if (!longest) break;
    }
    // An entry that ends within a character is none.
    if (found && found->bytes < text.size() && is_continuation(text[found->bytes])) {
      return std::nullopt;
    }
    return found;
  }

 private:
  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

class LongestNormalizer final : public Normalizer {
 public:
  explicit LongestNormalizer(Charsmap map) : map_(std::move(map)) {}
  std::string normalize(std::string text) const override {
    std::string out;
    out.reserve(text.size());
    for (std::string_view rest = text; !rest.empty();) {
      const auto found = map_.find(rest, true);
      const std::size_t bytes = found ? found->bytes : first_character(rest).bytes;
      out += found ? found->text : rest.substr(0, bytes);
      rest.remove_prefix(bytes);
    }
    return out;
  }

 private:
  Charsmap map_;
};

/// Finds grapheme clusters: one for each thread, as making one costs more than a text.
icu::BreakIterator& clusters() {
  thread_local const std::unique_ptr<icu::BreakIterator> kMine = [] {
    UErrorCode status = U_ZERO_ERROR;
    std::unique_ptr<icu::BreakIterator> made(
        icu::BreakIterator::createCharacterInstance(icu::Locale::getRoot(), status));
    if (U_FAILURE(status) || !made) throw Error("ICU has no data for grapheme clusters");
    return made;
  }();
  return *kMine;
}

class ClusterNormalizer final : public Normalizer {
 public:
  explicit ClusterNormalizer(Charsmap map) : map_(std::move(map)) {}

  std::string normalize(std::string text) const override {
    std::string out;
    out.reserve(text.size());
    const auto plain = [&](std::size_t i) {
      return static_cast<unsigned char>(text[i]) < 0x80 && text[i] != '\r';
    };
    // Between ASCII and ASCII, but for a line's two ends, clusters end.
    const auto cut_before = [&](std::size_t i) { return i == text.size() || (plain(i - 1) && plain(i)); };
    for (std::size_t at = 0; at < text.size();) {
      std::size_t end = at + 1;
      while (!cut_before(end)) ++end;
      if (end == at + 1) {
        append(std::string_view(text).substr(at, 1), out);
      } else {
        append_clusters(std::string_view(text).substr(at, end - at), out);
      }
      at = end;
    }
    return out;
  }

 private:
  /// Appends one cluster, as all of it or a character at a time.
  void append(std::string_view cluster, std::string& out) const {
    if (cluster.size() < kLongCluster) {
      if (const auto found = map_.find(cluster, false)) {
        out += found->text;
        return;
      }
    }
    while (!cluster.empty()) {
      const auto character = cluster.substr(0, first_character(cluster).bytes);
      const auto found = map_.find(character, false);
      out += found ? found->text : character;
      cluster.remove_prefix(character.size());
    }
  }

  void append_clusters(std::string_view text, std::string& out) const {
    UErrorCode status = U_ZERO_ERROR;
    UText units = UTEXT_INITIALIZER;
    utext_openUTF8(&units, text.data(), static_cast<std::int64_t>(text.size()), &status);
    icu::BreakIterator& breaks = clusters();
    breaks.setText(&units, status);
    if (U_FAILURE(status)) throw Error("ICU cannot find grapheme clusters");
    std::size_t begin = 0;
    for (auto end = breaks.next(); end != icu::BreakIterator::DONE; end = breaks.next()) {
      append(text.substr(begin, static_cast<std::size_t>(end) - begin), out);
      begin = static_cast<std::size_t>(end);
    }
    utext_close(&units);
  }

  Charsmap map_;
};

}  // namespace

std::unique_ptr<Normalizer> make_precompiled(std::string_view charsmap, CharsmapMatch match,
                                             const std::string& where) {
  if (charsmap.empty()) return nullptr;
  Charsmap map(charsmap, where);
  if (match == CharsmapMatch::longest) return std::make_unique<LongestNormalizer>(std::move(map));
  return std::make_unique<ClusterNormalizer>(std::move(map));
}

}  // namespace caldera::detail
